package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/broker/besteffort"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/tracing"
)

// Send sends the command of an order, and blocks until it is settled: by the vehicle's answer, or
// at the end of its budget. It returns the settled command, and a *telematics.Error unless the
// vehicle executed it; a refused order has no command. A cancelled context stops neither the
// command nor Send.
//
// An order that repeats an earlier one, by its idempotency key, sends nothing: Send returns the
// settled command of the first order immediately, or telematics.StillOpen while it is in flight.
func (b *Broker) Send(ctx context.Context, order *delivery.Order) (delivery.Receipt, error) {
	ctx, span := tracing.Start(tracing.Detach(ctx), delivery.SpanCommand)
	defer span.End()
	w, receipt, refusal := b.begin(ctx, span, order, true)
	switch {
	case refusal != nil:
		return receipt, refusal
	case receipt.Replayed:
		return receipt, orNil(receipt.Command.Err())
	}
	b.dispatch(ctx, w)
	settled, err := b.await(ctx, w)
	describe(span, order, settled, err)
	return delivery.Receipt{Command: settled}, orNil(err)
}

// Start is Send for a caller that does not wait: it returns once the command is stored and has its
// lane. A repeated order returns the command as it is now. It fails with a *telematics.Error, as
// Send does.
func (b *Broker) Start(ctx context.Context, order *delivery.Order) (delivery.Receipt, error) {
	ctx, span := tracing.Start(tracing.Detach(ctx), delivery.SpanCommand)
	w, receipt, refusal := b.begin(ctx, span, order, false)
	if w == nil {
		span.End()
		return receipt, orNil(refusal)
	}
	b.started.Go(func() {
		defer span.End()
		// The sweeper settles what a panic leaves open.
		_ = b.config.Guard.Do("send command", func() {
			b.dispatch(ctx, w)
			settled, err := b.await(ctx, w) // the row has the result
			describe(span, order, settled, err)
		})
	})
	return receipt, nil
}

// begin accepts and claims the command of an order. It returns no waiter where the order is
// refused, or repeats another, which it records. A caller that waits for the result is refused
// while the other is in flight.
func (b *Broker) begin(
	ctx context.Context, span tracing.Span, order *delivery.Order, waits bool,
) (w *waiter, receipt delivery.Receipt, refusal *telematics.Error) {
	receipt, refusal = b.accept(ctx, order, b.now())
	if refusal == nil && !receipt.Replayed {
		w, receipt, refusal = b.claim(ctx, order, receipt.Command)
	}
	describe(span, order, receipt.Command, refusal)
	if refusal == nil && receipt.Replayed && waits && receipt.Command.State.IsOpen() {
		refusal = telematics.StillOpen(receipt.Command.ID)
	}
	switch {
	case refusal != nil:
		b.recordRefusal(ctx, order, receipt.Command, refusal)
		return nil, delivery.Receipt{}, refusal
	case receipt.Replayed:
		b.recordDuplicate(ctx, order, receipt.Command)
	}
	return w, receipt, nil
}

// Drain blocks until every command of Start is settled, or returns an error when the context ends.
// Call it once no more commands are started.
func (b *Broker) Drain(ctx context.Context) error {
	settled := make(chan struct{})
	go func() {
		b.started.Wait()
		close(settled)
	}()
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for commands in flight: %w", ctx.Err())
	}
}

// orNil keeps a nil *telematics.Error from becoming an error that is not nil.
func orNil(err *telematics.Error) error {
	if err == nil {
		return nil
	}
	return err
}

// accept checks an order, and returns its command, or the command that it repeats. A refusal by the
// cached vehicle, and any decision that needs the reported state, is checked again on a fresh read.
// A refusal comes with the command as far as it was resolved.
func (b *Broker) accept(ctx context.Context, order *delivery.Order, now time.Time) (delivery.Receipt, *telematics.Error) {
	defer tracing.Step(ctx, delivery.StepLookUp).End()
	if !order.Action.Conditional() {
		receipt, refusal := b.check(ctx, newCommand(order, b.config.Instance, now), order.Lookup, b.config.Vehicles.Resolve)
		if refusal == nil && !receipt.Replayed && !besteffort.NeedsState(receipt.Command) ||
			refusal != nil && refusal.Code == telematics.TelematicsUnavailable {
			return receipt, refusal
		}
	}
	return b.check(ctx, newCommand(order, b.config.Instance, now), order.Lookup, b.readTwin)
}

