package broker

import (
	"context"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// correlate finds the command of an answer that names none: the one of its unit that awaits its
// answer. The record decides, since another one in memory or in Redis could be older: Claim gives a
// unit no other command while an answer to the last one may come. An answer to none, or to one that
// is settled, is given to none; the latter ends the wait of its unit.
func (b *Broker) correlate(ctx context.Context, a *answered) bool {
	reading, cancel := b.step(ctx)
	defer cancel()
	c, found, err := b.Commands.AwaitingAnswer(reading, a.unit)
	switch {
	case err != nil:
		b.metrics.answersToNone.Inc()
		b.Logger.Warn("answer without a command not assigned, its command ends as unknown", "unit", a.unit, "state", a.answer.State, "err", err)
		return false
	case found && c.State.IsOpen():
		a.answer.Command = c.ID
		// Its dialect does not know the command; its vehicle has to report that it was executed.
		if c.ByReport && a.answer.State == telematics.Succeeded {
			a.answer.State = telematics.Received
		}
		return true
	case found && c.State == telematics.Succeeded: // its vehicle has reported that before
		b.endWait(ctx, c, *a)
		return false
	case found:
		b.endWait(ctx, c, *a)
	}
	b.metrics.answersToNone.Inc()
	b.Logger.Info("answer to no open command", "unit", a.unit, "state", a.answer.State, "last", c.ID)
	return false
}

// endWait records that a settled command has been answered. Where that fails, its unit gets no
// other command for a while.
func (b *Broker) endWait(ctx context.Context, c telematics.Command, a answered) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	if err := b.Commands.StoreProgress(ctx, []delivery.Note{{Command: c.ID, Progress: delivery.Progress{ReceivedAt: a.at}}}); err != nil {
		b.Logger.Debug("late answer not recorded", "unit", a.unit, "command", c.ID, "err", err)
	}
}
