package broker

import (
	"context"
	"errors"
	"fmt"
	"runtime/trace"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// Send carries out an order and waits until it is settled: by the vehicle's
// answer, or by the end of its budget. It returns the command as the record has
// it, and a *telematics.Error unless the vehicle did it; a refused order has
// none. A context that ends does not take a command back: a caller
// that hangs up only does not hear of it.
//
// An order that repeats an earlier one, by its idempotency key, is not carried out
// again: Send answers at once with what has become of the first.
func (b *Broker) Send(ctx context.Context, order *telematics.Order) (telematics.Receipt, error) {
	ctx = context.WithoutCancel(ctx)
	receipt, refusal := b.take(ctx, order, true)
	switch {
	case refusal != nil:
		return receipt, refusal
	case receipt.Replayed:
		return receipt, orNil(receipt.Command.Err())
	}
	settled, err := b.carry(ctx, b.launch(ctx, receipt.Command))
	return telematics.Receipt{Command: settled}, orNil(err)
}

// Start is Send for a caller that does not wait: it returns once the command is
// written down and has its lane, and carries it out beside. A repeated order returns
// the command as it is now.
func (b *Broker) Start(ctx context.Context, order *telematics.Order) (telematics.Receipt, error) {
	ctx = context.WithoutCancel(ctx)
	receipt, refusal := b.take(ctx, order, false)
	if refusal != nil {
		return receipt, refusal
	}
	if !receipt.Replayed {
		b.flights.Go(func() {
			_, _ = b.carry(ctx, b.launch(ctx, receipt.Command)) // the record tells how it ended
		})
	}
	return receipt, nil
}

// Drain waits until every started command is settled, or the context ends. Call it when
// nothing is started any more.
func (b *Broker) Drain(ctx context.Context) error {
	settled := make(chan struct{})
	go func() {
		b.flights.Wait()
		close(settled)
	}()
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for commands under way: %w", ctx.Err())
	}
}

// orNil keeps a nil *telematics.Error from becoming an error that is not nil.
func orNil(err *telematics.Error) error {
	if err == nil {
		return nil
	}
	return err
}

// take accepts an order, or finds what it repeats; who waits for the vehicle is refused
// while the first is still under way. What is not carried out leaves its line of the
// history here [LAW-9].
func (b *Broker) take(ctx context.Context, order *telematics.Order, waits bool) (telematics.Receipt, *telematics.Error) {
	receipt, refusal := b.accept(ctx, order)
	if refusal == nil && waits && receipt.Replayed && receipt.Command.State.IsOpen() {
		refusal = telematics.StillOpen(*receipt.Command)
	}
	if refusal != nil {
		b.metrics.refused(refusal.Code)
		if order.Bulk == telematics.NoCommand || refusal.Code != telematics.VehicleNotFound { // of which a bulk has one line for all
			b.recordRefusal(ctx, order, receipt.Command, refusal)
		}
		return telematics.Receipt{}, refusal
	}
	if receipt.Replayed {
		b.recordReplay(ctx, order, receipt.Command)
	}
	return receipt, nil
}

// accept turns an order into a command whose row is written and whose lane is
// ours. The command that comes with a refusal says as much as is known.
func (b *Broker) accept(ctx context.Context, order *telematics.Order) (telematics.Receipt, *telematics.Error) {
	now := b.now()
	if receipt, refusal, decided := b.acceptRemembered(ctx, order, now); decided {
		return receipt, refusal
	}
	receipt, refusal := b.consider(ctx, newCommand(order, b.Instance, now))
	if refusal != nil || receipt.Replayed {
		return receipt, refusal
	}
	receipt, refusal, _ = b.claim(ctx, receipt.Command)
	return receipt, refusal
}

// consider addresses a command that nothing speaks against, or finds what it repeats.
func (b *Broker) consider(ctx context.Context, c *telematics.Command) (telematics.Receipt, *telematics.Error) {
	defer trace.StartRegion(ctx, telematics.StepLookUp).End()
	read := b.Vehicles.Record
	if c.Action.Conditional() {
		read = b.Vehicles.Twin
	}
	twin, refusal := b.address(ctx, c, read)
	if refusal != nil {
		return telematics.Receipt{Command: c}, refusal
	}
	receipt, refusal := b.weigh(ctx, c, twin)
	if refusal != nil && refusal.Code == telematics.VehicleOffline && !c.Action.Conditional() { // there may be a newer sign of life
		if twin, refusal = b.address(ctx, c, b.Vehicles.Twin); refusal == nil {
			refusal = b.judge(ctx, twin, c.Action, c.Requested)
		}
	}
	return receipt, refusal
}

// weigh finds what an addressed command repeats, or what speaks against it.
func (b *Broker) weigh(ctx context.Context, c *telematics.Command, twin *telematics.Twin) (telematics.Receipt, *telematics.Error) {
	receipt, refusal := b.repeated(ctx, c)
	if refusal != nil || receipt.Replayed {
		return receipt, refusal
	}
	return receipt, b.judge(ctx, twin, c.Action, c.Requested)
}