// claim writes the command's row and takes its lane, and registers the command concurrently. Where
// the vehicle has changed since the order was accepted, the order is accepted anew before anything
// is written. An occupant that is overdue is settled first: its owner did not settle it. It returns
// a waiter unless the order is refused, or repeats another.
func (b *Broker) claim(
	ctx context.Context, order *delivery.Order, c *telematics.Command,
) (claimed *waiter, receipt delivery.Receipt, refusal *telematics.Error) {
	defer tracing.Step(ctx, delivery.StepClaim).End()
	receipt = delivery.Receipt{Command: c}
	w := b.register(ctx, c)
	defer func() {
		if w != nil && claimed == nil {
			b.unregister(ctx, w)
		}
	}()
	stepping, cancel := b.step(ctx)
	defer cancel()
	evicted, unchecked := false, false
	for {
		c := receipt.Command
		if unchecked {
			c = withoutVersion(c)
		}
		claim, err := b.config.Commands.Claim(stepping, c) // [LAW-1] [LAW-5]
		c = receipt.Command
		var refused *telematics.Error
		switch {
		case claim.Stale:
			b.unregister(ctx, w)
			w = nil
			if receipt, refusal = b.accept(ctx, order, c.Requested); refusal != nil || receipt.Replayed {
				return nil, receipt, refusal
			}
			w = b.register(ctx, receipt.Command)
			// Accepted a moment ago: a vehicle that changes all the time delays no command.
			unchecked = true
			continue
		case errors.As(err, &refused):
			return nil, receipt, refused
		case err != nil:
			// The row may be there all the same, and nothing will be published.
			b.keepSettlement(delivery.Settlement{Command: c.ID, State: telematics.Expired, At: b.recordTime()})
			return nil, receipt, telematics.Unavailable("Postgres", err)
		}
		if claim.Occupant != nil && claim.Occupant.ID == c.ID {
			// Claimed by an attempt whose reply was lost.
			claim = delivery.Claim{Seq: claim.Occupant.Seq}
		}
		if claim.Taken() {
			c.Seq = claim.Seq
			if wrong := b.checkClock(stepping, c, claim.At); wrong != nil {
				w.missing, w.unsent = theExactTime, wrong
			} else if order.Allowed != nil {
				w.unsent = order.Allowed(stepping)
			}
			b.events.publish(c.Event(c.Requested))
			return w, receipt, nil
		}
		if claim.KeyTaken { // by the same request, a moment ago
			if receipt, refusal = b.check(stepping, newCommand(order, b.config.Instance, c.Requested), nil,
				b.readTwin); refusal != nil || receipt.Replayed {
				return nil, receipt, refusal
			}
			// That request was refused meanwhile, which freed its key.
			return nil, receipt, telematics.StillOpen(telematics.NoCommand)
		}
		// The lane may have been taken by the same request, whose reply was lost.
		if earlier, refusal := b.findDuplicate(stepping, c, nil); refusal != nil || earlier.Replayed {
			return nil, earlier, refusal
		}
		if occupant := claim.Occupant; evicted || !occupant.State.IsOpen() || !occupant.IsOverdue(b.now()) {
			occupied := telematics.InProgress(occupant, b.now())
			if occupant.Agency != c.Agency { // the vehicle or its unit has moved
				occupied.Command = telematics.NoCommand
				occupied.Message = "Another command of this vehicle or unit is not answered; nothing was sent."
			}
			return nil, receipt, occupied
		}
		_ = b.settleOverdue(stepping, *claim.Occupant) // logged there; the next attempt decides
		evicted, unchecked = true, false
	}
}

func withoutVersion(c *telematics.Command) *telematics.Command {
	unchecked := *c
	unchecked.Version = 0
	return &unchecked
}

// dispatch signs a claimed command while it is registered, and publishes it for the first time.
// Where it is not published, its waiter has the reason. Call await in any case.
func (b *Broker) dispatch(ctx context.Context, w *waiter) {
	done := false
	defer func() {
		if !done { // a panic
			b.release(ctx, w.command)
		}
	}()
	var signing errgroup.Group
	if w.unsent == nil {
		signing.Go(func() error {
			return b.config.Guard.Try("sign command", func() (err error) {
				w.message, err = b.sign(ctx, w.command)
				return err
			})
		})
	}
	// Always wait: an entry that is released before it is added would stay.
	unregistered := b.awaitRegistration(ctx, w)
	unsigned := signing.Wait()
	switch {
	case w.unsent != nil:
	case unsigned != nil:
		w.missing, w.unsent = "The signing key", unsigned
	case unregistered != nil:
		w.missing, w.unsent = "Redis", unregistered
	case b.isHalted(w.command.Agency):
		w.halted = true
	default:
		now := time.Now() // whatever the clock is set to meanwhile
		w.timers = timers{
			deadline: now.Add(w.command.Deadline.Sub(b.timeFor(w))),
			progress: now.Add(progressAfter), confirm: besteffort.FirstCheck(w.command, now),
		}
		b.publish(ctx, w)
	}
	done = true
}

// await retransmits the message until the command is settled or its deadline has passed, and
// returns the settled command, with what that means for its caller. A command that was not
// dispatched is settled immediately.
func (b *Broker) await(ctx context.Context, w *waiter) (settled *telematics.Command, err *telematics.Error) {
	defer b.release(ctx, w.command)
	switch {
	case w.unsent != nil:
		settled, err = b.expireUnsent(ctx, w)
	case w.halted:
		settled = b.expire(ctx, w)
		err = settled.Err()
	default:
		settled = b.awaitAnswer(ctx, w)
		err = settled.Err()
	}
	b.metrics.settled(settled, w.command.Protocol, b.now().Sub(w.command.Requested))
	return settled, err
}

func (b *Broker) awaitAnswer(ctx context.Context, w *waiter) *telematics.Command {
	alarm := time.NewTimer(w.timers.next())
	defer alarm.Stop()
	defer tracing.Step(ctx, delivery.StepAwait).End()
	for {
		select {
		case update := <-w.updates:
			if !update.State.IsOpen() {
				return b.complete(ctx, w, update)
			}
			b.backOff(w, update)
		case <-alarm.C:
			if due(w.timers.confirm) {
				var settled *telematics.Command
				if settled, w.timers.confirm = b.bestEffort.Confirm(ctx, w.command, w.progress()); settled != nil {
					return b.complete(ctx, w, settled)
				}
			}
			if over := b.runTimers(ctx, w); over {
				return b.expire(ctx, w)
			}
		}
		alarm.Reset(w.timers.next())
	}
}

// complete returns a settled command with the progress that may not be stored yet.
func (b *Broker) complete(ctx context.Context, w *waiter, settled *telematics.Command) *telematics.Command {
	if settled.Attempts < w.progress().Attempts {
		// The answer came to another instance before our progress was stored.
		b.storeProgress(ctx, w)
	}
	return w.withProgress(settled)
}
