package telematics

import (
	"time"

	"github.com/google/uuid"
)

// MaxBulk is the largest number of vehicles of one bulk command.
const MaxBulk = 1000

// BulkFor is how long a bulk may start commands for further vehicles. The commands started by then
// are stored or refused within bulkGrace, which includes the difference of clocks. If a vehicle has
// neither a command nor a refusal after both, the instance died before it came to the vehicle, and
// nothing was sent.
const (
	BulkFor   = 30 * time.Second
	bulkGrace = 15 * time.Second
)

// Bulk is one order to many vehicles.
type Bulk struct {
	ID        BulkID
	Action    Action
	Attention *Attention // with AttentionSignal only
	Vehicles  []VehicleID
	Actor     Actor
	RequestID uuid.UUID
	Requested time.Time
	Key       *IdempotencyKey // of the request; not loaded from the store
	Items     []BulkItem      // one for each vehicle, in their order
}

// BulkItem is the result of a bulk for one vehicle.
type BulkItem struct {
	Vehicle VehicleID
	Command *Command // nil: none was made, or not yet
	Refusal *Error   // why none was made
}

// CountedBulk is an order to many vehicles without its items, and how many vehicles have each
// outcome; Undecided: their commands are open.
type CountedBulk struct {
	Bulk
	Outcomes map[Outcome]int
}

// BulkQuery selects orders to many vehicles.
type BulkQuery struct {
	Agency AgencyID // of who ordered it; zero: any
	Before BulkID   // only those with a lesser id; uuid.Nil: from the newest
	Limit  int
}

// Abandoned returns the error for a vehicle without a result to which no instance will send a
// command any more; nil: one still may.
func (b Bulk) Abandoned(now time.Time) *Error {
	if now.Sub(b.Requested) <= BulkFor+bulkGrace {
		return nil
	}
	return &Error{Code: TelematicsUnavailable, Outcome: NotExecuted, Retryable: true, RetryAfter: retryUnavailable,
		Message: "The service stopped before it reached this vehicle; nothing was sent."}
}
