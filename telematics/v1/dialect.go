// Package v1 is the codec of vehicle protocol v1 (docs/protocol.md): topics, answers, reports and
// presence. It keeps no state and does no I/O.
package v1

import (
	"errors"
	"time"

	"motorpool/telematics"
)

// Dialect is Motorpool's protocol, docs/protocol.md: commands are signed, expire, and are executed
// once, however often they arrive.
type Dialect struct{}

var everyAction = append([]telematics.Action{telematics.ReportState}, telematics.ControlActions...)

// Protocol implements telematics.Dialect.
func (Dialect) Protocol() telematics.Protocol { return telematics.DefaultProtocol }

// Promises implements telematics.Dialect [CMD-4] [CMD-5] [ACK-1].
func (Dialect) Promises(telematics.Installation, telematics.Action) telematics.Promises {
	return telematics.Promises{Signed: true, Expiring: true, Deduplicated: true, Correlated: true, Confirmed: true}
}

// Confirmation implements telematics.Dialect: the answer is enough.
func (Dialect) Confirmation(telematics.Installation, telematics.Action) map[telematics.Field]any {
	return nil
}

// Actions implements telematics.Dialect [CMD-3]. The installation has no settings.
func (Dialect) Actions(i telematics.Installation) ([]telematics.Action, error) {
	if len(i) > 0 {
		return nil, errors.New("protocol v1 has no settings of an installation")
	}
	return everyAction, nil
}

// Filters implements telematics.Dialect.
func (Dialect) Filters() telematics.Filters {
	return telematics.Filters{
		Answers: AckChannel.Filter(), Reports: []string{TelemetryChannel.Filter()}, Presence: PresenceChannel.Filter(),
	}
}

// PresenceOf implements telematics.Dialect.
func (Dialect) PresenceOf(u telematics.Unit) string { return PresenceChannel.Topic(u) }

// Retained implements telematics.Retaining.
func (Dialect) Retained(u telematics.Unit) []string {
	return []string{PresenceChannel.Topic(u), AckChannel.Topic(u), TelemetryChannel.Topic(u)}
}

// LastWill implements telematics.Retaining [PRE-1].
func (Dialect) LastWill(p telematics.Presence) []byte {
	return EncodePresence(telematics.Presence{Status: telematics.Offline, Session: p.Session})
}

// ParseTopic implements telematics.Dialect. Topics have no subject.
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

// Encode implements telematics.Dialect. The same message is published, with QoS 1, until the unit
// answers [CMD-5].
func (Dialect) Encode(c *telematics.Command, s telematics.Signer) (telematics.Transmission, error) {
	message, err := s.Sign(c.Claims())
	if err != nil {
		return telematics.Transmission{}, err
	}
	return telematics.Transmission{Topic: CommandChannel.Topic(c.Unit), Payload: message, QoS: 1, LeaveBefore: c.Expires()}, nil
}
