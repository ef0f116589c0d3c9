package broker

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// Send carries out an order and waits until it is settled: by the vehicle's
// answer, or by the end of its budget. It returns the command as the record has
// it, and a *telematics.Error unless the vehicle did it; a refused order returns
// the zero command. A context that ends does not take a command back: a caller
// that hangs up only does not hear of it.
func (b *Broker) Send(ctx context.Context, order telematics.Order) (telematics.Command, error) {
	ctx = context.WithoutCancel(ctx)
	c, refusal := b.accept(ctx, order)
	if refusal != nil {
		b.recordRefusal(ctx, order, c, refusal)
		return telematics.Command{}, refusal
	}
	settled, err := b.carry(ctx, c)
	if err != nil {
		return settled, err
	}
	return settled, nil
}

// accept turns an order into a command whose row is written and whose lane is
// ours. The command that comes with a refusal says as much as is known.
func (b *Broker) accept(ctx context.Context, order telematics.Order) (telematics.Command, *telematics.Error) {
	c := newCommand(order, b.Instance)
	twin, refusal := b.vehicle(ctx, order)
	if refusal != nil {
		return c, refusal
	}
	c.Agency, c.Unit = twin.AgencyID, twin.Unit
	if refusal := judge(twin, order.Action, c.Requested); refusal != nil {
		return c, refusal
	}
	if err := b.Air.Ready(); err != nil {
		return c, telematics.Unavailable("The MQTT broker", err)
	}
	return b.claim(ctx, c)
}

func newCommand(order telematics.Order, instance string) telematics.Command {
	budget := order.Budget
	if budget == 0 {
		budget = telematics.DefaultBudget
	}
	budget = min(max(budget, telematics.MinBudget), telematics.MaxBudget)
	now := time.Now().UTC().Truncate(time.Millisecond)
	return telematics.Command{
		// Version 7 grows with time, which keeps the index of commands compact.
		ID: uuid.Must(uuid.NewV7()), Vehicle: order.Vehicle, Agency: order.Actor.Agency,
		Action: order.Action, Attention: order.Attention, Lane: order.Action.Lane(),
		Instance: instance, Actor: order.Actor, RequestID: order.RequestID,
		State: telematics.Accepted, Requested: now, Deadline: now.Add(budget),
	}
}

func (b *Broker) vehicle(ctx context.Context, order telematics.Order) (telematics.Twin, *telematics.Error) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	twin, err := b.Vehicles.Twin(ctx, order.Vehicle)
	var known *telematics.Error
	switch {
	case errors.As(err, &known):
		return telematics.Twin{}, known
	case err != nil:
		return telematics.Twin{}, telematics.Unavailable("Postgres", err)
	case !order.Actor.Sees(twin.AgencyID):
		return telematics.Twin{}, telematics.NoSuchVehicle(order.Vehicle)
	}
	return twin, nil
}

// judge refuses what need not be asked: what the vehicle does not have, a unit that is
// away, and what fresh telemetry forbids.
func judge(twin telematics.Twin, action telematics.Action, now time.Time) *telematics.Error {
	switch {
	case twin.Unit == "" || !twin.Supports(action):
		return telematics.NotSupported(action)
	case twin.Contact.Away(now):
		return telematics.AwayFor(twin.Contact, now)
	}
	return twin.Snapshot.Forbids(action, now)
}

// claim writes the row and takes the lane. An occupant that is overdue is settled
// first: its owner did not, so it is gone, or about to.
func (b *Broker) claim(ctx context.Context, c telematics.Command) (telematics.Command, *telematics.Error) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	for evicted := false; ; evicted = true {
		claim, err := b.Commands.Claim(ctx, c) // [LAW-1] [LAW-5]
		var known *telematics.Error
		switch {
		case errors.As(err, &known):
			return c, known
		case err != nil:
			// The row may be there all the same, and nothing will be published.
			b.owed.add(telematics.Settlement{Command: c.ID, State: telematics.Expired, At: time.Now().UTC()})
			return c, telematics.Unavailable("Postgres", err)
		}
		if claim.Occupant != nil && claim.Occupant.ID == c.ID { // taken by an attempt whose answer was lost
			claim = telematics.Claim{Seq: claim.Occupant.Seq}
		}
		if claim.Occupant == nil {
			c.Seq = claim.Seq
			return c, nil
		}
		if evicted || time.Now().Before(claim.Occupant.Deadline) {
			return c, telematics.InProgress(*claim.Occupant, time.Now())
		}
		_ = b.abandon(ctx, *claim.Occupant) // logged there; the next attempt tells
	}
}

// recordRefusal adds the line of an order that never became a command on the air [LAW-9].
func (b *Broker) recordRefusal(ctx context.Context, order telematics.Order, c telematics.Command, refusal *telematics.Error) {
	line := telematics.Activity{
		At: time.Now().UTC(), Actor: order.Actor, Agency: c.Agency, Vehicle: order.Vehicle,
		Action: telematics.CommandActivity(order.Action), Attention: order.Attention,
		Outcome: telematics.NotExecuted, Code: refusal.Code, RequestID: order.RequestID,
		Latency: time.Since(c.Requested),
	}
	ctx, cancel := b.step(ctx)
	defer cancel()
	if err := b.History.Add(ctx, line); err != nil {
		b.Logger.Error("refusal missing from the history", "vehicle", order.Vehicle, "action", order.Action,
			"code", refusal.Code, "request_id", order.RequestID, "err", err)
	}
}
