// Package teltonika is the codec of Teltonika's vehicle trackers (FMB, FMC, FMM and alike) that
// send Codec JSON over MQTT: topics, records, commands and their answers. It keeps no state and
// does no I/O. docs/teltonika.md describes how such a unit is configured.
package teltonika

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"motorpool/telematics"
)

// Protocol is the name of this dialect in the fleet file.
const Protocol telematics.Protocol = "teltonika"

// Dialect is Codec JSON over MQTT. A unit executes every copy of a command, however late it
// arrives, and its answers name no command.
type Dialect struct{}

const (
	topicRoot = "teltonika/"
	dataLeaf  = "data"
)

// DataTopic returns the topic on which a unit publishes its records and its answers, as it must be
// set in the unit.
func DataTopic(u telematics.Unit) string { return topicRoot + string(u) + "/" + dataLeaf }

// CommandTopic returns the topic from which a unit reads its commands, as it must be set in the
// unit.
func CommandTopic(u telematics.Unit) string { return topicRoot + string(u) + "/commands" }

// Protocol implements telematics.Dialect.
func (Dialect) Protocol() telematics.Protocol { return Protocol }

// Actions implements telematics.Dialect: those for which the installation has outputs. There is no
// report-state: a unit does not answer getrecord, which makes it report.
func (Dialect) Actions(i telematics.Installation) ([]telematics.Action, error) {
	w, err := parseInstallation(i)
	if err != nil {
		return nil, err
	}
	return w.actions(), nil
}

// Promises implements telematics.Dialect.
func (d Dialect) Promises(i telematics.Installation, a telematics.Action) telematics.Promises {
	return telematics.Promises{Confirmed: len(d.Confirmation(i, a)) > 0}
}

// Confirmation implements telematics.Dialect: the lock state, if a CAN adapter reads it. It does
// not cover the immobilizer, so the combined actions are not confirmed.
func (Dialect) Confirmation(i telematics.Installation, a telematics.Action) map[telematics.Field]any {
	w, err := parseInstallation(i)
	if err != nil || !w.readsLock {
		return nil
	}
	switch a {
	case telematics.Lock:
		return map[telematics.Field]any{telematics.IsLocked: true}
	case telematics.Unlock:
		return map[telematics.Field]any{telematics.IsLocked: false}
	}
	return nil
}

// Filters implements telematics.Dialect. Records and answers share a topic; units publish no
// presence.
func (Dialect) Filters() telematics.Filters {
	data := DataTopic("+")
	return telematics.Filters{Answers: data, Reports: []string{data}}
}

// PresenceOf implements telematics.Dialect: there is none.
func (Dialect) PresenceOf(telematics.Unit) string { return "" }

var errOtherTopic = errors.New("the topic is not " + topicRoot + "{imei}/" + dataLeaf)

// ParseTopic implements telematics.Dialect.
func (Dialect) ParseTopic(topic string) (telematics.Unit, string, error) {
	rest, ok := strings.CutPrefix(topic, topicRoot)
	serial, leaf, cut := strings.Cut(rest, "/")
	if !ok || !cut || leaf != dataLeaf {
		return "", "", errOtherTopic
	}
	unit, err := telematics.ParseUnit(serial)
	if err != nil {
		return "", "", fmt.Errorf("topic %q: %w", topic, err)
	}
	return unit, "", nil
}

// DecodePresence implements telematics.Dialect. It always fails: there is no filter for presence.
func (Dialect) DecodePresence(telematics.Message, time.Time) (telematics.Presence, error) {
	return telematics.Presence{}, errors.New("a Teltonika unit publishes no presence")
}

// leaveWithin is how long after its request a command may be published: the unit checks no expiry,
// so a late command is executed late.
const leaveWithin = 3 * time.Second

type commandMessage struct {
	Command string `json:"CMD"`
}

// Encode implements telematics.Dialect. QoS is 0, so that no MQTT broker keeps the message for a
// unit without a connection; Once, because the unit executes each copy.
func (d Dialect) Encode(c *telematics.Command, _ telematics.Signer) (telematics.Transmission, error) {
	w, err := parseInstallation(c.Installation)
	if err != nil {
		return telematics.Transmission{}, err
	}
	text, err := w.command(c)
	if err != nil {
		return telematics.Transmission{}, err
	}
	payload, err := json.Marshal(commandMessage{text})
	if err != nil {
		return telematics.Transmission{}, err
	}
	leave := c.Requested.Add(leaveWithin)
	if expires := c.Expires(); leave.After(expires) {
		leave = expires
	}
	return telematics.Transmission{
		Topic: CommandTopic(c.Unit), Payload: payload, LeaveBefore: leave,
		// Units date records to whole seconds.
		EndOfSecond: len(d.Confirmation(c.Installation, c.Action)) > 0,
	}, nil
}
