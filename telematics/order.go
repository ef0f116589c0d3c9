package telematics

import (
	"time"

	"github.com/google/uuid"
)

// Order is what a caller asks for: an action on a vehicle, within a budget.
type Order struct {
	Vehicle     VehicleID
	Action      Action
	Attention   *Attention    // with AttentionSignal only
	Budget      time.Duration // MinBudget to MaxBudget; zero: DefaultBudget
	Actor       Actor
	RequestID   uuid.UUID
	Idempotency *IdempotencyKey // nil: a repetition is a new order
	Lookup      *KeyLookup      // of that key, a moment ago; nil: it was not looked up
	Bulk        BulkID          // the order to many vehicles that it is part of
	Booking     int64           // whose client orders it; zero: none
}

// Receipt is what an order has led to.
type Receipt struct {
	Command  *Command // nil: the order was refused
	Replayed bool     // made by an earlier order under the same idempotency key
}
