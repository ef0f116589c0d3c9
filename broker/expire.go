package broker

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/broker/besteffort"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/tracing"
)

// errInFlight means that a command is overdue while its owner may still settle it. In this process
// the owner still claims or registers it: that ends with the step.
var errInFlight = errors.New("the command is in flight")

// sweep settles open commands whose owner is gone [LAW-6]. While the clock is wrong, other
// instances do that.
func (b *Broker) sweep(ctx context.Context) error {
	started := time.Now() // whatever the clock is set to meanwhile
	b.lateSince.Store(&started)
	return b.each(ctx, b.config.SweepEvery, "sweep", func() {
		b.retryOutbox(ctx)
		for limit := sweepBatch; limit > 0 && b.clock.err() == nil; {
			limit = b.sweepOnce(ctx, limit)
		}
	})
}

// sweepOnce settles up to limit commands, and returns the limit of the next batch; zero: there are
// no more. The commands that are left to their owners come first again, so the next batch is larger
// than these.
func (b *Broker) sweepOnce(ctx context.Context, limit int) (next int) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	overdue, err := b.config.Commands.Overdue(ctx, b.now().Add(-ownerGrace), limit)
	b.unswept.Note(ctx, b.config.Logger, "overdue commands not read", err)
	if err != nil {
		b.lateSince.Store(nil) // after an outage, owners have as much time again
		return 0
	}
	var group errgroup.Group
	group.SetLimit(sweepBatch)
	var left atomic.Bool
	late := false
	for _, c := range overdue {
		late = late || b.isLate(&c)
		group.Go(func() error {
			err := b.config.Guard.Try("settle overdue command", func() error { return b.settleOverdue(ctx, c) })
			if errors.Is(err, errInFlight) {
				left.Store(true)
				return nil
			}
			return err
		})
	}
	err = group.Wait()
	if !late && len(overdue) < limit {
		b.lateSince.Store(nil)
	}
	switch {
	case err != nil, len(overdue) < limit, left.Load() && limit >= maxOutboxSettlements:
		return 0
	case left.Load():
		return 2 * limit
	}
	return limit
}

// isLate reports whether a command of another process has been overdue for more than lateAfter: it
// was not on record while sweeps, also slow ones, would have settled it.
func (b *Broker) isLate(c *telematics.Command) bool {
	return c.Instance != b.config.Instance && b.now().Sub(c.Deadline) > lateAfter
}

// leavesToOwner reports whether the owner of an overdue command has time left to settle it: while
// it lives, until the deadline has passed by its clock, too. Of a late command it is longer where
// the owner lives, since it may have thousands to settle. That time begins with this process or the
// first late command after that, and is one for all.
func (b *Broker) leavesToOwner(c *telematics.Command) bool {
	if !b.isLate(c) {
		ago := b.now().Sub(c.Deadline) // far below zero where a clock had leapt ahead
		return c.Instance != b.config.Instance && ago.Abs() < ownerGrace+telematics.ClockTolerance && b.config.Lives(c.Instance)
	}
	now := time.Now()
	b.lateSince.CompareAndSwap(nil, &now)
	since := b.lateSince.Load()
	if since == nil || now.Sub(*since) < lateGrace {
		return true
	}
	return now.Sub(*since) < longestGrace && b.config.Lives(c.Instance)
}

// settleOverdue settles a command whose owner is gone as unknown, since it may have been published,
// or as executed where a report confirms it. Where this process is the owner, the outbox has the
// exact state.
func (b *Broker) settleOverdue(ctx context.Context, c telematics.Command) error {
	finding, known := b.outbox.settlement(c.ID)
	if !known && (b.waiters.find(c.ID) != nil || b.leavesToOwner(&c)) {
		return errInFlight
	}
	if !known || !c.State.MayBecome(finding.State) {
		// Not known here; or the unit has it, though we believe that it was never sent.
		finding = b.bestEffort.Outcome(ctx, &c, delivery.Settlement{
			Command: c.ID, At: b.recordTime(), Progress: delivery.Progress{SentAt: c.SentAt, ReceivedAt: c.ReceivedAt},
		})
	}
	settled, ok, err := b.storeSettlement(ctx, finding)
	if err != nil {
		b.config.Logger.WarnContext(
			ctx, "overdue command not settled, retrying", "command", c.ID, "request_id", c.RequestID,
			"vehicle", c.Vehicle, "err", err,
		)
		return err
	}
	if ok {
		b.metrics.commandsSwept.Inc()
		if now := b.now(); c.Deadline.After(now) {
			b.config.Logger.ErrorContext(
				ctx, "command with a deadline that cannot be settled, a clock had leapt ahead", "command", c.ID,
				"request_id", c.RequestID, "vehicle", c.Vehicle, "action", c.Action, "deadline", c.Deadline,
			)
		} else {
			b.config.Logger.InfoContext(
				ctx, "overdue command of another process settled", "command", c.ID, "request_id", c.RequestID,
				"vehicle", c.Vehicle, "action", c.Action,
			)
		}
		b.wake(ctx, settled)
		b.outbox.releases.add(ctx, b.entry(settled))
	}
	return nil
}

