package telematics

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Protocol is the name, in a vehicle's record, of the dialect that its unit speaks.
type Protocol string

// DefaultProtocol is that of a record which names none.
const DefaultProtocol Protocol = "v1"

// Means reports whether two names are of the same protocol.
func (p Protocol) Means(other Protocol) bool {
	return cmp.Or(p, DefaultProtocol) == cmp.Or(other, DefaultProtocol)
}

// Dialect is the codec of one protocol: all that differs between units that speak
// differently. No caller asks which one it has. A dialect keeps no state, so that any
// instance can read any message, and is safe for concurrent use.
//
// It must keep the laws that protocol v1 keeps; package dialecttest checks them.
// What its units do not check themselves, its Promises say.
type Dialect interface {
	Protocol() Protocol
	// Actions lists the commands that it can carry to a unit that is installed so, or says what of
	// the installation it does not understand. The caller changes nothing in the list.
	Actions(Installation) ([]Action, error)
	// Promises returns what holds of a command to a unit that is installed so.
	Promises(Installation, Action) Promises
	// Confirmation returns what the vehicle must report before such a command counts as executed:
	// each of the values, none of which was reported before the command left. Nil: the unit's
	// answer is enough. Where it is not, the answer that it has taken the command is Received; a
	// codec that reads an answer without knowing its command may say Succeeded, which then counts
	// as Received.
	Confirmation(Installation, Action) map[Field]any
	// Filters returns the subscriptions by which units are heard.
	Filters() Filters
	// PresenceOf returns the topic on which what a unit said of its presence is retained; empty:
	// nothing is.
	PresenceOf(Unit) string
	// ParseTopic returns the unit that a topic of its filters names, and what of the unit
	// the topic is about, where it says so. The unit must stand in the topic where the MQTT
	// broker's access rules demand the sender's own name: nothing else says who spoke
	// [TOP-1]. It is called for each message, so it allocates nothing unless it fails.
	ParseTopic(topic string) (u Unit, subject string, err error)
	// DecodeAnswer, DecodeReport and DecodePresence read what arrived by the filter of that
	// name, at the instant received. What carries no time is given that instant. What is
	// unsound in part is left out and listed; what the dialect has no field for is a report
	// without values. A message of another kind, where kinds share a topic, is ErrOtherKind. An
	// answer that names no command, where the promises say so, has the command NoCommand.
	DecodeAnswer(m Message, received time.Time) (Answer, []Dropped, error)
	DecodeReport(m Message, received time.Time) (Report, []Dropped, error)
	DecodePresence(m Message, received time.Time) (Presence, error)
	// Encode returns the signed message of a command. It changes nothing, and may be called for a
	// command that is never sent.
	Encode(c *Command, s Signer) (Transmission, error)
}

// Recogniser is a dialect whose answers name no command, and yet say something of theirs. Without
// it each answer can be to any command.
type Recogniser interface {
	// Recognises reports whether an answer can be to a command of a unit that is installed so.
	Recognises(Installation, *Command, Answer) bool
}

// ErrOtherKind says that a message is of another kind than it was read as.
var ErrOtherKind = errors.New("message of another kind")

// Promises is what a unit does itself about a command. Where it does not, the service can only be
// more careful, and must show it.
type Promises struct {
	Signed       bool // it executes nothing without our signature
	Expiring     bool // it starts nothing after its expiry
	Deduplicated bool // it does not execute again what it hears again
	Correlated   bool // its answer names the command
	Confirmed    bool // a success means done, not accepted
}

// And returns what holds by both.
func (p Promises) And(q Promises) Promises {
	return Promises{
		Signed: p.Signed && q.Signed, Expiring: p.Expiring && q.Expiring, Deduplicated: p.Deduplicated && q.Deduplicated,
		Correlated: p.Correlated && q.Correlated, Confirmed: p.Confirmed && q.Confirmed,
	}
}

// Installation is how a unit is built into its vehicle, in the words of its protocol: which output
// it locks the doors by, the PIN that it was given. Its values may be secret.
type Installation map[string]string

// Filters are the subscriptions of a dialect, one for each kind of message. Each kind has a
// separate connection: a message that matches two filters is read as both. Empty: none.
type Filters struct {
	Answers  string
	Reports  []string
	Presence string
}

// SharedFilter returns the filter shared by the members of a group, each of which
// receives a part. The group's name is a secret of the installation [TOP-3].
func SharedFilter(group, filter string) string { return "$share/" + group + "/" + filter }

// MaxMessage is the largest message that is read, in bytes [TEL-4].
const MaxMessage = 64 << 10

