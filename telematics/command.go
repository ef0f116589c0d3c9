package telematics

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/google/uuid"
)

// How long a caller waits for a vehicle. The default covers the 2 to 10 seconds
// that a cellular network typically takes.
const (
	MinBudget     = time.Second
	DefaultBudget = 10 * time.Second
	MaxBudget     = 30 * time.Second
)

// CommandID identifies a command here and on the wire (jti).
type CommandID = uuid.UUID

// Command is one order to one vehicle, and what became of it.
type Command struct {
	ID       CommandID
	Vehicle  VehicleID
	Agency   AgencyID
	Unit     Unit     // that was asked; only its word counts [ACK-4]
	Protocol Protocol // of the unit; not read back
	// Of the unit; not read back.
	Installation Installation
	// The version of the vehicle's record by which it was accepted; zero: not to be checked; not
	// read back.
	Version   int64
	Action    Action
	Attention *Attention // parameters; nil but for AttentionSignal
	Lane      Lane
	Seq       int64  // grows within a lane, gaps allowed
	Instance  string // of Motorpool, where the caller waits
	Actor     Actor
	RequestID uuid.UUID
	Bulk      BulkID          // the order to many vehicles that it is part of
	Booking   int64           // whose client ordered it; zero: none
	Key       *IdempotencyKey // under which it was asked for; not read back
	State     State
	Reason    string // the unit's, from a closed list [CMD-4]; ByHalt is ours
	Detail    string // the unit's, such as "moving"
	Reported  *Report
	Late      bool // settled by an answer that came after the command was believed over
	Overruled bool // its unit had rejected it, and said later that it was executed
	Attempts  int
	Requested time.Time
	SentAt    time.Time // zero: never
	// When it was published again, up to MaxRetransmissions times; fewer than Attempts-1 where an
	// instance ended before it had written them down.
	Retransmitted []time.Time
	ReceivedAt    time.Time
	Completed     time.Time
	Deadline      time.Time // Requested plus the budget
	// Until when its answer may come, where it names no command; zero: it has come, or names one.
	AnswerBy time.Time
	// The guarantees of its unit when it was accepted.
	Assurance Promises
	// It has succeeded once its vehicle reports so: its unit says only that it accepted it.
	ByReport bool
	// No report can show that: the vehicle has reported it before, or never reported the fields.
	ReportedBefore bool
	// Its outcome was unknown, and its vehicle has reported since that it was not executed.
	Contradicted bool
	Trace        string // the traceparent that is signed; empty: none; not recorded
}

// MaxRetransmissions bounds the retransmissions of which the time is recorded. A command has six
// within MaxBudget. Half still has them; double takes 60 bytes more of a command that goes wrong.
const MaxRetransmissions = 15

// Publications returns when the command was published, as far as that is recorded.
func (c *Command) Publications() []time.Time {
	if c.SentAt.IsZero() {
		return nil
	}
	return append([]time.Time{c.SentAt}, c.Retransmitted...)
}

// expiryUnit is the resolution of exp on the wire [CMD-2].
const expiryUnit = time.Second

// Expires returns the instant from which the unit refuses the command: the
// deadline, rounded up to the whole seconds of the wire [CMD-2].
func (c *Command) Expires() time.Time {
	t := c.Deadline.Truncate(expiryUnit)
	if t.Before(c.Deadline) {
		t = t.Add(expiryUnit)
	}
	return t
}

// Budget returns how long the caller was ready to wait.
func (c Command) Budget() time.Duration { return c.Deadline.Sub(c.Requested) }

// Latency returns the time from the request to its settlement, zero while open.
func (c Command) Latency() time.Duration {
	if c.Completed.IsZero() {
		return 0
	}
	return c.Completed.Sub(c.Requested)
}

// Claims is what a signed command says [CMD-2].
type Claims struct {
	Command   CommandID
	Unit      Unit
	Action    Action
	Attention *Attention
	Lane      Lane
	Seq       int64
	IssuedAt  time.Time // whole seconds
	Expires   time.Time // whole seconds
	Trace     string    // W3C traceparent; empty: none
}

// Claims returns what is signed for the command.
func (c *Command) Claims() Claims {
	return Claims{
		Command: c.ID, Unit: c.Unit, Action: c.Action, Attention: c.Attention, Lane: c.Lane, Seq: c.Seq,
		IssuedAt: c.Requested.Truncate(expiryUnit), Expires: c.Expires(), Trace: c.Trace,
	}
}

// KeptFor is how long a repeated request is recognised by its idempotency key.
const KeptFor = 24 * time.Hour

// IdempotencyKey is a caller's own name for one request, under which it may be repeated
// without being carried out twice. Its scope is the caller.
type IdempotencyKey struct {
	Agency      AgencyID // of the caller; zero: not bound to one
	Subject     string
	Key         string
	Fingerprint [sha256.Size]byte // of the request: another one under the same key is a mistake
}

// CommandQuery selects commands. Zero fields select everything.
type CommandQuery struct {
	Agency  AgencyID // that gave them
	Vehicle VehicleID
	Actor   string    // subject
	States  []State   // nil: all; empty: none
	From    time.Time // requested; inclusive
	To      time.Time // exclusive
	Before  CommandID // only those with a lesser id; uuid.Nil: from the newest
	Limit   int       // at most this many; zero: any number
}

// BulkID identifies an order to many vehicles; uuid.Nil: to one.
type BulkID = uuid.UUID

// Halt stops all commands of an agency, or of all agencies, before they are published.
type Halt struct {
	Agency AgencyID // zero: of all agencies
	Why    string
	By     string
	Since  time.Time
}

// HaltEffect counts what a halt stops now.
type HaltEffect struct {
	Vehicles int // of its agencies
	Withheld int // open commands that are not recorded as sent: they are not sent
	InFlight int // sent before and still open: they may be executed, not sent again
}

// Halts are the halts in force.
type Halts []Halt

// Stops returns the halt that stops an agency's commands, if there is one.
func (hs Halts) Stops(agency AgencyID) (Halt, bool) {
	for _, h := range hs {
		if h.Agency == 0 || h.Agency == agency {
			return h, true
		}
	}
	return Halt{}, false
}

// HaltChange says that a halt was put in force, has another reason, or was lifted.
type HaltChange struct {
	Halt
	InForce bool
}

// Changes returns how the halts in force differ from what they were before. A halt that is the same
// but for its reason is in force anew.
func (hs Halts) Changes(before Halts) []HaltChange {
	var changes []HaltChange
	for _, h := range before {
		if !slices.ContainsFunc(hs, func(now Halt) bool { return now.Agency == h.Agency }) {
			changes = append(changes, HaltChange{Halt: h})
		}
	}
	for _, h := range hs {
		if !slices.ContainsFunc(before, func(was Halt) bool { return was.Agency == h.Agency && was.Since.Equal(h.Since) && was.Why == h.Why }) {
			changes = append(changes, HaltChange{Halt: h, InForce: true})
		}
	}
	return changes
}

// Event returns the event of a change, which is of no vehicle.
func (c HaltChange) Event(at time.Time) Event {
	return Event{Kind: HaltEvent, Agency: c.Agency, At: at, Halt: &c}
}
