package broker

import (
	"context"
	"sync"
	"time"

	"motorpool/telematics"
)

// partings are commands that nobody waits for any more. Nobody waits for the end of their entries in the pending table
// either, so these go a moment later, and together.
type partings struct {
	mu   sync.Mutex
	list []telematics.Pending
}

const partAfter = 20 * time.Millisecond

// add reports whether the list was empty.
func (p *partings) add(entry telematics.Pending) (first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, entry)
	return len(p.list) == 1
}

func (p *partings) take() []telematics.Pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.list
	p.list = nil
	return list
}

// release lets a command go from the pending table.
func (b *Broker) release(ctx context.Context, entry telematics.Pending) {
	if !b.partings.add(entry) {
		return
	}
	b.background.Go(func() {
		time.Sleep(partAfter)
		ctx, cancel := b.step(context.WithoutCancel(ctx))
		defer cancel()
		entries := b.partings.take()
		if err := b.Pending.Release(ctx, entries...); err != nil {
			b.Logger.Debug("pending entries left to their expiry", "commands", len(entries), "err", err)
		}
	})
}