// Message is what a unit said, as it came from the MQTT broker.
type Message struct {
	Dialect  Dialect // in which it was said
	Unit     Unit
	Subject  string // what of the unit it is about, where the topic says so: a metric, a command
	Payload  []byte
	Retained bool // the MQTT broker's memory
	// The MQTT broker may have delivered it before (DUP).
	Repeated bool
}

// Transmission is a command as it goes on the air, never retained [LAW-4].
type Transmission struct {
	Unit    Unit // that it is for
	Topic   string
	Payload []byte
	QoS     byte
	// LeaveBefore is when it could arrive too late: at the expiry that the unit checks, or
	// much sooner where it checks none.
	LeaveBefore time.Time
	// EndOfSecond delays it to the end of a second, where reports in whole seconds confirm it: what
	// they date to the second in which it leaves confirms nothing.
	EndOfSecond bool
	Once        bool // the unit would execute a repetition: what may have left is not sent again
	Repeated    bool // it was published before, and the unit has not given its final answer
}

// Signer signs commands with the key that is active at the moment.
type Signer interface {
	Sign(Claims) ([]byte, error)
}

// Dialects are those that are spoken.
type Dialects []Dialect

// Find returns the dialect that a record names.
func (ds Dialects) Find(p Protocol) (Dialect, bool) {
	for _, d := range ds {
		if d.Protocol().Means(p) {
			return d, true
		}
	}
	return nil, false
}

// Names lists the protocols.
func (ds Dialects) Names() []Protocol {
	names := make([]Protocol, len(ds))
	for i, d := range ds {
		names[i] = d.Protocol()
	}
	return names
}

// Supports reports whether the protocol of a vehicle's unit has a message for an action.
func (ds Dialects) Supports(v Vehicle, a Action) bool {
	d, ok := ds.Find(v.Protocol)
	return ok && hasMessage(d, v.Installation, a)
}

func hasMessage(d Dialect, i Installation, a Action) bool {
	actions, err := d.Actions(i)
	return err == nil && slices.Contains(actions, a)
}

// Assurance returns what holds of a command to a vehicle's unit; nothing, where its protocol is not
// spoken.
func (ds Dialects) Assurance(p Protocol, i Installation, a Action) Promises {
	d, ok := ds.Find(p)
	if !ok {
		return Promises{}
	}
	return d.Promises(i, a)
}

// Promises returns what holds of each command that can be carried to a vehicle's unit, and whether
// there is one.
func (ds Dialects) Promises(v Vehicle) (all Promises, ok bool) {
	d, ok := ds.Find(v.Protocol)
	if !ok || v.Unit == "" {
		return Promises{}, false
	}
	actions, err := d.Actions(v.Installation)
	if err != nil || len(actions) == 0 {
		return Promises{}, false
	}
	all = d.Promises(v.Installation, actions[0])
	for _, a := range actions {
		all = all.And(d.Promises(v.Installation, a))
	}
	return all, true
}

// Encode returns the command as it goes on the air in the dialect of its vehicle.
func (ds Dialects) Encode(c *Command, s Signer) (Transmission, error) {
	d, ok := ds.Find(c.Protocol)
	if !ok {
		return Transmission{}, fmt.Errorf("encode command: unknown protocol %q", c.Protocol)
	}
	t, err := d.Encode(c, s)
	t.Unit = c.Unit
	return t, err
}

// Refuse says why a vehicle cannot be asked to do a now, by its abilities, its dialect and
// what is known of its unit; nil: nothing speaks against it.
func (ds Dialects) Refuse(t *Twin, a Action, now time.Time) *Error {
	if t.Unit == "" {
		return NoUnit()
	}
	if !t.Supports(a) {
		return NotSupported(a)
	}
	d, ok := ds.Find(t.Protocol)
	switch {
	case !ok:
		return UnknownProtocol(t.Protocol)
	case !hasMessage(d, t.Installation, a):
		return NotSupported(a)
	case a.Opens() && !t.BestEffortUnlock && !d.Promises(t.Installation, a).Expiring:
		return BestEffortDenied(a)
	case t.Contact.Unreachable(now), !d.Promises(t.Installation, a).Expiring && !isHere(d, t.Contact, now):
		return UnitOffline(t.Contact, now)
	}
	return nil
}

// isHere reports whether a unit is known to be online. One that publishes no presence is by what it
// reports.
func isHere(d Dialect, c Contact, now time.Time) bool {
	said := c.Status == Online || d.Filters().Presence == ""
	return said && c.At(now) == Online
}
