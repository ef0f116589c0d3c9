package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// pace says how many reports may be published by now.
//
// Closed, it keeps no more than a window of them between the publisher and whoever takes them: the fastest that
// loses nothing, since no queue on the way overflows. Open, it publishes at a rate, whatever becomes of it.
type pace struct {
	allowed atomic.Int64
	claimed atomic.Int64
	mu      sync.Mutex // guards more
	more    chan struct{}
}

func newPace() *pace { return &pace{more: make(chan struct{})} }

// allow raises the number of reports that may be published by now.
func (p *pace) allow(total int64) {
	if total <= p.allowed.Load() {
		return
	}
	p.allowed.Store(total)
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.more)
	p.more = make(chan struct{})
}

// claim takes up to n reports that may be published, and waits until there is at least one; 0 once the context ends.
func (p *pace) claim(ctx context.Context, n int64) int64 {
	for ctx.Err() == nil {
		p.mu.Lock()
		more := p.more
		p.mu.Unlock()
		for {
			claimed := p.claimed.Load()
			free := min(n, p.allowed.Load()-claimed)
			if free <= 0 {
				break
			}
			if p.claimed.CompareAndSwap(claimed, claimed+free) {
				return free
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
		}
	}
	return 0
}

const (
	openTick   = 5 * time.Millisecond
	closedTick = 20 * time.Millisecond
)

// open allows a rate, in reports a second.
func (p *pace) open(ctx context.Context, rate float64) error {
	tick := time.NewTicker(openTick)
	defer tick.Stop()
	for begin := time.Now(); ; {
		select {
		case <-tick.C:
			p.allow(int64(rate * time.Since(begin).Seconds()))
		case <-ctx.Done():
			return nil
		}
	}
}

// closed allows a window beyond what has come to its end.
func (p *pace) closed(ctx context.Context, window int64, ended func(context.Context) (int64, error)) error {
	tick := time.NewTicker(closedTick)
	defer tick.Stop()
	for {
		n, err := ended(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		p.allow(n + window)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
