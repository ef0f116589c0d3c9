package telematics

import "slices"

// State is a state in the lifecycle of a command.
//
//	accepted ──► sent ──► received ──► succeeded | rejected | failed
//	    │          └─────────┴──► unknown ──► (a late answer settles it after all)
//	    ├──► expired: it never left, so nothing was executed
//	    └──► unknown: its process died; whether it was published is not known
//
// Steps along the arrows may be skipped: an answer may arrive before the
// previous step was stored.
type State string

const (
	Accepted  State = "accepted"  // stored; not published yet
	Sent      State = "sent"      // handed to the MQTT client at least once
	Received  State = "received"  // the unit answered that it works on it
	Succeeded State = "succeeded" // the vehicle did it
	// The unit refused, and remembers that it did; nothing was executed.
	Rejected State = "rejected"
	Failed   State = "failed"  // the unit tried, and it did not work
	Expired  State = "expired" // not published in time; nothing was executed
	// No answer in time, or none that rules out its execution; it may have been executed.
	Unknown State = "unknown"
)

// Outcome is what a command has done to the vehicle, as far as the caller can know.
type Outcome string

const (
	Undecided   Outcome = ""             // not settled yet
	Executed    Outcome = "executed"     // the vehicle did it
	NotExecuted Outcome = "not_executed" // it did not, and will not
	HasFailed   Outcome = "failed"       // it tried; the detail states how far it came
	MayHave     Outcome = "unknown"      // not known [LAW-3]
)

// The lifecycle: everything else about states is derived from this table [LAW-3].
var lifecycle = map[State]struct {
	next    []State
	outcome Outcome
	open    bool // occupies its lane
	final   bool // settled by an answer that the unit remembers
}{
	Accepted: {next: []State{Sent, Received, Succeeded, Rejected, Failed, Expired, Unknown}, outcome: Undecided, open: true},
	Sent:     {next: []State{Received, Succeeded, Rejected, Failed, Unknown}, outcome: Undecided, open: true},
	Received: {next: []State{Succeeded, Rejected, Failed, Unknown}, outcome: Undecided, open: true},
	// A late answer still settles the command. After Expired it is unexpected and
	// raises an alarm, but the unit's answer counts [ACK-4].
	Unknown:   {next: []State{Succeeded, Rejected, Failed}, outcome: MayHave},
	Expired:   {next: []State{Succeeded, Rejected, Failed}, outcome: NotExecuted},
	Succeeded: {outcome: Executed, final: true},
	// A unit that executes a command after rejecting it breaks the protocol. That raises an alarm,
	// and its later answer counts, too.
	Rejected: {next: []State{Succeeded, Failed}, outcome: NotExecuted, final: true},
	Failed:   {outcome: HasFailed, final: true},
}

// States lists every state in the order of the lifecycle.
var States = []State{Accepted, Sent, Received, Succeeded, Rejected, Failed, Expired, Unknown}

// Outcome returns what a command in this state means for the vehicle.
func (s State) Outcome() Outcome { return lifecycle[s].outcome }

// IsOpen reports whether a command in this state occupies its lane.
func (s State) IsOpen() bool { return lifecycle[s].open }

// IsFinal reports whether the state is that of the unit's final answer: a unit that keeps the
// protocol sends no other answer afterwards.
func (s State) IsFinal() bool { return lifecycle[s].final }

// MayBecome reports whether a command in this state may enter next.
func (s State) MayBecome(next State) bool { return slices.Contains(lifecycle[s].next, next) }

// Before lists the states from which s may be entered.
func (s State) Before() []State {
	return slices.DeleteFunc(slices.Clone(States), func(from State) bool { return !from.MayBecome(s) })
}
