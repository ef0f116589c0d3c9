package v1

import (
	"errors"
	"fmt"
	"strings"

	"motorpool/telematics"
)

// Channel is the last part of a topic: the kind of its messages.
type Channel string

const (
	CommandChannel   Channel = "command"
	AckChannel       Channel = "ack"
	TelemetryChannel Channel = "telemetry"
	PresenceChannel  Channel = "presence"
)

const topicRoot = "motorpool/v1/"

// Topic returns the topic of a unit's channel.
func (c Channel) Topic(u telematics.Unit) string { return topicRoot + string(u) + "/" + string(c) }

// Filter returns the subscription that matches the channel of every unit.
func (c Channel) Filter() string { return topicRoot + "+/" + string(c) }

// probePrefix begins the serial of a unit that does not exist.
const probePrefix = "probe-"

// ProbeTopic returns a topic for probes of that name, which the service may read and write, but no
// unit: the presence topic of a unit that does not exist. So the service needs no additional access
// rights [PRE-1].
func ProbeTopic(name string) string {
	return PresenceChannel.Topic(telematics.Unit(probePrefix + name))
}

// ProbeName returns the name of the ProbeTopic on which a presence message arrived, or false for
// any other message. Instances send probes, with an empty payload, to themselves and each other.
func ProbeName(m telematics.Message) (name string, ok bool) {
	if len(m.Payload) > 0 {
		return "", false
	}
	return strings.CutPrefix(string(m.Unit), probePrefix)
}

var errOtherTopic = errors.New("the topic is not " + topicRoot + "{unit}/{channel}")

// ParseTopic returns the unit and the channel that a topic names. It fails for another topic, and
// for a serial or channel that is not valid.
func ParseTopic(topic string) (telematics.Unit, Channel, error) {
	rest, ok := strings.CutPrefix(topic, topicRoot)
	serial, channel, cut := strings.Cut(rest, "/")
	if !ok || !cut {
		return "", "", errOtherTopic
	}
	unit, err := telematics.ParseUnit(serial)
	if err != nil {
		return "", "", fmt.Errorf("topic %q: %w", topic, err)
	}
	switch c := Channel(channel); c {
	case CommandChannel, AckChannel, TelemetryChannel, PresenceChannel:
		return unit, c, nil
	}
	return "", "", fmt.Errorf("topic %q: unknown channel %q", topic, channel)
}
