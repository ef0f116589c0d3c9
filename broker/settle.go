package broker

import (
	"context"
	"time"

	"motorpool/broker/ingest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/tracing"
)

// storeSettlement applies a settlement, and publishes its event. Broker.claim, Broker.publish and
// Broker.markReceived publish the earlier events of a command.
func (b *Broker) storeSettlement(ctx context.Context, s delivery.Settlement) (*telematics.Command, bool, error) {
	c, ok, err := b.config.Commands.Settle(ctx, s)
	if err == nil && ok {
		b.events.publish(c.Event(s.At))
	}
	return c, ok, err
}

// settle settles the command of an answer, as far as the lifecycle allows, calls reported, and
// wakes the waiter: w, which is of that unit, or, for nil, one at another instance, if there is
// one. Its error is that of Postgres.
func (b *Broker) settle(
	ctx context.Context, unit telematics.Unit, a telematics.Answer, at time.Time, w *waiter,
	reported func(context.Context),
) error {
	finding := delivery.Settlement{
		Command: a.Command, Unit: unit, State: a.Settles(), // [ACK-4]
		Reason: a.Reason, Detail: a.Detail, Reported: a.Report, At: at,
	}
	if w != nil {
		if took, first := w.firstAnswer(); first {
			b.roundTrip.observe(took)
		}
	}
	ctx, here := b.joinTrace(ctx, a, w)
	if w != nil && a.State == telematics.Received && a.Report == nil && w.progress().Attempts > 0 {
		b.markReceived(ctx, a, w, at)
		return nil
	}
	if w != nil {
		if !a.State.IsOpen() {
			w.markAnswered(a)
		}
		finding.Progress, finding.Known = w.progress(), w.command
	}
	stepping, cancel := b.step(ctx)
	began := time.Now()
	settling := tracing.Step(stepping, delivery.StepSettle)
	c, ok, err := b.storeSettlement(stepping, finding)
	settling.End()
	cancel()
	ended := time.Now()
	reporting := tracing.Step(ctx, delivery.StepReport)
	reported(ctx)
	reporting.End()
	switch {
	case err != nil:
	case !ok:
		if err = b.noteUnrecorded(ctx, unit, a, at); err == nil {
			b.metrics.answersWithoutEffect.Inc()
			b.cacheSettled(unit, a)
		}
	default:
		if !here { // settled by an answer, so the traceparent is that of a command of this unit
			b.config.Tracer.Record(ctx, delivery.StepSettle, began, ended)
		}
		b.traceAnswer(ctx, a, finding.SentAt, at)
		b.cacheSettled(unit, a)
		b.countSettled(ctx, c)
		b.wake(ctx, c)
	}
	return err
}

// loseAnswer counts and logs an answer that Postgres has not taken.
func (b *Broker) loseAnswer(unit telematics.Unit, a telematics.Answer, err error) {
	b.metrics.drop(ingest.Answer, notStored, 1)
	b.config.Logger.Warn(
		"answer not stored, only a unit of protocol v1 repeats it", "unit", unit, "command", a.Command,
		"state", a.State, "err", err,
	)
}

// markReceived notes in the waiter that the unit has its command. That is stored a moment later, or
// with the final answer.
func (b *Broker) markReceived(ctx context.Context, a telematics.Answer, w *waiter, at time.Time) {
	if !w.markReceived(at, func(c *telematics.Command) { b.events.publish(c.Event(at)) }) {
		b.metrics.answersWithoutEffect.Inc()
		return
	}
	b.traceAnswer(ctx, a, w.progress().SentAt, at)
}

func (b *Broker) countSettled(ctx context.Context, c *telematics.Command) {
	if c.State.IsOpen() {
		return
	}
	b.metrics.answersSettled.Inc()
	b.noteClockBehind(c)
	if c.Late {
		b.metrics.answersLate.Inc()
		b.config.Logger.InfoContext(
			ctx, "late answer settled a command", "command", c.ID, "request_id", c.RequestID, "vehicle", c.Vehicle,
			"action", c.Action, "state", c.State,
		)
	}
	if c.Overruled {
		b.metrics.answersOverruling.Inc()
		b.config.Logger.WarnContext(
			ctx, "a vehicle executed a command that its unit had rejected", "command", c.ID, "request_id", c.RequestID,
			"vehicle", c.Vehicle, "unit", c.Unit, "action", c.Action, "state", c.State,
		)
	}
	if c.Late && c.Attempts == 0 {
		b.metrics.answersToUnsent.Inc()
		b.config.Logger.ErrorContext(
			ctx, "a vehicle answered a command that is not known to have been sent", "command", c.ID,
			"request_id", c.RequestID, "vehicle", c.Vehicle, "unit", c.Unit, "state", c.State,
		)
	}
}

// wake wakes the waiter: in process, or by a hint to the instance where it waits.
func (b *Broker) wake(ctx context.Context, c *telematics.Command) {
	if w := b.waiters.find(c.ID); w != nil {
		w.notify(c)
		return
	}
	if c.Instance == b.config.Instance || c.Late {
		return // no caller waits any more
	}
	b.background.Go(func() { // a slow wake-up must not delay the next answer
		_ = b.config.Guard.Do("wake waiter", func() {
			ctx, cancel := b.step(context.WithoutCancel(ctx))
			defer cancel()
			if err := b.config.Pending.Wake(ctx, c.Instance, c.ID); err != nil {
				b.config.Logger.DebugContext(
					ctx, "wake-up lost, the waiter polls postgres", "command", c.ID, "request_id", c.RequestID,
					"err", err,
				)
			}
		})
	})
}

// noteUnrecorded stores a final answer that settled nothing, where its command is not in the
// database: the command was executed, and a failover or a restore has lost its row. After an error
// the answer must be checked again, or when the unit repeats it [TEL-3].
//
// A rejected command was not executed. Rejections are not stored, since each client that can
// publish to a unit can cause them.
func (b *Broker) noteUnrecorded(ctx context.Context, unit telematics.Unit, a telematics.Answer, at time.Time) error {
	if b.config.Unrecorded == nil || a.State.IsOpen() || a.State == telematics.Rejected {
		return nil
	}
	ctx, cancel := b.step(ctx)
	defer cancel()
	result, err := b.config.Unrecorded.StoreUnrecorded(ctx, delivery.Unrecorded{Unit: unit, Answer: a, At: at})
	switch {
	case err != nil:
	case result.Noted:
		b.metrics.answersUnrecorded.Inc()
		b.unrecordedBy.Add(unit, b.now())
		b.config.Logger.Warn(
			"answer to an unrecorded command stored separately", "unit", unit, "vehicle", result.Vehicle,
			"command", a.Command, "state", a.State,
		)
	case result.Unknown:
		b.metrics.answersUnrecorded.Inc()
		b.unrecordedBy.Add(unit, b.now())
		b.config.Logger.Debug(
			"answer to an unrecorded command not stored, limit of the unit reached", "unit", unit,
			"vehicle", result.Vehicle, "command", a.Command, "state", a.State,
		)
	}
	return err
}
