package store

import (
	"context"
	"sync"
	"time"
)

// backlog is vehicles of which something is owed to one creditor, each once, and a sign that
// there are any.
type backlog struct {
	to   creditor
	sign chan struct{} // holds one

	mu   sync.Mutex
	list []*known
	now  []*known // being worked on
}

func newBacklog(to creditor) *backlog { return &backlog{to: to, sign: make(chan struct{}, 1)} }

func (b *backlog) add(vehicles ...*known) {
	b.mu.Lock()
	b.list = append(b.list, vehicles...)
	b.mu.Unlock()
	select {
	case b.sign <- struct{}{}:
	default:
	}
}

// again adds what could not be brought, unless it is owed anew by now.
func (b *backlog) again(vehicles []*known) {
	for _, k := range vehicles {
		if k.owe(b.to) {
			b.add(k)
		}
	}
}

// begin returns all there are, to be worked on until end. What comes of them from now on is owed
// anew.
func (b *backlog) begin() []*known {
	b.mu.Lock()
	list := b.list
	b.list, b.now = nil, list
	b.mu.Unlock()
	for _, k := range list {
		k.begin(b.to)
	}
	return list
}

func (b *backlog) end() {
	b.mu.Lock()
	list := b.now
	b.now = nil
	b.mu.Unlock()
	for _, k := range list {
		k.end(b.to)
	}
}

func (b *backlog) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.list) + len(b.now)
}

// rest waits, unless the context ends before.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
