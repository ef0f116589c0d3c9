package besteffort

import (
	"context"
	"errors"
	"slices"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Answer is an answer that names no command.
type Answer struct {
	telematics.Answer
	Unit        telematics.Unit
	At          time.Time // of arrival
	Redelivered bool      // the MQTT broker may have delivered it before
}

// errNotPending: a command is neither pending, nor on record as sent. Its instance may have ended
// it, or Redis lost it.
var errNotPending = errors.New("the open command is not pending, and was not sent as far as is known")

// Assign returns the answer as that to the command of its unit which awaits one; false: it is to no
// command. It reads Postgres, since memory and Redis could have an older command: Claim claims no
// other for the unit while an answer to the last one may come. An answer that matches a settled
// command ends the wait for it. The rule is in docs/promises.md. Its error is that of the read, or
// that it is not known yet whether the command was sent.
func (h *Handler) Assign(ctx context.Context, a Answer) (telematics.Answer, bool, error) {
	reading, cancel := h.step(ctx)
	defer cancel()
	c, found, err := h.Commands.AwaitingAnswer(reading, a.Unit)
	if err != nil {
		return a.Answer, false, err
	}
	means, matches := a.State, found && !a.Redelivered && !a.At.Before(c.Requested.Add(-telematics.ClockTolerance))
	if matches {
		means, matches = h.recognise(reading, &c, a.Answer, false)
	}
	why := "it matches no open command"
	switch {
	case !matches:
	case !c.State.IsOpen():
		h.endWait(ctx, &c, a)
		if c.State == telematics.Succeeded { // its vehicle has reported that before
			return a.Answer, false, nil
		}
		why = "it is late"
	case c.State == telematics.Accepted && !h.IsPending(reading, c.Unit, c.ID):
		return a.Answer, false, errNotPending
	case h.IsUnpublished(c.ID) && h.mayRepeat(reading, &c, a):
		why = "it is a repetition, and the open command is not published"
	default:
		// Its dialect does not know the command; its vehicle has to report that it was executed.
		if c.BestEffort.ByReport && means == telematics.Succeeded || h.mayRepeat(reading, &c, a) {
			means = telematics.Received
		}
		if a.Command, a.State = c.ID, means; means == telematics.Received {
			a.Reason = ""
		}
		return a.Answer, true, nil
	}
	h.answersToNone.Inc()
	h.Logger.Info("answer without a command id settles nothing", "why", why, "unit", a.Unit, "state", a.State, "last", c.ID)
	return a.Answer, false, nil
}

// recognise reports whether an answer can be that to a command, and returns the state that it means
// for it. Without a Recogniser it can be that to any; otherwise is the result where the command's
// vehicle cannot be read.
func (h *Handler) recognise(ctx context.Context, c *telematics.Command, a telematics.Answer, otherwise bool) (telematics.State, bool) {
	twin, err := h.Vehicles.Resolve(ctx, c.Vehicle)
	if err != nil {
		h.Logger.WarnContext(
			ctx, "answer without a command id not compared with a command: its vehicle was not read", "command", c.ID,
			"unit", c.Unit, "err", err,
		)
		return a.State, otherwise
	}
	d, _ := h.Dialects.Find(twin.Protocol)
	if r, ok := d.(telematics.Recogniser); ok && twin.Unit == c.Unit {
		return r.Recognise(twin.Installation, c, a)
	}
	return a.State, true
}

// mayRepeat reports whether an answer to the open command can be that to an earlier one: a second
// delivery of the answer before, or one that is still to come, because a repetition was taken for
// it. It is true where the earlier commands cannot be read.
func (h *Handler) mayRepeat(ctx context.Context, open *telematics.Command, a Answer) bool {
	earlier, err := h.Commands.AnsweredBefore(ctx, *open, answersCompared)
	if err != nil {
		return true
	}
	commands := append([]telematics.Command{*open}, earlier...) // the latest first
	var before *telematics.Command
	var toCome []*telematics.Command // whose own answers may still come, by an unknown text
	repeats := false
	for _, c := range slices.Backward(commands) {
		text := answerText(&c)
		if c.ID == open.ID {
			text = a.Detail
		}
		isThatTo := func(earlier *telematics.Command, text string) bool {
			_, fits := h.recognise(ctx, earlier, a.Answer, true)
			return fits && canBeDuplicate(a.State, text, earlier, &c)
		}
		repeats = before != nil && isThatTo(before, text) ||
			slices.ContainsFunc(toCome, func(earlier *telematics.Command) bool { return isThatTo(earlier, "") })
		if repeats && a.At.Before(c.BestEffort.AnswerBy) {
			toCome = append(toCome, &c)
		}
		before = &c
	}
	return repeats
}

// canBeDuplicate reports whether an answer to a command can be a duplicate of that to an earlier
// one: the command was requested soon after that, and neither state nor text show that they are
// different answers.
func canBeDuplicate(state telematics.State, text string, earlier, c *telematics.Command) bool {
	answered := earlier.Completed
	if earlier.ReceivedAt.After(answered) {
		answered = earlier.ReceivedAt
	}
	sameState := earlier.State == state || earlier.State == telematics.Unknown || earlier.BestEffort.ByReport
	said := answerText(earlier)
	sameText := said == "" || text == "" || said == text
	return sameState && sameText && c.Requested.Sub(answered) < telematics.RepeatedWithin
}

// answerText returns the text of the final answer that settled a command; empty: none is recorded.
func answerText(c *telematics.Command) string {
	if !c.State.IsFinal() || c.BestEffort.ByReport {
		return ""
	}
	return c.Detail
}

// endWait records that a settled command has been answered. Where that fails, its unit gets no
// other command for a while.
func (h *Handler) endWait(ctx context.Context, c *telematics.Command, a Answer) {
	ctx, cancel := h.step(ctx)
	defer cancel()
	if err := h.Commands.StoreProgress(ctx, []delivery.Note{{Command: c.ID, Progress: delivery.Progress{ReceivedAt: a.At}}}); err != nil {
		h.Logger.Debug("late answer not recorded", "unit", a.Unit, "command", c.ID, "err", err)
	}
}
