package telematics

import "time"

// V1 is our own protocol, docs/protocol.md: signed commands that expire, and that a unit
// executes once however often it hears them.
type V1 struct{}

var everyAction = append([]Action{ReportState}, ControlActions...)

// Protocol implements Dialect.
func (V1) Protocol() Protocol { return DefaultProtocol }

// Promises implements Dialect [CMD-4] [CMD-5].
func (V1) Promises() Promises { return Promises{Signed: true, Expiring: true, Deduplicated: true} }

// Actions implements Dialect [CMD-3].
func (V1) Actions() []Action { return everyAction }

// Filters implements Dialect.
func (V1) Filters() Filters {
	return Filters{Answers: AckChannel.Filter(), Reports: TelemetryChannel.Filter(), Presence: PresenceChannel.Filter()}
}

// ParseTopic implements Dialect. A topic is about all that its payload says.
func (V1) ParseTopic(topic string) (Unit, string, error) {
	u, _, err := ParseTopic(topic)
	return u, "", err
}

// DecodeAnswer implements Dialect.
func (V1) DecodeAnswer(m Message, received time.Time) (Answer, []Dropped, error) {
	return DecodeAnswer(m.Payload, received)
}

// DecodeReport implements Dialect.
func (V1) DecodeReport(m Message, received time.Time) (Report, []Dropped, error) {
	return DecodeReport(m.Payload, received)
}

// DecodePresence implements Dialect.
func (V1) DecodePresence(m Message, received time.Time) (Presence, error) {
	return DecodePresence(m.Payload, received)
}

// Encode implements Dialect. QoS 1, and the same message again until the unit answers [CMD-5].
func (V1) Encode(c *Command, s Signer) (Transmission, error) {
	message, err := s.Sign(c.Claims())
	if err != nil {
		return Transmission{}, err
	}
	return Transmission{Topic: CommandChannel.Topic(c.Unit), Payload: message, QoS: 1, LeaveBefore: c.Expires()}, nil
}
