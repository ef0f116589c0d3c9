package broker

import (
	"context"
	"slices"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// correlate assigns an answer that names no command to the command of its unit that awaits one, and
// reports whether it did. It reads Postgres, since memory and Redis could have an older command:
// Claim claims no other for the unit while an answer to the last one may come. An answer that
// matches no open command is not assigned; one that matches a settled command ends the wait for it.
//
// An answer that may be that of an earlier command counts as received at most, and is not assigned
// to a command that is known here not to be published.
func (b *Broker) correlate(ctx context.Context, a *queuedAnswer) bool {
	reading, cancel := b.step(ctx)
	defer cancel()
	c, found, err := b.Commands.AwaitingAnswer(reading, a.unit)
	if err != nil {
		b.metrics.answersToNone.Inc()
		b.Logger.Warn("answer without a command not assigned, its command ends as unknown", "unit", a.unit, "state", a.answer.State, "err", err)
		return false
	}
	why, means := "it matches no open command", a.answer.State
	matches := found && !a.redelivered && !a.at.Before(c.Requested)
	if matches {
		means, matches = b.recognise(reading, &c, a.answer, false)
	}
	switch {
	case !matches:
	case !c.State.IsOpen():
		b.endWait(ctx, c, *a)
		if c.State == telematics.Succeeded { // its vehicle has reported that before
			return false
		}
		why = "it is late"
	case b.isUnpublished(c.ID) && b.mayRepeat(reading, &c, a):
		why = "it is a repetition, and the open command is not published"
	default:
		a.answer.Command = c.ID
		// Its dialect does not know the command; its vehicle has to report that it was executed.
		if c.ByReport && means == telematics.Succeeded || b.mayRepeat(reading, &c, a) {
			means = telematics.Received
		}
		if a.answer.State = means; means == telematics.Received {
			a.answer.Reason = ""
		}
		return true
	}
	b.metrics.answersToNone.Inc()
	b.Logger.Info("answer without a command id settles nothing", "why", why, "unit", a.unit, "state", a.answer.State, "last", c.ID)
	return false
}

// recognise reports whether an answer can be that to a command, and returns the state that it means
// for it; otherwise, where the command's vehicle cannot be read.
func (b *Broker) recognise(ctx context.Context, c *telematics.Command, a telematics.Answer, otherwise bool) (telematics.State, bool) {
	twin, err := b.Vehicles.Resolve(ctx, c.Vehicle)
	if err != nil {
		b.Logger.WarnContext(ctx, "answer without a command id not compared with a command: its vehicle was not read", "command", c.ID, "unit", c.Unit, "err", err)
		return a.State, otherwise
	}
	return b.Dialects.Recognise(twin, c, a)
}

// mayRepeat reports whether an answer to a command can be that to an earlier one: a second delivery
// of the answer before, or one that is still to come, because a repetition was taken for it. It is
// true where the earlier commands cannot be read.
func (b *Broker) mayRepeat(ctx context.Context, c *telematics.Command, a *queuedAnswer) bool {
	earlier, err := b.Commands.AnsweredBefore(ctx, *c, answersCompared)
	if err != nil {
		return true
	}
	commands := slices.Insert(earlier, 0, *c) // the latest first
	// Whether the answer that each of them got may be that to an earlier one.
	repeated := make([]bool, len(commands))
	for i := len(commands) - 1; i >= 0; i-- {
		got := a.answer
		if i > 0 {
			got.Detail = commands[i].AnswerText()
		}
		for k := i + 1; k < len(commands) && !repeated[i]; k++ {
			before := &commands[k]
			toCome := repeated[k] && a.at.Before(before.AnswerBy)
			if k > i+1 && !toCome {
				continue
			}
			if toCome { // its text is not known
				got.Detail = ""
			}
			_, fits := b.recognise(ctx, before, a.answer, true)
			repeated[i] = fits && commands[i].MayRepeat(got, before)
		}
	}
	return repeated[0]
}

// isUnpublished reports whether a command is known here not to be published: it is not yet, or, as
// the reply to its claim was lost, it never will be.
func (b *Broker) isUnpublished(id telematics.CommandID) bool {
	if w := b.waiters.find(id); w != nil {
		return w.progress().Attempts == 0
	}
	finding, known := b.outbox.settlement(id)
	return known && finding.State == telematics.Expired
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
