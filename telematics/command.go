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

	// DeadlineTolerance is by how much a stored deadline may lie farther ahead than MaxBudget. Half
	// would do: clocks differ by a second. Double: a command from a clock that had leapt ahead by
	// less than two minutes stays open until its deadline, and not for one.
	DeadlineTolerance = time.Minute
)

// CommandID identifies a command here and on the wire (jti).
type CommandID = uuid.UUID

// Command is one order to one vehicle, with its progress and result. Fields marked "not loaded" are
// set when it is accepted, and zero when it is read from the store.
type Command struct {
	ID       CommandID
	Vehicle  VehicleID
	Agency   AgencyID
	Unit     Unit     // the addressee; only its answers count [ACK-4]
	Protocol Protocol // of the unit; not loaded
	// Of the unit; not loaded.
	Installation Installation
	// The Twin.Version with which it was accepted, which a claim checks; zero: no check; not
	// loaded.
	Version   int64
	Action    Action
	Attention *Attention // parameters; only for AttentionSignal, else nil
	Lane      Lane
	Seq       int64  // grows within a lane, gaps allowed
	Instance  string // the Motorpool instance at which the caller waits
	Actor     Actor
	RequestID uuid.UUID
	Bulk      BulkID          // the bulk that it is part of; uuid.Nil: none
	Booking   int64           // on behalf of which it was ordered; zero: none
	Key       *IdempotencyKey // of the request; not loaded
	State     State
	Reason    string // from the unit, of a closed list [CMD-4]; ByHalt is Motorpool's
	Detail    string // from the unit, such as "moving"; or AcceptedByUnit
	Reported  *Report
	Late      bool // its result is of an answer that came after it was settled
	Overruled bool // the unit first rejected it, and answered later that it was executed
	Attempts  int
	Requested time.Time
	SentAt    time.Time // zero: never
	// When it was published again, up to MaxRetransmissions times; fewer than Attempts-1 where an
	// instance ended before it had stored them.
	Retransmitted []time.Time
	ReceivedAt    time.Time
	Completed     time.Time
	Deadline      time.Time // Requested plus the budget
	Assurance     Promises  // the guarantees of its unit when it was accepted
	BestEffort    BestEffort
	Trace         string // the traceparent that is signed; empty: none; not stored
}

// MaxRetransmissions is how many retransmission times of a command are stored. A command has six
// within MaxBudget. Half still holds them; double takes 60 bytes more for a command that fails.
const MaxRetransmissions = 15

// Publications returns the recorded times at which the command was published.
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

// IsOverdue reports whether the deadline of the command has passed, or is later than that of any
// command that was accepted by now: the clock had leapt ahead when this one was.
func (c *Command) IsOverdue(now time.Time) bool {
	return !now.Before(c.Deadline) || c.Deadline.Sub(now) > MaxBudget+DeadlineTolerance
}

// Budget returns how long the caller waits for the answer at most.
func (c Command) Budget() time.Duration { return c.Deadline.Sub(c.Requested) }

// Latency returns the time from the request to its settlement, zero while open.
func (c Command) Latency() time.Duration {
	if c.Completed.IsZero() {
		return 0
	}
	return max(0, c.Completed.Sub(c.Requested)) // another instance's clock may be behind
}

// Claims is the content of a signed command [CMD-2].
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

// Claims returns the content to be signed for the command.
func (c *Command) Claims() Claims {
	return Claims{
		Command: c.ID, Unit: c.Unit, Action: c.Action, Attention: c.Attention, Lane: c.Lane, Seq: c.Seq,
		IssuedAt: c.Requested.Truncate(expiryUnit), Expires: c.Expires(), Trace: c.Trace,
	}
}

// KeptFor is how long a repeated request is recognised by its idempotency key.
const KeptFor = 24 * time.Hour

// IdempotencyKey is a caller's name for one request: repeated under the same key, the request
// is not executed twice. Its scope is the caller.
type IdempotencyKey struct {
	Agency      AgencyID // of the caller; zero: not bound to one
	Subject     string
	Key         string
	Fingerprint [sha256.Size]byte // of the request; another one under the same key is an error
}

// CommandQuery selects commands. Zero fields select everything.
type CommandQuery struct {
	Agency  AgencyID // of the command
	Vehicle VehicleID
	Actor   string    // subject
	States  []State   // nil: all; empty: none
	From    time.Time // requested; inclusive
	To      time.Time // exclusive
	Before  CommandID // only those with a lesser id; uuid.Nil: from the newest
	Limit   int       // at most this many; zero: any number
}

// BulkID identifies a bulk; uuid.Nil: an order to one vehicle.
type BulkID = uuid.UUID

// Halt stops all commands of an agency, or of all agencies, before they are published.
type Halt struct {
	Agency AgencyID // zero: of all agencies
	Why    string
	By     string
	Since  time.Time
}

// HaltEffect counts the vehicles and commands that a halt affects now.
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

// HaltChange is a halt that was put in force, got another reason, or was lifted.
type HaltChange struct {
	Halt
	InForce bool
}

// Changes returns the difference from the halts that were in force before. A halt with another
// reason or start is returned as put in force.
func (hs Halts) Changes(before Halts) []HaltChange {
	var changes []HaltChange
	for _, h := range before {
		if !slices.ContainsFunc(hs, func(now Halt) bool { return now.Agency == h.Agency }) {
			changes = append(changes, HaltChange{Halt: h})
		}
	}
	for _, h := range hs {
		if !slices.ContainsFunc(
			before,
			func(was Halt) bool { return was.Agency == h.Agency && was.Since.Equal(h.Since) && was.Why == h.Why },
		) {
			changes = append(changes, HaltChange{Halt: h, InForce: true})
		}
	}
	return changes
}

// Event returns the event of the change. It belongs to no vehicle.
func (c HaltChange) Event(at time.Time) Event {
	return Event{Kind: HaltEvent, Agency: c.Agency, At: at, Halt: &c}
}
