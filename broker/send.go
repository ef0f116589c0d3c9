package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// carry brings a claimed command to its vehicle, and returns it settled, with what that
// means for its caller.
func (b *Broker) carry(ctx context.Context, c telematics.Command) (telematics.Command, *telematics.Error) {
	w := b.waiters.add(c.ID) // [LAW-2]
	defer b.waiters.remove(c.ID)
	defer b.release(ctx, c)

	message, err := b.Key.Sign(c.Claims())
	if err != nil {
		return b.expire(ctx, c, w, "The signing key", fmt.Errorf("sign: %w", err))
	}
	registering, cancel := b.step(ctx)
	err = b.Pending.Register(registering, telematics.Pending{
		Command: c.ID, Vehicle: c.Vehicle, Unit: c.Unit, Instance: b.Instance, Deadline: c.Deadline,
	})
	cancel()
	if err != nil {
		return b.expire(ctx, c, w, "Redis", fmt.Errorf("register: %w", err))
	}
	settled := b.deliver(ctx, c, w, message)
	return settled, settled.Err()
}

// deliver publishes the message, again and again, until the command is settled
// or its deadline has come.
func (b *Broker) deliver(ctx context.Context, c telematics.Command, w *waiter, message []byte) telematics.Command {
	deadline := time.NewTimer(time.Until(c.Deadline))
	defer deadline.Stop()
	again := time.NewTimer(b.publish(ctx, c, w, message, false))
	defer again.Stop()
	received := false
	for {
		select {
		case news := <-w.news:
			if !news.State.IsOpen() {
				return w.complete(news)
			}
			if news.State == telematics.Received && !received {
				received = true
				_, attempts := w.sent()
				again.Reset(resendAfter(attempts, received, rand.Float64()))
			}
		case <-again.C:
			again.Reset(b.publish(ctx, c, w, message, received))
		case <-deadline.C:
			return b.giveUp(ctx, c, w)
		}
	}
}

// publish hands the message to the MQTT client, unless it could arrive too late, and
// returns how long to wait before the next time.
func (b *Broker) publish(ctx context.Context, c telematics.Command, w *waiter, message []byte, received bool) time.Duration {
	_, attempts := w.sent()
	now := time.Now()
	if !now.Before(c.Expires().Add(-expiryGuard)) || !now.Before(c.Deadline) { // [LAW-4]
		return time.Until(c.Deadline) + time.Second // the deadline comes first
	}
	if err := b.Air.Publish(telematics.CommandChannel.Topic(c.Unit), message); err != nil {
		b.Counts.add(publishFailures)
		b.Logger.Debug("command not published", "command", c.ID, "vehicle", c.Vehicle, "attempt", attempts+1, "err", err)
		if attempts == 0 {
			return airRetry
		}
		return resendAfter(attempts, received, rand.Float64())
	}
	b.Counts.add(publications)
	attempts = w.handed(now)
	if attempts == 1 {
		b.Counts.add(commandsSent)
	}
	b.markSent(ctx, c, now, attempts)
	return resendAfter(attempts, received, rand.Float64())
}

// markSent notes the attempt in the record, beside the wait: nothing depends on it
// but what a reader of an open command sees.
func (b *Broker) markSent(ctx context.Context, c telematics.Command, at time.Time, attempts int) {
	b.background.Go(func() {
		ctx, cancel := b.step(ctx)
		defer cancel()
		if err := b.Commands.MarkSent(ctx, c.ID, at, attempts); err != nil {
			b.Logger.Debug("attempt not noted", "command", c.ID, "attempt", attempts, "err", err)
		}
	})
}

// expire settles a command that never left, because something of ours is missing.
func (b *Broker) expire(ctx context.Context, c telematics.Command, w *waiter, missing string, cause error) (telematics.Command, *telematics.Error) {
	b.Logger.Warn("command not sent", "command", c.ID, "vehicle", c.Vehicle, "action", c.Action, "err", cause)
	settled := b.giveUp(ctx, c, w)
	err := settled.Err()
	if settled.State == telematics.Expired {
		err.Message, err.Cause = telematics.Unavailable(missing, cause).Message, cause
	}
	return settled, err
}

// giveUp settles a command without an answer. This process alone knows whether
// the MQTT client ever took the message: if not, nothing was executed.
func (b *Broker) giveUp(ctx context.Context, c telematics.Command, w *waiter) telematics.Command {
	sentAt, attempts := w.sent()
	finding := telematics.Settlement{
		Command: c.ID, State: telematics.Expired, At: time.Now().UTC(), SentAt: sentAt, Attempts: attempts,
	}
	if attempts > 0 {
		finding.State = telematics.Unknown
	}
	b.owed.add(finding)
	stepping, cancel := b.step(ctx)
	defer cancel()
	settled, ok, err := b.Commands.Settle(stepping, finding)
	if err == nil {
		b.owed.remove(c.ID)
	}
	if err == nil && ok {
		return w.complete(settled)
	}
	if err == nil { // an answer came first
		if news, err := b.Commands.News(stepping, []telematics.CommandID{c.ID}); err == nil && len(news) == 1 && !news[0].State.IsOpen() {
			return w.complete(news[0])
		}
	}
	// The record is away. What we know is still true, and is owed to it.
	b.Logger.Error("command not settled", "command", c.ID, "vehicle", c.Vehicle, "state", finding.State, "err", err)
	c.State, c.Completed = finding.State, finding.At
	return w.complete(c)
}

func (b *Broker) release(ctx context.Context, c telematics.Command) {
	b.background.Go(func() {
		ctx, cancel := b.step(ctx)
		defer cancel()
		if err := b.Pending.Release(ctx, c.Unit, c.ID); err != nil {
			b.Logger.Debug("pending entry left to its expiry", "command", c.ID, "err", err)
		}
	})
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
