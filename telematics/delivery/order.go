package delivery

import (
	"crypto/sha256"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// Order is what a caller asks for: an action on a vehicle, within a budget.
type Order struct {
	Vehicle     telematics.VehicleID
	Action      telematics.Action
	Attention   *telematics.Attention // with AttentionSignal only
	Budget      time.Duration         // MinBudget to MaxBudget; zero: DefaultBudget
	Actor       telematics.Actor
	RequestID   uuid.UUID
	Idempotency *telematics.IdempotencyKey // nil: a repetition is a new order
	Lookup      *KeyLookup                 // of that key, a moment ago; nil: it was not looked up
	Bulk        telematics.BulkID          // the order to many vehicles that it is part of
	Booking     int64                      // whose client orders it; zero: none
}

// Receipt is what an order has led to.
type Receipt struct {
	Command  *telematics.Command // nil: the order was refused
	Replayed bool                // made by an earlier order under the same idempotency key
}

// Made is what the first request under an idempotency key led to: a command, or many.
type Made struct {
	Fingerprint [sha256.Size]byte
	Command     telematics.Command // as it is now; zero: it ordered many
	Bulk        telematics.BulkID
}

// KeyLookup is what the record had under an idempotency key.
type KeyLookup struct {
	Made  Made
	Found bool
}

// Claim is the answer to an attempt to take a lane.
type Claim struct {
	Seq      int64               // of the command, where the lane is ours; else zero
	Occupant *telematics.Command // open in the lane
	KeyTaken bool                // the idempotency key was used already, and nothing was written
	At       time.Time           // by the record's clock, where the lane is ours; zero: not known
}

// Taken reports whether the lane is ours.
func (c Claim) Taken() bool { return c.Seq != 0 && c.Occupant == nil }

// Pending is a command that waits for its answer, and where it waits.
type Pending struct {
	Command  telematics.CommandID
	Vehicle  telematics.VehicleID
	Unit     telematics.Unit
	Instance string
	Deadline time.Time
}
