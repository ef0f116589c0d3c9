// Package ovms is the codec of OVMS v3, the open vehicle monitoring system, from firmware 3.3.006
// on: topics, metrics, commands to the module's shell and their answers (docs/ovms.md). It keeps no
// state and does no I/O.
package ovms

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// Dialect is the protocol of OVMS v3. A module executes each command as often as it arrives and
// checks neither a signature nor an expiry.
type Dialect struct{}

// Protocol is the name of the dialect in a vehicle's row.
const Protocol telematics.Protocol = "ovms"

// leaveWithin is how long after its request a command may be published: the module checks no
// expiry.
const leaveWithin = 5 * time.Second

// Protocol implements telematics.Dialect.
func (Dialect) Protocol() telematics.Protocol { return Protocol }

// Actions implements telematics.Dialect. Without a vehicle type a module can only be observed.
func (Dialect) Actions(i telematics.Installation) ([]telematics.Action, error) {
	if err := check(i); err != nil {
		return nil, err
	}
	if models[i[TypeKey]].locks {
		return []telematics.Action{telematics.ReportState, telematics.Lock, telematics.Unlock}, nil
	}
	return []telematics.Action{telematics.ReportState}, nil
}

// Promises implements telematics.Dialect. The id of a command is in the topic of its answer. That
// an update was scheduled does not mean that the values were sent.
func (Dialect) Promises(i telematics.Installation, a telematics.Action) telematics.Promises {
	return telematics.Promises{Correlated: true, Confirmed: models[i[TypeKey]].confirms(a)}
}

// Confirmation implements telematics.Dialect: "Vehicle locked" means only that the module has sent
// frames on the vehicle's bus; v.e.locked means that the vehicle is locked.
func (Dialect) Confirmation(i telematics.Installation, a telematics.Action) map[telematics.Field]any {
	if !models[i[TypeKey]].confirms(a) {
		return nil
	}
	return map[telematics.Field]any{telematics.IsLocked: a == telematics.Lock}
}

// Filters implements telematics.Dialect.
func (Dialect) Filters() telematics.Filters {
	return telematics.Filters{
		Answers:  "ovms/+/+/" + responses + "+",
		Reports:  []string{"ovms/+/+/" + metrics + "#", "ovms/+/+/" + alerts + "#", "ovms/+/+/" + vehicleAlerts + "#"},
		Presence: "ovms/+/+/" + connected,
	}
}

// PresenceOf implements telematics.Dialect.
func (Dialect) PresenceOf(u telematics.Unit) string { return topic(u, connected) }

// Retained implements telematics.Retaining: a module retains all metrics.
func (Dialect) Retained(u telematics.Unit) []string {
	return []string{topic(u, metrics+"#"), topic(u, alerts+"#"), topic(u, vehicleAlerts+"#"), topic(u, responses+"+")}
}

// RetainsReports implements telematics.ReportRetainer.
func (Dialect) RetainsReports() {}

// LastWill implements telematics.Retaining.
func (Dialect) LastWill(telematics.Presence) []byte { return []byte(no) }

// Encode implements telematics.Dialect. The message is a line for the module's shell.
func (Dialect) Encode(c *telematics.Command, _ telematics.Signer) (telematics.Transmission, error) {
	line, err := commandLine(c)
	if err != nil {
		return telematics.Transmission{}, err
	}
	leave := c.Requested.Add(leaveWithin)
	if expires := c.Expires(); expires.Before(leave) {
		leave = expires
	}
	return telematics.Transmission{Topic: topic(c.Unit, commands+c.ID.String()), Payload: []byte(line), LeaveBefore: leave}, nil
}

// commandLine returns the line for the module's shell. A blank separates arguments, so the PIN has
// none.
func commandLine(c *telematics.Command) (string, error) {
	if err := check(c.Installation); err != nil {
		return "", err
	}
	switch {
	case c.Action == telematics.ReportState:
		return "server v3 update all", nil
	case !models[c.Installation[TypeKey]].locks:
	case c.Action == telematics.Lock:
		return "lock " + c.Installation[PINKey], nil
	case c.Action == telematics.Unlock:
		return "unlock " + c.Installation[PINKey], nil
	}
	return "", fmt.Errorf("protocol %s has no command for %s", Protocol, c.Action)
}

// DecodeAnswer implements telematics.Dialect. The module answers with what its shell printed.
func (Dialect) DecodeAnswer(m telematics.Message, received time.Time) (telematics.Answer, []telematics.Dropped, error) {
	if len(m.Payload) > telematics.MaxMessage {
		return telematics.Answer{}, nil, errTooLarge
	}
	id, ok := strings.CutPrefix(m.Subject, responses)
	if !ok {
		return telematics.Answer{}, nil, fmt.Errorf("decode answer: topic part %q is no response", m.Subject)
	}
	text := strings.TrimSpace(string(m.Payload))
	a := telematics.Answer{}
	command, err := uuid.Parse(id)
	if err == nil {
		a = meaning(text)
		a.Command = command
	} else if a, err = decodeInquiry(id, text); err != nil {
		return telematics.Answer{}, nil, fmt.Errorf("decode answer: %w", err)
	}
	a.At = received
	return a, nil, nil
}

// DecodePresence implements telematics.Dialect. The message has neither a time nor a session; the
// last will is "no".
func (Dialect) DecodePresence(m telematics.Message, _ time.Time) (telematics.Presence, error) {
	switch string(m.Payload) {
	case yes:
		return telematics.Presence{Status: telematics.Online}, nil
	case no:
		return telematics.Presence{Status: telematics.Offline}, nil
	}
	return telematics.Presence{}, fmt.Errorf("decode presence: %.32q is not yes or no", m.Payload)
}
