package broker

import (
	"context"
	"fmt"
	"runtime/trace"

	"motorpool/telematics"
)

// takeInHand notes that a command is claimed here, for its waiter [LAW-2], and begins to add it to the pending table. That goes on beside the
// writing of the command's row, since neither needs the other: only leaving needs both [LAW-1].
func (b *Broker) takeInHand(c *telematics.Command) *waiter {
	w := b.waiters.add(c)
	w.added = b.Pending.Register(b.entry(c))
	return w
}

// registered waits until a command that is in hand is in the pending table.
func (b *Broker) registered(ctx context.Context, w *waiter) error {
	defer trace.StartRegion(ctx, telematics.StepRegister).End()
	added := w.added
	w.added = nil // it would be kept for as long as the command is under way
	return b.await(ctx, added)
}

// dropFromHand lets go of a command that is not carried: it was refused its row, or nobody knows whether it has one. A trip to Redis that
// takes longer than a step may add it after that; then the entry goes by itself.
func (b *Broker) dropFromHand(ctx context.Context, w *waiter) {
	b.waiters.remove(w.command.ID)
	entry := b.entry(w.command)
	b.background.Go(func() {
		_ = b.await(ctx, w.added) // it may have been added all the same
		b.released.add(ctx, entry)
	})
}

func (b *Broker) await(ctx context.Context, added func(context.Context) error) error {
	ctx, cancel := b.step(ctx)
	defer cancel()
	if err := added(ctx); err != nil {
		return fmt.Errorf("register: %w", err)
	}
	return nil
}

// entry is the command's in the pending table.
func (b *Broker) entry(c *telematics.Command) telematics.Pending {
	return telematics.Pending{Command: c.ID, Vehicle: c.Vehicle, Unit: c.Unit, Instance: b.Instance, Deadline: c.Deadline}
}