// concludeUnknown has late reports conclude commands that ended as unknown.
func (b *Broker) concludeUnknown(ctx context.Context) error {
	return b.each(ctx, besteffort.ConcludeEvery, "conclude", func() {
		if b.clock.err() == nil {
			b.bestEffort.Conclude(ctx)
		}
	})
}

// expireUnsent settles a command that was not published because a server, a key or the exact time
// is unavailable.
func (b *Broker) expireUnsent(ctx context.Context, w *waiter) (*telematics.Command, *telematics.Error) {
	c, missing, cause := w.command, w.missing, w.unsent
	b.config.Logger.WarnContext(
		ctx, "command not sent", "command", c.ID, "request_id", c.RequestID, "vehicle", c.Vehicle, "action", c.Action,
		"err", cause,
	)
	settled := b.expire(ctx, w)
	err := settled.Err()
	var refused *telematics.Error
	switch {
	case settled.State != telematics.Expired:
	case missing == "" && errors.As(cause, &refused):
		because := *refused
		because.Command, because.Outcome = c.ID, telematics.NotExecuted
		err = &because
	default:
		err.Message, err.Cause = telematics.Unavailable(missing, cause).Message, cause
	}
	return settled, err
}

// expire settles a command without an answer. This process alone knows whether the MQTT client ever
// took the message: if not, nothing was executed.
func (b *Broker) expire(ctx context.Context, w *waiter) *telematics.Command {
	c := w.command
	finding := delivery.Settlement{Command: c.ID, State: telematics.Expired, At: b.recordTime(), Known: c, Progress: w.progress()}
	switch {
	case finding.Attempts > 0 || !finding.ReceivedAt.IsZero() || w.stopped.Load():
		// The unit may have the command.
		finding = b.bestEffort.Outcome(ctx, c, finding)
	default:
		if halt, halted := b.knownHalt(c.Agency); halted {
			finding.Reason, finding.Detail = telematics.ByHalt, halt.Why
		}
	}
	b.keepSettlement(finding)
	stepping, cancel := b.step(ctx)
	defer cancel()
	settling := tracing.Step(stepping, delivery.StepSettle)
	settled, ok, err := b.storeSettlement(stepping, finding)
	settling.End()
	if err == nil {
		b.outbox.removeSettlement(c.ID)
	}
	if err == nil && ok {
		return w.withProgress(settled)
	}
	if err == nil { // an answer came first, or the command is not on record
		looking, cancel := b.step(ctx)
		defer cancel()
		updates, unread := b.config.Commands.Updates(looking, []telematics.CommandID{c.ID}, nil)
		known := unread == nil && len(updates) == 1
		if known && !updates[0].State.IsOpen() {
			return w.withProgress(&updates[0])
		}
		// The unit has it: it did leave.
		if finding.State == telematics.Expired && (known || unread != nil) {
			finding.State, finding.Reason, finding.Detail = telematics.Unknown, "", ""
		}
		if known {
			finding.Detail = besteffort.UnknownDetail(c, updates[0].ReceivedAt)
		}
		b.keepSettlement(finding)
		if known {
			settled, ok, err = b.storeSettlement(looking, finding)
		}
		if known && err == nil && ok {
			b.outbox.removeSettlement(c.ID)
			return w.withProgress(settled)
		}
	}
	// The result is still true, and stays in the outbox.
	b.config.Logger.ErrorContext(
		ctx, "command not settled, retrying", "command", c.ID, "request_id", c.RequestID, "vehicle", c.Vehicle,
		"state", finding.State, "err", err,
	)
	given := *c // others read it
	given.State, given.Reason, given.Detail, given.Completed = finding.State, finding.Reason, finding.Detail, finding.At
	if given.State == telematics.Succeeded { // this process may die before that is on record
		given.State, given.Detail = telematics.Unknown, besteffort.UnknownDetail(c, finding.ReceivedAt)
	}
	return w.withProgress(&given)
}
