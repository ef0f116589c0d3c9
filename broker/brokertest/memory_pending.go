package brokertest

import (
	"context"
	"maps"
	"slices"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

type pendingKey struct {
	unit    telematics.Unit
	command telematics.CommandID
}

// pendingFor is how long an entry outlives its deadline, for late answers.
const pendingFor = time.Minute

// memoryPending is the pending table in memory.
type memoryPending struct {
	*faults
	entries   map[pendingKey]delivery.Pending
	listeners map[string][]chan telematics.CommandID
}

// Register implements broker.PendingTable.
func (m *memoryPending) Register(p delivery.Pending) func(context.Context) error {
	return Begin(func() error {
		if err := m.enter(context.Background(), "Register"); err != nil {
			return err
		}
		defer m.mu.Unlock()
		p.Deadline = p.Deadline.UTC().Truncate(time.Millisecond)
		m.entries[pendingKey{p.Unit, p.Command}] = p
		return nil
	})
}

// Begin begins to do something, and returns what waits for its end.
func Begin(do func() error) func(context.Context) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	return func(ctx context.Context) error {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Lookup implements broker.PendingTable.
func (m *memoryPending) Lookup(ctx context.Context, unit telematics.Unit, id telematics.CommandID) (delivery.Pending, bool, error) {
	if err := m.enter(ctx, "Lookup"); err != nil {
		return delivery.Pending{}, false, err
	}
	defer m.mu.Unlock()
	key := pendingKey{unit, id}
	p, ok := m.entries[key]
	if ok && time.Since(p.Deadline) >= pendingFor {
		delete(m.entries, key)
		return delivery.Pending{}, false, nil
	}
	return p, ok, nil
}

// Contains implements broker.PendingTable.
func (m *memoryPending) Contains(ctx context.Context, entries []delivery.Pending) ([]bool, error) {
	if err := m.enter(ctx, "Contains"); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	found := make([]bool, len(entries))
	for i, e := range entries {
		p, ok := m.entries[pendingKey{e.Unit, e.Command}]
		found[i] = ok && time.Since(p.Deadline) < pendingFor
	}
	return found, nil
}

// Release implements broker.PendingTable.
func (m *memoryPending) Release(ctx context.Context, entries ...delivery.Pending) error {
	if err := m.enter(ctx, "Release"); err != nil {
		return err
	}
	defer m.mu.Unlock()
	for _, p := range entries {
		delete(m.entries, pendingKey{p.Unit, p.Command})
	}
	return nil
}

// InFlight returns what the pending table holds.
func (m *memoryPending) InFlight() []delivery.Pending {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.entries))
}

// Flush empties the pending table, as a Redis that lost its memory.
func (m *memoryPending) Flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.entries)
}

// maxHints is how many hints wait for a listener; more get lost.
const maxHints = 1024

// Wake implements broker.PendingTable.
func (m *memoryPending) Wake(ctx context.Context, instance string, id telematics.CommandID) error {
	if err := m.enter(ctx, "Wake"); err != nil {
		return err
	}
	defer m.mu.Unlock()
	for _, hints := range m.listeners[instance] {
		select {
		case hints <- id:
		default:
		}
	}
	return nil
}

// Listen implements broker.PendingTable.
func (m *memoryPending) Listen(ctx context.Context, instance string, wake func(telematics.CommandID)) error {
	hints := make(chan telematics.CommandID, maxHints)
	m.mu.Lock()
	m.listeners[instance] = append(m.listeners[instance], hints)
	m.mu.Unlock()
	defer m.deafen(instance, hints)
	for {
		select {
		case id := <-hints:
			wake(id)
		case <-ctx.Done():
			return nil
		}
	}
}

func (m *memoryPending) deafen(instance string, hints chan telematics.CommandID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listeners[instance] = slices.DeleteFunc(m.listeners[instance], func(c chan telematics.CommandID) bool { return c == hints })
}
