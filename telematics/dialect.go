package telematics

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Protocol is the name, in a vehicle's row, of the dialect that its unit speaks.
type Protocol string

// DefaultProtocol is the protocol of a vehicle whose row names none.
const DefaultProtocol Protocol = "v1"

// Name returns the name of a protocol; an empty one means DefaultProtocol.
func (p Protocol) Name() string { return string(cmp.Or(p, DefaultProtocol)) }

// Means reports whether two names mean the same protocol; an empty one means DefaultProtocol.
func (p Protocol) Means(other Protocol) bool {
	return p.Name() == other.Name()
}

// Dialect is the codec of one protocol: everything that differs between protocols.
// No caller checks which dialect it has. A dialect keeps no state, so that any
// instance can read any message, and is safe for concurrent use.
//
// It must keep the laws that protocol v1 keeps; package dialecttest checks them.
// Its Promises state which of them its units enforce themselves.
type Dialect interface {
	Protocol() Protocol
	// Actions lists the actions that it can encode for a unit with this installation. The error
	// states which setting is not valid. The caller must not change the list.
	Actions(Installation) ([]Action, error)
	// Promises returns the guarantees for a command to a unit with this installation.
	Promises(Installation, Action) Promises
	// Confirmation returns the values that the vehicle must report before such a command counts as
	// executed: all of them, in reports made after the command was published. Nil: the unit's
	// answer is enough. If it is not, the answer that accepts the command is Received; a codec
	// that decodes an answer without knowing its command may return Succeeded, which then counts
	// as Received.
	Confirmation(Installation, Action) map[Field]any
	// Filters returns the MQTT subscriptions for the messages of all units.
	Filters() Filters
	// PresenceOf returns the topic on which the presence of a unit is retained; empty: it is not
	// retained.
	PresenceOf(Unit) string
	// ParseTopic returns the unit that a topic of its filters names, and the subject, if the
	// topic names one. The unit must be the level of the topic in which the MQTT broker's
	// access rules require the sender's user name: nothing else identifies the sender
	// [TOP-1]. No two dialects have a topic in common. It is called for each message, so it
	// allocates nothing, nor does it for a topic of another dialect.
	ParseTopic(topic string) (u Unit, subject string, err error)
	// DecodeAnswer, DecodeReport and DecodePresence decode a message that matched the filter of
	// that kind and arrived at received. A message without a time gets that instant. Values that
	// are not valid are left out and listed; a report with no known field has no values. A
	// message of another kind, if kinds share a topic, is ErrOtherKind. If answers are not
	// Correlated, the command of an answer is NoCommand.
	DecodeAnswer(m Message, received time.Time) (Answer, []Dropped, error)
	DecodeReport(m Message, received time.Time) (Report, []Dropped, error)
	DecodePresence(m Message, received time.Time) (Presence, error)
	// Encode returns the signed message of a command. It changes nothing, and may be called for a
	// command that is never sent.
	Encode(c *Command, s Signer) (Transmission, error)
}

// ReportRetainer is a dialect whose units have the MQTT broker retain their reports. It delivers
// them again for each subscription, which is no fault of the unit.
type ReportRetainer interface{ RetainsReports() }

// SecretKeeper is a dialect whose installations have settings that are secret.
type SecretKeeper interface{ Secret(setting string) bool }

// ErrOtherKind is returned for a message of another kind than the one to be decoded.
var ErrOtherKind = errors.New("message of another kind")

// Promises are the guarantees that a unit itself gives for a command. Where one is missing, the
// service is more careful, and must show that to the caller.
type Promises struct {
	Signed       bool // it executes nothing without the fleet's signature
	Expiring     bool // it starts nothing after its expiry
	Deduplicated bool // it executes a command once, however often it arrives
	Correlated   bool // its answer names the command
	Confirmed    bool // a success means done, not accepted
}

// And returns the promises that both p and q give.
func (p Promises) And(q Promises) Promises {
	return Promises{
		Signed: p.Signed && q.Signed, Expiring: p.Expiring && q.Expiring, Deduplicated: p.Deduplicated && q.Deduplicated,
		Correlated: p.Correlated && q.Correlated, Confirmed: p.Confirmed && q.Confirmed,
	}
}

// Bits encodes the promises as a bit set, for storage.
func (p Promises) Bits() (bits int16) {
	for i, holds := range [...]bool{p.Signed, p.Expiring, p.Deduplicated, p.Correlated, p.Confirmed} {
		if holds {
			bits |= 1 << i
		}
	}
	return bits
}

// PromisesOf decodes stored promises. Nil was stored by a version that had only protocol v1, which
// keeps all of them.
func PromisesOf(bits *int16) Promises {
	if bits == nil {
		return Promises{Signed: true, Expiring: true, Deduplicated: true, Correlated: true, Confirmed: true}
	}
	has := func(i int) bool { return *bits&(1<<i) != 0 }
	return Promises{Signed: has(0), Expiring: has(1), Deduplicated: has(2), Correlated: has(3), Confirmed: has(4)}
}

