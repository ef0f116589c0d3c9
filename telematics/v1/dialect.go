// Package v1 is the codec of vehicle protocol v1 (docs/protocol.md): topics, answers, reports and
// presence. It keeps no state and does no I/O.
package v1

import (
	"time"

	"motorpool/telematics"
)

// Dialect is our own protocol, docs/protocol.md: signed commands that expire, and that a unit
// executes once however often it hears them.
type Dialect struct{}

var everyAction = append([]telematics.Action{telematics.ReportState}, telematics.ControlActions...)

// Protocol implements telematics.Dialect.
func (Dialect) Protocol() telematics.Protocol { return telematics.DefaultProtocol }

// Promises implements telematics.Dialect [CMD-4] [CMD-5].
func (Dialect) Promises() telematics.Promises {
	return telematics.Promises{Signed: true, Expiring: true, Deduplicated: true}
}

// Actions implements telematics.Dialect [CMD-3].
func (Dialect) Actions() []telematics.Action { return everyAction }

// Filters implements telematics.Dialect.
func (Dialect) Filters() telematics.Filters {
	return telematics.Filters{Answers: AckChannel.Filter(), Reports: TelemetryChannel.Filter(), Presence: PresenceChannel.Filter()}
}

// PresenceOf implements telematics.Dialect.
func (Dialect) PresenceOf(u telematics.Unit) string { return PresenceChannel.Topic(u) }

// ParseTopic implements telematics.Dialect. A topic is about all that its payload says.
func (Dialect) ParseTopic(topic string) (telematics.Unit, string, error) {
	u, _, err := ParseTopic(topic)
	return u, "", err
}

// DecodeAnswer implements telematics.Dialect.
func (Dialect) DecodeAnswer(m telematics.Message, received time.Time) (telematics.Answer, []telematics.Dropped, error) {
	return DecodeAnswer(m.Payload, received)
}

// DecodeReport implements telematics.Dialect.
func (Dialect) DecodeReport(m telematics.Message, received time.Time) (telematics.Report, []telematics.Dropped, error) {
	return DecodeReport(m.Payload, received)
}

// DecodePresence implements telematics.Dialect.
func (Dialect) DecodePresence(m telematics.Message, received time.Time) (telematics.Presence, error) {
	return DecodePresence(m.Payload, received)
}

// Encode implements telematics.Dialect. QoS 1, and the same message again until the unit answers
// [CMD-5].
func (Dialect) Encode(c *telematics.Command, s telematics.Signer) (telematics.Transmission, error) {
	message, err := s.Sign(c.Claims())
	if err != nil {
		return telematics.Transmission{}, err
	}
	return telematics.Transmission{Topic: CommandChannel.Topic(c.Unit), Payload: message, QoS: 1, LeaveBefore: c.Expires()}, nil
}
