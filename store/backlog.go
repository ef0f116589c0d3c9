package store

import (
	"context"
	"sync"
	"time"
)

// backlog is vehicles of which something is owed, each once, and a sign that there are any.
type backlog struct {
	sign chan struct{} // holds one

	mu   sync.Mutex
	list []*known
	now  int // being worked on
}

func newBacklog() *backlog { return &backlog{sign: make(chan struct{}, 1)} }

func (b *backlog) add(vehicles ...*known) {
	b.mu.Lock()
	b.list = append(b.list, vehicles...)
	b.mu.Unlock()
	select {
	case b.sign <- struct{}{}:
	default:
	}
}

// begin returns all there are, to be worked on until end.
func (b *backlog) begin() []*known {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.list
	b.list, b.now = nil, len(list)
	return list
}

func (b *backlog) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = 0
}

func (b *backlog) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.list) + b.now
}

// rest waits, unless the context ends before.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
