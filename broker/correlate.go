package broker

import (
	"context"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// correlate assigns an answer that names no command to the command of its unit that awaits one, and
// reports whether it did. It reads Postgres, since memory and Redis could have an older command:
// Claim claims no other for the unit while an answer to the last one may come. An answer that
// matches no open command is not assigned; one that matches a settled command ends the wait for it.
//
// An answer that may be a second delivery of an earlier command's answer counts as received at
// most, and is not assigned where the command cannot have been published.
func (b *Broker) correlate(ctx context.Context, a *queuedAnswer) bool {
	reading, cancel := b.step(ctx)
	defer cancel()
	c, found, err := b.Commands.AwaitingAnswer(reading, a.unit)
	if err != nil {
		b.metrics.answersToNone.Inc()
		b.Logger.Warn("answer without a command not assigned, its command ends as unknown", "unit", a.unit, "state", a.answer.State, "err", err)
		return false
	}
	if found && !a.redelivered && !a.at.Before(c.Requested) && b.recognises(reading, &c, a.answer) {
		repeats := c.State.IsOpen() && b.mayRepeat(reading, &c, a.answer)
		switch {
		case !c.State.IsOpen():
			b.endWait(ctx, c, *a)
			if c.State != telematics.Succeeded { // else its vehicle has reported that before
				b.metrics.answersToNone.Inc()
				b.Logger.Info("late answer without a command id settles nothing", "unit", a.unit, "state", a.answer.State, "command", c.ID)
			}
			return false
		case !repeats || b.mayBePublished(reading, &c):
			a.answer.Command = c.ID
			// Its dialect does not know the command; its vehicle has to report that it was
			// executed.
			if c.ByReport && a.answer.State == telematics.Succeeded || repeats {
				a.answer.State, a.answer.Reason = telematics.Received, ""
			}
			return true
		}
	}
	b.metrics.answersToNone.Inc()
	b.Logger.Info("answer without a command id matches no open command", "unit", a.unit, "state", a.answer.State, "last", c.ID)
	return false
}

// recognises reports whether an answer can be that to a command; false where the command's vehicle
// cannot be read.
func (b *Broker) recognises(ctx context.Context, c *telematics.Command, a telematics.Answer) bool {
	twin, err := b.Vehicles.Resolve(ctx, c.Vehicle)
	if err != nil {
		b.Logger.WarnContext(ctx, "answer without a command not assigned: its vehicle was not read", "command", c.ID, "unit", c.Unit, "err", err)
		return false
	}
	return b.Dialects.Recognise(twin, c, a)
}

// mayRepeat reports whether an answer can be that to an earlier command: a second delivery of the
// latest one, or the first of a command whose answer was taken from such a delivery; true where
// these commands cannot be read.
func (b *Broker) mayRepeat(ctx context.Context, c *telematics.Command, a telematics.Answer) bool {
	earlier, err := b.Commands.AnsweredSince(ctx, *c, c.Requested.Add(-telematics.RepeatedWithin))
	if err != nil {
		return true
	}
	for i := range earlier {
		e := &earlier[i]
		if (i == 0 || e.MayAwaitAnswer()) && e.MayHaveGot(a) && b.recognises(ctx, e, a) {
			return true
		}
	}
	return false
}

// mayBePublished reports whether a command may have been published. The row of one that is not may
// be there: its claim has not returned, or its reply was lost.
func (b *Broker) mayBePublished(ctx context.Context, c *telematics.Command) bool {
	if w := b.waiters.find(c.ID); w != nil {
		return w.progress().Attempts > 0
	}
	return b.isPending(ctx, c.Unit, c.ID)
}

// endWait records that a settled command has been answered. Where that fails, its unit gets no
// other command for a while.
func (b *Broker) endWait(ctx context.Context, c telematics.Command, a queuedAnswer) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	if err := b.Commands.StoreProgress(ctx, []delivery.Note{{Command: c.ID, Progress: delivery.Progress{ReceivedAt: a.at}}}); err != nil {
		b.Logger.Debug("late answer not recorded", "unit", a.unit, "command", c.ID, "err", err)
	}
}
