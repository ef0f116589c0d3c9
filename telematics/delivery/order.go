// Package delivery holds the types that the broker and its stores exchange about commands and
// messages: an order, the claim of a lane, a pending entry, a settlement, an observation. It holds
// no connection and does no I/O.
package delivery

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// Order is a caller's request for an action on a vehicle, within a budget.
type Order struct {
	Vehicle     telematics.VehicleID
	Action      telematics.Action
	Attention   *telematics.Attention // with AttentionSignal only
	Budget      time.Duration         // MinBudget to MaxBudget; zero: DefaultBudget
	Actor       telematics.Actor
	RequestID   uuid.UUID
	Idempotency *telematics.IdempotencyKey // nil: a repetition is a new order
	Lookup      *KeyLookup                 // a recent look-up of that key; nil: there was none
	Bulk        telematics.BulkID          // the bulk that it is part of; uuid.Nil: none
	Booking     int64                      // on behalf of which it is ordered; zero: none
	// Allowed is asked once the command has its lane, before it is published: what it reads then
	// cannot be changed by an earlier command of the lane any more. Its error, a *telematics.Error,
	// expires the command. Nil: it is allowed.
	Allowed func(context.Context) error
}

// BulkOrder is a caller's request for one action on many vehicles.
type BulkOrder struct {
	telematics.Bulk
	Budget time.Duration // of each command, as in Order
	// Admit may refuse a vehicle before its order, for example when its rate limit is used up. A
	// nil function, or a nil result, refuses nothing.
	Admit func(context.Context, telematics.VehicleID) *telematics.Error
}

// Receipt is the result of an order.
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

// Claim is the result of an attempt to claim a lane for a command.
type Claim struct {
	Seq      int64               // of the command, if it got the lane; else zero
	Occupant *telematics.Command // the command that is open in the lane, or awaits its answer
	KeyTaken bool                // the idempotency key was used already, and nothing was written
	Stale    bool                // the vehicle has another version, and nothing was written
	At       time.Time           // by the clock of Postgres, if it got the lane; zero: unknown
}

// Taken reports whether the command got the lane.
func (c Claim) Taken() bool { return c.Seq != 0 && c.Occupant == nil }

// Pending is a pending entry: a command in flight, and the instance at which its caller waits.
type Pending struct {
	Command  telematics.CommandID
	Vehicle  telematics.VehicleID
	Unit     telematics.Unit
	Instance string
	Deadline time.Time
}

// The steps of a command. For each, its trace (package tracing) has a span of that name, and an
// execution trace (runtime/trace) has a region, which show where the time is spent.
const (
	// StepHTTP is a request, from its headers to its response.
	StepHTTP = "http"
	// StepAdmit authenticates the caller and checks roles, limits and the contract.
	StepAdmit = "admit"
	// StepLookUp resolves the vehicle and checks the order against it.
	StepLookUp = "look up vehicle"
	// StepClaim takes the lane and writes the row: a commit of Postgres.
	StepClaim = "claim"
	StepSign  = "sign"
	// StepRegister is the rest of the wait until the pending entry is in Redis: the round trip
	// begins together with the claim.
	StepRegister = "register"
	// StepPublish lasts until the MQTT client has accepted the message; one for each attempt.
	StepPublish = "publish"
	// StepAwait lasts from there until the caller's goroutine has the result: MQTT, the unit, and
	// the next four steps.
	StepAwait = "await answer"
	// StepDecode decodes an answer; a command may have several.
	StepDecode = "decode answer"
	// StepMerge merges the report of an answer, batched with others, into the state in Redis.
	StepMerge = "merge report"
	// StepSettle settles the command and writes its audit log entry: a commit of Postgres.
	StepSettle = "settle"
	// StepReport is the rest of the wait until the report of an answer is in Redis.
	StepReport = "await report"
	// StepAnswer writes the response to the caller.
	StepAnswer = "answer"
)

// Names of spans other than steps.
const (
	// SpanCommand lasts from the order until the command is settled. Its traceparent is in the
	// signed message.
	SpanCommand = "command"
	// SpanUnit, followed by the state of a unit's answer, lasts from the publication until the
	// answer has arrived.
	SpanUnit = "unit "
)

// Steps lists the steps in the order in which they begin.
var Steps = []string{
	StepHTTP, StepAdmit, StepLookUp, StepClaim, StepSign, StepRegister, StepPublish, StepAwait, StepDecode, StepMerge,
	StepSettle, StepReport, StepAnswer,
}
