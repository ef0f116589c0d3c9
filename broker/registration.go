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
	added chan error // buffered: of a command that is refused nobody asks
}

// takeInHand notes that a command is claimed here, and begins to add it to the pending table.
func (b *Broker) takeInHand(ctx context.Context, c *telematics.Command) {
	r := &registration{entry: b.entry(c), added: make(chan error, 1)}
	b.inHand.Store(c.ID, r)
	b.background.Go(func() { r.added <- b.register(ctx, r.entry) })
}

// registered waits until a command that is in hand is in the pending table. It is asked once.
func (b *Broker) registered(id telematics.CommandID) error {
	r, _ := b.inHand.Load(id)
	return <-r.(*registration).added
}

// dropFromHand lets go of a command that was refused its row.
func (b *Broker) dropFromHand(ctx context.Context, id telematics.CommandID) {
	r, _ := b.inHand.LoadAndDelete(id)
	b.background.Go(func() {
		if refused := r.(*registration); <-refused.added == nil {
			b.released.add(ctx, refused.entry)
		}
	})
}

// entry is the command's in the pending table.
func (b *Broker) entry(c *telematics.Command) telematics.Pending {
	return telematics.Pending{Command: c.ID, Vehicle: c.Vehicle, Unit: c.Unit, Instance: b.Instance, Deadline: c.Deadline}
}

func (b *Broker) register(ctx context.Context, entry telematics.Pending) error {
	defer trace.StartRegion(ctx, telematics.StepRegister).End()
	ctx, cancel := b.step(ctx)
	defer cancel()
	if err := b.Pending.Register(ctx, entry); err != nil {
		return fmt.Errorf("register: %w", err)
	}
	return nil
}
