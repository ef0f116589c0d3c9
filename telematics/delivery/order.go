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

// KeyResult is the result of the first request under an idempotency key: a command, or a bulk.
type KeyResult struct {
	Fingerprint [sha256.Size]byte
	Command     telematics.Command // in its present state; zero: it is a bulk
	Bulk        telematics.BulkID
}

// KeyLookup is what Postgres had under an idempotency key.
type KeyLookup struct {
	Result KeyResult
	Found  bool
}

// Claim is the answer to an attempt to take a lane.
type Claim struct {
	Seq      int64               // of the command, where the lane is ours; else zero
	Occupant *telematics.Command // open in the lane, or awaiting its answer there
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

// The steps of a command. Its trace (package tracing) has a span of that name for each, and an
// execution trace (runtime/trace) a region, which show where a command's time goes.
const (
	// StepHTTP is a request, from its headers to its answer.
	StepHTTP = "http"
	// StepAdmit authenticates the caller and checks roles, limits and the contract.
	StepAdmit = "admit"
	// StepLookUp resolves the vehicle and checks the order against it.
	StepLookUp = "look up vehicle"
	// StepClaim takes the lane and writes the row: a commit of Postgres.
	StepClaim = "claim"
	StepSign  = "sign"
	// StepRegister is the rest of the wait for the pending table (Redis): the round trip begins
	// with the claim.
	StepRegister = "register"
	// StepPublish lasts until the MQTT client has taken the message, each time.
	StepPublish = "publish"
	// StepAwait follows, until the caller's goroutine has the result: MQTT, the unit, and the four
	// below.
	StepAwait = "await answer"
	// StepDecode decodes an answer, of which a command may have several.
	StepDecode = "decode answer"
	// StepMerge merges the report of an answer, and others, into the state in Redis.
	StepMerge = "merge report"
	// StepSettle settles the command and writes its audit log entry: a commit of Postgres.
	StepSettle = "settle"
	// StepReport is the rest of the wait until the report of an answer is in Redis.
	StepReport = "await report"
	// StepAnswer answers the caller.
	StepAnswer = "answer"
)

// Spans of a trace that are no steps.
const (
	// SpanCommand lasts from the order until the command is settled. Its traceparent is in the
	// signed message.
	SpanCommand = "command"
	// SpanUnit, with the state that a unit answers, lasts from the publication until the answer has
	// arrived.
	SpanUnit = "unit "
)

// Steps lists them in the order in which they begin.
var Steps = []string{
	StepHTTP, StepAdmit, StepLookUp, StepClaim, StepSign, StepRegister, StepPublish, StepAwait, StepDecode, StepMerge, StepSettle, StepReport, StepAnswer,
}
