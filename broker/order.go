package broker

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func newCommand(order *delivery.Order, instance string, now time.Time) *telematics.Command {
	budget := cmp.Or(order.Budget, telematics.DefaultBudget)
	budget = min(max(budget, telematics.MinBudget), telematics.MaxBudget)
	now = now.Truncate(time.Millisecond)
	return &telematics.Command{
		// Version 7 grows with time, which keeps the index of commands compact.
		ID: uuid.Must(uuid.NewV7()), Vehicle: order.Vehicle, Agency: order.Actor.Agency, Action: order.Action,
		Attention: order.Attention, Lane: order.Action.Lane(), Instance: instance, Actor: order.Actor,
		RequestID: order.RequestID, Bulk: order.Bulk, Booking: order.Booking, Key: order.Idempotency,
		State: telematics.Accepted, Requested: now, Deadline: now.Add(budget),
	}
}

type readVehicle func(context.Context, telematics.VehicleID) (*telematics.Twin, error)

func (b *Broker) readTwin(ctx context.Context, id telematics.VehicleID) (*telematics.Twin, error) {
	twin, err := b.config.Vehicles.Twin(ctx, id)
	return &twin, err
}

// check is the accept step: it resolves the vehicle and its unit, looks for an earlier order under
// the idempotency key, and checks the preconditions.
func (b *Broker) check(
	ctx context.Context, c *telematics.Command, lookup *delivery.KeyLookup, read readVehicle,
) (delivery.Receipt, *telematics.Error) {
	twin, refusal := b.resolveVehicle(ctx, c, read)
	if refusal != nil {
		return delivery.Receipt{Command: c}, refusal
	}
	receipt, refusal := b.findDuplicate(ctx, c, lookup)
	if refusal != nil || receipt.Replayed {
		return receipt, refusal
	}
	return receipt, b.checkPreconditions(ctx, twin, c.Action, c.Requested)
}

// resolveVehicle reads the vehicle of a command, and addresses the command to its unit.
func (b *Broker) resolveVehicle(ctx context.Context, c *telematics.Command, read readVehicle) (*telematics.Twin, *telematics.Error) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	twin, err := read(ctx, c.Vehicle)
	var refusal *telematics.Error
	switch {
	case errors.As(err, &refusal):
		return nil, refusal
	case err != nil:
		return nil, telematics.Unavailable("Postgres", err)
	case !c.Actor.Sees(twin.AgencyID):
		return nil, telematics.NoSuchVehicle(c.Vehicle)
	}
	c.Agency, c.Unit, c.Protocol, c.Installation, c.Version = twin.AgencyID, twin.Unit, twin.Protocol, twin.Installation, twin.Version
	c.Assurance = b.config.Dialects.Assurance(twin.Protocol, twin.Installation, c.Action)
	b.bestEffort.Prepare(c, twin)
	return twin, nil
}

// findDuplicate returns the command of an earlier order with the same idempotency key. It uses the
// result of lookup; for nil, it looks the key up. Without an earlier order it returns c: the claim
// still detects a key that is used later.
func (b *Broker) findDuplicate(
	ctx context.Context, c *telematics.Command, lookup *delivery.KeyLookup,
) (delivery.Receipt, *telematics.Error) {
	key, own := c.Key, delivery.Receipt{Command: c}
	if key == nil {
		return own, nil
	}
	if lookup == nil {
		var err error
		if lookup, err = b.lookUpKey(ctx, *key); err != nil {
			return own, telematics.Unavailable("Postgres", err)
		}
	}
	switch {
	case !lookup.Found:
		return own, nil
	case lookup.Result.Fingerprint != key.Fingerprint:
		return own, telematics.KeyMismatch()
	}
	command := lookup.Result.Command
	return delivery.Receipt{Command: &command, Replayed: true}, nil
}

func (b *Broker) lookUpKey(ctx context.Context, key telematics.IdempotencyKey) (*delivery.KeyLookup, error) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	made, found, err := b.config.Commands.FindByKey(ctx, key)
	return &delivery.KeyLookup{Result: made, Found: found}, err
}

// Refusal returns why an order of an action would be refused now, nil: it would not be.
func (b *Broker) Refusal(ctx context.Context, twin *telematics.Twin, action telematics.Action) *telematics.Error {
	return b.checkPreconditions(ctx, twin, action, b.now())
}

// checkPreconditions refuses all actions while the clock is wrong, an operator has halted the
// agency, the halts cannot be read, the unit is offline or the MQTT broker unavailable; and an
// action that the vehicle does not support, or that recent telemetry forbids.
func (b *Broker) checkPreconditions(ctx context.Context, twin *telematics.Twin, action telematics.Action, now time.Time) *telematics.Error {
	if wrong := b.clock.err(); wrong != nil {
		return telematics.Unavailable(theExactTime, wrong)
	}
	halt, halted, err := b.halt(ctx, twin.AgencyID)
	switch {
	case err != nil:
		return telematics.Unavailable("Postgres", err)
	case halted:
		return telematics.Halted(halt)
	}
	if refusal := b.config.Dialects.Refuse(twin, action, now); refusal != nil {
		return refusal
	}
	if forbidden := twin.Snapshot.Forbids(action, now); forbidden != nil {
		return forbidden
	}
	if err := b.config.Publisher.Ready(twin.Unit); err != nil {
		return telematics.Unavailable("The MQTT broker", err)
	}
	return nil
}

// recordRefusal adds the audit log entry of an order whose command was not sent [LAW-9]. A bulk has
// one entry for all its vehicles that do not exist.
func (b *Broker) recordRefusal(ctx context.Context, order *delivery.Order, c *telematics.Command, refusal *telematics.Error) {
	b.metrics.refused(refusal.Code)
	if order.Bulk != telematics.NoCommand && refusal.Code == telematics.VehicleNotFound {
		return
	}
	entry := b.newEntry(order, c)
	entry.Code = refusal.Code
	if refusal.Code == telematics.TelematicsUnavailable { // the vehicle's agency was not confirmed
		entry.Agency = order.Actor.Agency
	}
	if refusal.Code == telematics.IdempotencyInProgress { // of the first request
		entry.Command = refusal.Command
	} else {
		entry.Outcome, entry.Latency = telematics.NotExecuted, b.now().Sub(c.Requested)
	}
	b.Record(ctx, entry)
}

// recordDuplicate adds the audit log entry of an order that repeats an earlier one.
func (b *Broker) recordDuplicate(ctx context.Context, order *delivery.Order, earlier *telematics.Command) {
	entry := b.newEntry(order, earlier)
	entry.Code, entry.Command = telematics.IdempotencyReplayed, earlier.ID
	b.Record(ctx, entry)
}

// newEntry returns the audit log entry of an order, dated by recordTime. Its latency is zero, which
// is right for a repetition: that is answered immediately.
func (b *Broker) newEntry(order *delivery.Order, c *telematics.Command) telematics.Activity {
	return telematics.Activity{
		At: b.recordTime(), Actor: order.Actor, Agency: c.Agency, Vehicle: order.Vehicle, Booking: order.Booking,
		Action: telematics.CommandActivity(order.Action), Attention: order.Attention,
		RequestID: order.RequestID,
	}
}