func newCommand(order *telematics.Order, instance string, now time.Time) *telematics.Command {
	budget := order.Budget
	if budget == 0 {
		budget = telematics.DefaultBudget
	}
	budget = min(max(budget, telematics.MinBudget), telematics.MaxBudget)
	now = now.Truncate(time.Millisecond)
	return &telematics.Command{
		// Version 7 grows with time, which keeps the index of commands compact.
		ID: uuid.Must(uuid.NewV7()), Vehicle: order.Vehicle, Agency: order.Actor.Agency,
		Action: order.Action, Attention: order.Attention, Lane: order.Action.Lane(),
		Instance: instance, Actor: order.Actor, RequestID: order.RequestID, Bulk: order.Bulk, Booking: order.Booking, Key: order.Idempotency,
		State: telematics.Accepted, Requested: now, Deadline: now.Add(budget),
	}
}

// address reads the vehicle of a command, and addresses the command to its unit.
func (b *Broker) address(ctx context.Context, c *telematics.Command,
	read func(context.Context, telematics.VehicleID) (telematics.Twin, error)) (*telematics.Twin, *telematics.Error) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	twin, err := read(ctx, c.Vehicle)
	var known *telematics.Error
	switch {
	case errors.As(err, &known):
		return nil, known
	case err != nil:
		return nil, telematics.Unavailable("Postgres", err)
	case !c.Actor.Sees(twin.AgencyID):
		return nil, telematics.NoSuchVehicle(c.Vehicle)
	}
	addressTo(c, &twin)
	return &twin, nil
}

func addressTo(c *telematics.Command, twin *telematics.Twin) {
	c.Agency, c.Unit, c.Protocol = twin.AgencyID, twin.Unit, twin.Protocol
}

// judge refuses what need not be asked: all while the clock is wrong, what an operator has halted, what the vehicle does
// not have, a unit that is away, and what fresh telemetry forbids.
func (b *Broker) judge(ctx context.Context, twin *telematics.Twin, action telematics.Action, now time.Time) *telematics.Error {
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
	if refusal := b.Dialects.Refuse(*twin, action, now); refusal != nil {
		return refusal
	}
	if forbidden := twin.Snapshot.Forbids(action, now); forbidden != nil {
		return forbidden
	}
	if err := b.Air.Ready(); err != nil {
		return telematics.Unavailable("The MQTT broker", err)
	}
	return nil
}

// claim writes the row and takes the lane, and has the command in hand. An occupant that is overdue is settled
// first: its owner did not, so it is gone, or about to. Of a command that is stale nothing is written, and nothing is decided.
func (b *Broker) claim(ctx context.Context, c *telematics.Command) (receipt telematics.Receipt, refusal *telematics.Error, stale bool) {
	defer trace.StartRegion(ctx, telematics.StepClaim).End()
	receipt = telematics.Receipt{Command: c}
	w := b.takeInHand(c)
	ours := false
	defer func() {
		if !ours {
			b.dropFromHand(ctx, w)
		}
	}()
	stepping, cancel := b.step(ctx)
	defer cancel()
	for evicted := false; ; evicted = true {
		claim, err := b.Commands.Claim(stepping, *c) // [LAW-1] [LAW-5]
		var known *telematics.Error
		switch {
		case errors.As(err, &known):
			return receipt, known, false
		case err != nil:
			// The row may be there all the same, and nothing will be published.
			b.owed.add(telematics.Settlement{Command: c.ID, State: telematics.Expired, At: b.recordTime()})
			return receipt, telematics.Unavailable("Postgres", err), false
		case claim.Stale, claim.KeyTaken && c.Version != 0: // by the earlier order nobody has looked whether the version is true
			return receipt, nil, true
		}
		if claim.Occupant != nil && claim.Occupant.ID == c.ID { // taken by an attempt whose answer was lost
			claim = telematics.Claim{Seq: claim.Occupant.Seq}
		}
		if claim.Taken() {
			ours = true // until it has been carried
			c.Seq = claim.Seq
			w.wrongClock = b.checkClock(stepping, c, claim.At)
			b.events.tell(c.Event(c.Requested))
			return receipt, nil, false
		}
		// A twin of this request may have come first, a moment ago.
		if earlier, refusal := b.repeated(stepping, c); refusal != nil || earlier.Replayed {
			return earlier, refusal, false
		}
		if claim.Occupant == nil { // the twin was refused meanwhile, which freed its key
			return receipt, telematics.StillOpen(telematics.Command{}), false
		}
		if evicted || b.now().Before(claim.Occupant.Deadline) {
			return receipt, telematics.InProgress(*claim.Occupant, b.now()), false
		}
		_ = b.abandon(stepping, *claim.Occupant) // logged there; the next attempt tells
	}
}