// Installation is how a unit is built into its vehicle, as settings of its protocol: for example
// the output that locks the doors, or the unit's PIN. Its values may be secret.
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

// Message is a message of a unit, as it came from the MQTT broker.
type Message struct {
	Dialect     Dialect // that decodes it
	Unit        Unit
	Subject     string // from the topic, if it names one: a metric, a command
	Payload     []byte
	Retained    bool // the MQTT broker had retained it
	Redelivered bool // the MQTT broker may have delivered it before (DUP)
}

// Transmission is a command as it is published, never retained [LAW-4].
type Transmission struct {
	Unit    Unit // that it is for
	Topic   string
	Payload []byte
	QoS     byte
	// LeaveBefore is when it must be published at the latest: at the expiry that the unit
	// checks, or much sooner if it checks none.
	LeaveBefore time.Time
	// EndOfSecond delays it to the end of a second, for a command that is confirmed by reports with
	// times in whole seconds: a report dated to the second of the publication confirms nothing.
	EndOfSecond bool
	Repeated    bool // it was published before, and the unit has not given its final answer
}

// Signer signs commands with the key that is active at the moment.
type Signer interface {
	Sign(Claims) ([]byte, error)
}

// Dialects are the dialects that the service supports.
type Dialects []Dialect

// Find returns the dialect of a protocol, or false if it is not supported.
func (ds Dialects) Find(p Protocol) (Dialect, bool) {
	for _, d := range ds {
		if d.Protocol().Means(p) {
			return d, true
		}
	}
	return nil, false
}

// ParseTopic returns the dialect that a topic belongs to, and what that dialect returns for it, or
// false if it belongs to none.
func (ds Dialects) ParseTopic(topic string) (d Dialect, u Unit, subject string, ok bool) {
	for _, d := range ds {
		if unit, subject, err := d.ParseTopic(topic); err == nil {
			return d, unit, subject, true
		}
	}
	return nil, "", "", false
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

// CanOrder reports whether a vehicle has a unit, and both and the unit's protocol have an action.
func (ds Dialects) CanOrder(t Twin, a Action) bool {
	return t.Unit != "" && t.Supports(a) && ds.Supports(t.Vehicle, a)
}

func hasMessage(d Dialect, i Installation, a Action) bool {
	actions, err := d.Actions(i)
	return err == nil && slices.Contains(actions, a)
}

// Secret reports whether a setting of an installation is secret, and never shown. All are of a
// protocol that is not supported.
func (ds Dialects) Secret(p Protocol, setting string) bool {
	d, ok := ds.Find(p)
	keeper, keeps := d.(SecretKeeper)
	return !ok || keeps && keeper.Secret(setting)
}

// Assurance returns the guarantees for a command to a unit of a protocol; none, if the protocol is
// not supported.
func (ds Dialects) Assurance(p Protocol, i Installation, a Action) Promises {
	d, ok := ds.Find(p)
	if !ok {
		return Promises{}
	}
	return d.Promises(i, a)
}

// Promises returns the guarantees that hold for every command to a vehicle's unit, or false if it
// can get no command.
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

// Encode returns the command as it is published, in the dialect of its vehicle. It fails for an
// unknown protocol, and as the dialect does.
func (ds Dialects) Encode(c *Command, s Signer) (Transmission, error) {
	d, ok := ds.Find(c.Protocol)
	if !ok {
		return Transmission{}, fmt.Errorf("encode command: unknown protocol %q", c.Protocol)
	}
	t, err := d.Encode(c, s)
	t.Unit = c.Unit
	return t, err
}

// Refuse returns the reason why action a cannot be sent to a vehicle now: its abilities, its
// dialect or its contact; nil: it can be sent.
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
	case !t.BestEffortUnlock && ds.OpensLate(t.Vehicle, a):
		return BestEffortDenied(a)
	case t.Contact.Unreachable(now), !d.Promises(t.Installation, a).Expiring && !isHere(d, t.Contact, now):
		return UnitOffline(t.Contact, now)
	}
	return nil
}

// OpensLate reports whether an action opens a vehicle whose unit checks no expiry, so that it may
// open late, when no client stands at it.
func (ds Dialects) OpensLate(v Vehicle, a Action) bool {
	d, ok := ds.Find(v.Protocol)
	return ok && v.Unit != "" && a.Opens() && hasMessage(d, v.Installation, a) && !d.Promises(v.Installation, a).Expiring
}

// isHere reports whether a unit is known to be online. For a dialect without presence, recent
// messages are enough, and for a unit of which no presence has come: it was connected when it came
// to its vehicle. For a minute after a last will, a message may be one from before it; then it
// shows that the unit is back, though the MQTT broker has dropped the presence that says so.
func isHere(d Dialect, c Contact, now time.Time) bool {
	said := c.Status == Online || c.Status == "" || c.LastSeen.Sub(c.ChangedAt) > UnreachableAfter || d.Filters().Presence == ""
	return said && c.At(now) == Online
}
