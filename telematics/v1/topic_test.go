package v1

import (
	"strings"
	"testing"

	"motorpool/internal/assert"
	"motorpool/telematics"
)

var channels = []Channel{CommandChannel, AckChannel, TelemetryChannel, PresenceChannel}

func TestTopics_AreThoseOfTheProtocol(t *testing.T) {
	cases := map[string]string{
		CommandChannel.Topic("356938035643809"):                          "motorpool/v1/356938035643809/command",
		AckChannel.Topic("u_1"):                                          "motorpool/v1/u_1/ack",
		TelemetryChannel.Filter():                                        "motorpool/v1/+/telemetry",
		PresenceChannel.Filter():                                         "motorpool/v1/+/presence",
		telematics.SharedFilter("motorpool-secret", AckChannel.Filter()): "$share/motorpool-secret/motorpool/v1/+/ack",
	}
	for got, want := range cases {
		assert.Equal(t, got, want, "topic")
	}
}

func TestParseTopic_ReturnsUnitAndChannel(t *testing.T) {
	for _, unit := range []telematics.Unit{"1", "356938035643809", "a-B_9", telematics.Unit(strings.Repeat("x", 64))} {
		for _, channel := range channels {
			u, c, err := ParseTopic(channel.Topic(unit))
			if err != nil || u != unit || c != channel {
				t.Errorf("%s: parsed as unit %s, channel %s, %v", channel.Topic(unit), u, c, err)
			}
		}
	}
}

func TestParseTopic_InvalidTopicIsRefused(t *testing.T) {
	for _, topic := range []string{
		"", "/", "motorpool", "motorpool/v1", "motorpool/v1/", "motorpool/v1/u", "motorpool/v1/u/", "motorpool/v1//ack",
		"motorpool/v1/u/ack/", "motorpool/v1/u/ack/more", "motorpool/v1/u/Ack", "motorpool/v1/u/unknown",
		"motorpool/v2/u/ack", "Motorpool/v1/u/ack", "/motorpool/v1/u/ack", "x/motorpool/v1/u/ack",
		"motorpool/v1/+/ack", "motorpool/v1/#", "motorpool/v1/u/#", "$share/g/motorpool/v1/u/ack",
		"motorpool/v1/../ack", "motorpool/v1/u u/ack", "motorpool/v1/u\n/ack", "motorpool/v1/u\x00/ack",
		"motorpool/v1/ü/ack", "motorpool/v1/u%2f/ack", "motorpool/v1/" + strings.Repeat("x", 65) + "/ack",
	} {
		if u, c, err := ParseTopic(topic); err == nil {
			t.Errorf("%q was parsed as unit %q, channel %q", topic, u, c)
		}
	}
}

func TestParseUnit_AcceptsLettersDigitsDashAndUnderscore(t *testing.T) {
	for serial, sound := range map[string]bool{
		"356938035643809": true, "A-b_9": true, strings.Repeat("9", 64): true,
		"": false, strings.Repeat("9", 65): false, "a/b": false, "a+b": false, "#": false, "a b": false, "a\n": false, "é": false,
		"a.b": false,
	} {
		if u, err := telematics.ParseUnit(serial); (err == nil) != sound || sound && string(u) != serial {
			t.Errorf("ParseUnit(%q) = %q, %v", serial, u, err)
		}
	}
}

func TestProbe_IsAnEmptyMessageOfAReservedUnit(t *testing.T) {
	unit, channel, err := ParseTopic(ProbeTopic("3F9K2M7Q"))
	if err != nil || channel != PresenceChannel {
		t.Fatalf("%s: %v, %v", ProbeTopic("3F9K2M7Q"), channel, err)
	}
	if name, ok := ProbeName(telematics.Message{Unit: unit}); !ok || name != "3F9K2M7Q" {
		t.Error("a probe is not recognised")
	}
	_, other := ProbeName(telematics.Message{Unit: "unit-1"})
	if _, payload := ProbeName(telematics.Message{Unit: unit, Payload: []byte("{}")}); other || payload {
		t.Error("a unit's message is taken for a probe")
	}
}
