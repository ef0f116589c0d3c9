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
// An answer that may be a second delivery of the previous command's answer counts as received at
// most.
func (b *Broker) correlate(ctx context.Context, a *queuedAnswer) bool {
	reading, cancel := b.step(ctx)
	defer cancel()
	c, found, err := b.Commands.AwaitingAnswer(reading, a.unit)
	if err != nil {
		b.metrics.answersToNone.Inc()
		b.Logger.Warn("answer without a command not assigned, its command ends as unknown", "unit", a.unit, "state", a.answer.State, "err", err)
		return false
	}
	if found && !a.repeated && !a.at.Before(c.Requested) && b.recognises(reading, &c, a.answer) {
		if c.State.IsOpen() {
			a.answer.Command = c.ID
			// Its dialect does not know the command; its vehicle has to report that it was
			// executed.
			if c.ByReport && a.answer.State == telematics.Succeeded || b.mayRepeat(reading, &c, a.answer) {
				a.answer.State, a.answer.Reason = telematics.Received, ""
			}
			return true
		}
		b.endWait(ctx, c, *a)
		if c.State == telematics.Succeeded { // its vehicle has reported that before
			return false
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

// mayRepeat reports whether an answer can be a second delivery of the previous command's answer;
// true where that command cannot be read.
func (b *Broker) mayRepeat(ctx context.Context, c *telematics.Command, a telematics.Answer) bool {
	before, found, err := b.Commands.AnsweredBefore(ctx, *c)
	return err != nil || found && c.MayRepeat(a, &before) && b.recognises(ctx, &before, a)
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
