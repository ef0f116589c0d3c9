package broker

import (
	"context"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// confirm settles and returns a command whose execution its vehicle has reported; nil: it has not,
// or the command could not be settled. All instances share the reported state, so any of them may
// have received the report.
func (b *Broker) confirm(ctx context.Context, w *waiter) *telematics.Command {
	if !due(w.timers.confirm) {
		return nil
	}
	w.timers.confirm = time.Now().Add(confirmEvery)
	if !b.isConfirmed(ctx, w.command, w.progress()) {
		return nil
	}
	stepping, cancel := b.step(ctx)
	defer cancel()
	c, ok, err := b.Commands.Settle(stepping, delivery.Settlement{
		Command: w.command.ID, State: telematics.Succeeded, At: b.recordTime(), Known: w.command, Progress: w.progress(),
	})
	if err != nil || !ok {
		return nil
	}
	return c
}

// isConfirmed reports whether the vehicle has reported a command's effect after the command was
// sent; false where it is not known when that was.
func (b *Broker) isConfirmed(ctx context.Context, c *telematics.Command, p delivery.Progress) bool {
	if !c.ByReport || c.ReportedBefore || p.SentAt.IsZero() {
		return false
	}
	twin, confirmation := b.reported(ctx, c)
	return twin.Snapshot.Confirms(confirmation, p.SentAt)
}

// reported returns the vehicle of a command with its reported state, and the field values that
// confirm the command; none where the vehicle was not read, or has another unit now.
func (b *Broker) reported(ctx context.Context, c *telematics.Command) (telematics.Twin, map[telematics.Field]any) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	twin, err := b.Vehicles.Twin(ctx, c.Vehicle)
	if err != nil {
		b.Logger.DebugContext(ctx, "reported state not read, the command may stay unconfirmed", "command", c.ID, "request_id", c.RequestID, "vehicle", c.Vehicle, "err", err)
		return telematics.Twin{}, nil
	}
	if twin.Unit != c.Unit {
		return twin, nil
	}
	return twin, b.Dialects.Confirmation(&twin, c.Action)
}
