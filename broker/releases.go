package broker

import (
	"context"
	"time"

	"motorpool/telematics"
)

// releaseAfter is how long entries of the pending table outlive their commands.
const releaseAfter = 20 * time.Millisecond

// releaseAll lets commands go from the pending table.
func (b *Broker) releaseAll(ctx context.Context, entries []telematics.Pending) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	if err := b.Pending.Release(ctx, entries...); err != nil {
		b.Logger.Debug("pending entries left to their expiry", "commands", len(entries), "err", err)
	}
}
