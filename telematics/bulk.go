package telematics

import (
	"time"

	"github.com/google/uuid"
)

// MaxBulk is the largest number of vehicles of one bulk command.
const MaxBulk = 1000

// BulkFor is how long an order to many vehicles may turn to another one. What it has turned
// to by then is decided within bulkGrace, clocks that differ included. A vehicle for which
// there is neither a command nor a refusal after both has been forgotten by an instance that
// died, and nothing was sent to it.
const (
	BulkFor   = 30 * time.Second
	bulkGrace = 15 * time.Second
)

// Bulk is an order to many vehicles.
type Bulk struct {
	ID        BulkID
	Action    Action
	Attention *Attention // with AttentionSignal only
	Vehicles  []VehicleID
	Actor     Actor
	RequestID uuid.UUID
	Requested time.Time
	Key       *IdempotencyKey // under which it was asked for; not read back
	Items     []BulkItem      // one for each vehicle, in their order
}

// BulkItem is what became of one vehicle of a bulk.
type BulkItem struct {
	Vehicle VehicleID
	Command *Command // nil: none was made, or not yet
	Refusal *Error   // why none was made
}

// Abandoned returns the refusal of a vehicle that no instance will command any more, or nil.
func (b Bulk) Abandoned(now time.Time) *Error {
	if now.Sub(b.Requested) <= BulkFor+bulkGrace {
		return nil
	}
	return &Error{Code: TelematicsUnavailable, Outcome: NotExecuted, Retryable: true, RetryAfter: retryUnavailable,
		Message: "The process that carried out the order ended before it came to this vehicle; nothing was sent."}
}
