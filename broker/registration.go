package broker

import (
	"context"
	"fmt"
	"runtime/trace"

	"motorpool/telematics"
)

// registration is the adding of a command to the pending table. It goes on beside the writing of the command's row, since neither needs
// the other: only leaving needs both [LAW-1] [LAW-2].
type registration struct {
	entry telematics.Pending
	added func(context.Context) error
}

// takeInHand notes that a command is claimed here, and begins to add it to the pending table.
func (b *Broker) takeInHand(c *telematics.Command) {
	entry := b.entry(c)
	b.inHand.Store(c.ID, registration{entry, b.Pending.Register(entry)})
}

// registered waits until a command that is in hand is in the pending table.
func (b *Broker) registered(ctx context.Context, id telematics.CommandID) error {
	defer trace.StartRegion(ctx, telematics.StepRegister).End()
	r, _ := b.inHand.Load(id)
	return b.await(ctx, r.(registration))
}

// dropFromHand lets go of a command that is not carried: it was refused its row, or nobody knows whether it has one. A trip to Redis that
// takes longer than a step may add it after that; then the entry goes by itself.
func (b *Broker) dropFromHand(ctx context.Context, id telematics.CommandID) {
	r, _ := b.inHand.LoadAndDelete(id)
	b.background.Go(func() {
		refused := r.(registration)
		_ = b.await(ctx, refused) // it may have been added all the same
		b.released.add(ctx, refused.entry)
	})
}

func (b *Broker) await(ctx context.Context, r registration) error {
	ctx, cancel := b.step(ctx)
	defer cancel()
	if err := r.added(ctx); err != nil {
		return fmt.Errorf("register: %w", err)
	}
	return nil
}

// entry is the command's in the pending table.
func (b *Broker) entry(c *telematics.Command) telematics.Pending {
	return telematics.Pending{Command: c.ID, Vehicle: c.Vehicle, Unit: c.Unit, Instance: b.Instance, Deadline: c.Deadline}
}
