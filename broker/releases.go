package broker

import (
	"context"
	"time"

	"motorpool/telematics"
)

// releaseAfter is how long entries of the pending table outlive their commands: nobody waits for their end, so they go together.
const releaseAfter = 20 * time.Millisecond

// release lets a command go from the pending table.
func (b *Broker) release(ctx context.Context, entry telematics.Pending) {
	if b.released.add(entry) > 1 {
		return // it goes with the first
	}
	b.background.Go(func() {
		time.Sleep(releaseAfter)
		ctx, cancel := b.step(context.WithoutCancel(ctx))
		defer cancel()
		entries := b.released.take()
		if err := b.Pending.Release(ctx, entries...); err != nil {
			b.Logger.Debug("pending entries left to their expiry", "commands", len(entries), "err", err)
		}
	})
}
