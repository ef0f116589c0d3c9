package broker

import (
	"context"
	"time"

	"motorpool/telematics"
)

// noteUnrecorded writes down a final answer that the record of commands did not take, where the command is not on record at all: it was
// executed, and a failover or a restore has lost it. It reports false where the answer is to be looked into again: the unit repeats it [TEL-3].
//
// A rejected command was not executed. Rejections are not written down, since anybody who can publish to a unit can cause them.
func (b *Broker) noteUnrecorded(ctx context.Context, unit telematics.Unit, a telematics.Answer, at time.Time) bool {
	if b.Unrecorded == nil || a.State.IsOpen() || a.State == telematics.Rejected {
		return true
	}
	ctx, cancel := b.step(ctx)
	defer cancel()
	fate, err := b.Unrecorded.NoteUnrecorded(ctx, telematics.Unrecorded{Unit: unit, Answer: a, At: at})
	switch {
	case err != nil:
		b.metrics.dropped.answersNotStored.Inc()
		b.Logger.Warn("answer not written down; the unit will repeat it", "unit", unit, "command", a.Command, "state", a.State, "err", err)
		return false
	case fate.Noted:
		b.metrics.answersUnrecorded.Inc()
		b.Logger.Warn("a vehicle answered a command that is not on record; the answer is written down", "unit", unit, "vehicle", fate.Vehicle, "command", a.Command, "state", a.State)
	case fate.Unknown:
		b.metrics.answersUnrecorded.Inc()
		b.Logger.Debug("answer to a command that is not on record, beyond what is written down of a unit", "unit", unit, "vehicle", fate.Vehicle, "command", a.Command, "state", a.State)
	}
	return true
}
