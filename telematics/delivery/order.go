// Package delivery is what the broker and its stores say to each other about commands and messages:
// an order, the claim of a lane, a pending entry, a settlement, an observation. It holds no
// connection and does no I/O.
package delivery

import (
	"context"
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

// BulkOrder is what a caller asks for of many vehicles.
type BulkOrder struct {
	telematics.Bulk
	Budget time.Duration // of each command, as of an Order
	// Admit refuses a vehicle before there is an order for it, such as one whose limit is used up;
	// nil: it refuses none.
	Admit func(context.Context, telematics.VehicleID) *telematics.Error
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

// The steps of a command, by whose names an execution trace (runtime/trace) has regions that tell
// where its time goes. While no trace is taken they cost nothing.
const (
	StepHTTP = "http" // a request, from its headers to its answer
	// Who calls, whether they may, and whether the request is sound.
	StepAdmit = "admit"
	// With what is known of it, and whether anything speaks against the order.
	StepLookUp = "look up vehicle"
	StepClaim  = "claim" // the lane, with the row: a commit of Postgres
	StepSign   = "sign"
	// In the table of pending commands, Redis: it begins with the claim, and this is the wait that
	// is left.
	StepRegister = "register"
	StepPublish  = "publish" // until the MQTT client has taken it, each time
	// From there until the caller's goroutine knows the end: MQTT, the unit, and the three below.
	StepAir    = "air"
	StepDecode = "decode answer" // of which a command may have several
	// Into what Redis has, with all that has been reported at that moment.
	StepMerge  = "merge report"
	StepSettle = "settle" // by an answer, with the audit log entry: a commit of Postgres
	StepAnswer = "answer" // the caller
)

// Steps lists them in the order in which they begin.
var Steps = []string{
	StepHTTP, StepAdmit, StepLookUp, StepClaim, StepSign, StepRegister, StepPublish, StepAir, StepDecode, StepMerge, StepSettle, StepAnswer,
}
