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
	receipt, refusal := b.accept(ctx, order, b.now())
	if refusal == nil && !receipt.Replayed {
		receipt, refusal = b.claim(ctx, order, receipt.Command)
	}
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

// accept turns an order into a command that nothing forbids, or finds the command that it repeats. What speaks against the order
// by the cached record of the vehicle, and what needs the vehicle's state, is decided by what is read now. The command that comes
// with a refusal says what is known of it.
func (b *Broker) accept(ctx context.Context, order *telematics.Order, now time.Time) (telematics.Receipt, *telematics.Error) {
	defer trace.StartRegion(ctx, telematics.StepLookUp).End()
	if !order.Action.Conditional() {
		receipt, refusal := b.check(ctx, newCommand(order, b.Instance, now), order.Lookup, b.Vehicles.Resolve)
		if refusal == nil && !receipt.Replayed || refusal != nil && refusal.Code == telematics.TelematicsUnavailable {
			return receipt, refusal
		}
	}
	return b.check(ctx, newCommand(order, b.Instance, now), order.Lookup, b.Vehicles.Twin)
}

type readVehicle func(context.Context, telematics.VehicleID) (telematics.Twin, error)

// check addresses a command to the unit of its vehicle, and finds what it repeats or what forbids it.
func (b *Broker) check(ctx context.Context, c *telematics.Command, lookup *telematics.KeyLookup, read readVehicle) (telematics.Receipt, *telematics.Error) {
	twin, refusal := b.address(ctx, c, read)
	if refusal != nil {
		return telematics.Receipt{Command: c}, refusal
	}
	receipt, refusal := b.repeated(ctx, c, lookup)
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
func (b *Broker) address(ctx context.Context, c *telematics.Command, read readVehicle) (*telematics.Twin, *telematics.Error) {
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
	c.Agency, c.Unit, c.Protocol, c.Version = twin.AgencyID, twin.Unit, twin.Protocol, twin.Version
	return &twin, nil
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

// errNotAccepted ends a claim whose order is not accepted any more, by the record as it is now.
var errNotAccepted = errors.New("the order is not accepted")

// claim writes the command's row and takes its lane, and registers the command concurrently. Where the record of the vehicle has changed
// since the order was accepted, the order is accepted anew before anything is written. An occupant that is overdue is settled
// first: its owner did not, so it is gone, or about to.
func (b *Broker) claim(ctx context.Context, order *telematics.Order, c *telematics.Command) (receipt telematics.Receipt, refusal *telematics.Error) {
	defer trace.StartRegion(ctx, telematics.StepClaim).End()
	receipt = telematics.Receipt{Command: c}
	w := b.takeInHand(c)
	defer func() {
		if w != nil {
			b.dropFromHand(ctx, w)
		}
	}()
	stepping, cancel := b.step(ctx)
	defer cancel()
	accept := func() (*telematics.Command, error) {
		b.dropFromHand(ctx, w)
		w = nil
		if receipt, refusal = b.accept(ctx, order, c.Requested); refusal != nil || receipt.Replayed {
			return nil, errNotAccepted
		}
		w = b.takeInHand(receipt.Command)
		return receipt.Command, nil
	}
	for evicted := false; ; evicted = true {
		claim, err := b.Commands.Claim(stepping, receipt.Command, accept) // [LAW-1] [LAW-5]
		c := receipt.Command
		var known *telematics.Error
		switch {
		case errors.Is(err, errNotAccepted):
			return receipt, refusal
		case errors.As(err, &known):
			return receipt, known
		case err != nil:
			// The row may be there all the same, and nothing will be published.
			b.owed.add(telematics.Settlement{Command: c.ID, State: telematics.Expired, At: b.recordTime()})
			return receipt, telematics.Unavailable("Postgres", err)
		}
		if claim.Occupant != nil && claim.Occupant.ID == c.ID { // taken by an attempt whose answer was lost
			claim = telematics.Claim{Seq: claim.Occupant.Seq}
		}
		if claim.Taken() {
			c.Seq = claim.Seq
			w.wrongClock = b.checkClock(stepping, c, claim.At)
			w = nil // it stays until the command is settled
			b.events.tell(c.Event(c.Requested))
			return receipt, nil
		}
		if claim.KeyTaken { // by the same request, a moment ago
			if receipt, refusal = b.check(stepping, newCommand(order, b.Instance, c.Requested), nil, b.Vehicles.Twin); refusal != nil || receipt.Replayed {
				return receipt, refusal
			}
			return receipt, telematics.StillOpen(telematics.Command{}) // that request was refused meanwhile, which freed its key
		}
		if earlier, refusal := b.repeated(stepping, c, nil); refusal != nil || earlier.Replayed { // likewise
			return earlier, refusal
		}
		if evicted || b.now().Before(claim.Occupant.Deadline) {
			return receipt, telematics.InProgress(*claim.Occupant, b.now())
		}
		_ = b.abandon(stepping, *claim.Occupant) // logged there; the next attempt tells
	}
}
