package brokertest

import (
	"context"
	"maps"
	"slices"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// pendingFor is how long an entry outlives its deadline, for late answers.
const pendingFor = time.Minute

// PendingTable implements broker.PendingTable.
type PendingTable struct {
	*tables
	entries   map[unitCommand]delivery.Pending
	listeners map[string][]chan telematics.CommandID
}

// Register implements broker.PendingTable.
func (m *PendingTable) Register(p delivery.Pending) func(context.Context) error {
	return Begin(func() error {
		if err := m.enter(context.Background(), "Register"); err != nil {
			return err
		}
		defer m.mu.Unlock()
		p.Deadline = p.Deadline.UTC().Truncate(time.Millisecond)
		m.entries[unitCommand{p.Unit, p.Command}] = p
		return nil
	})
}

// Begin calls a function concurrently. The function that it returns waits for the result, or for
// the end of the context. Call that function once at most.
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
func (m *PendingTable) Lookup(ctx context.Context, unit telematics.Unit, id telematics.CommandID) (delivery.Pending, bool, error) {
	if err := m.enter(ctx, "Lookup"); err != nil {
		return delivery.Pending{}, false, err
	}
	defer m.mu.Unlock()
	key := unitCommand{unit, id}
	p, ok := m.entries[key]
	if ok && time.Since(p.Deadline) >= pendingFor {
		delete(m.entries, key)
		return delivery.Pending{}, false, nil
	}
	return p, ok, nil
}

// Contains implements broker.PendingTable.
func (m *PendingTable) Contains(ctx context.Context, entries []delivery.Pending) ([]bool, error) {
	if err := m.enter(ctx, "Contains"); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	found := make([]bool, len(entries))
	for i, e := range entries {
		p, ok := m.entries[unitCommand{e.Unit, e.Command}]
		found[i] = ok && time.Since(p.Deadline) < pendingFor
	}
	return found, nil
}

// Release implements broker.PendingTable.
func (m *PendingTable) Release(ctx context.Context, entries ...delivery.Pending) error {
	if err := m.enter(ctx, "Release"); err != nil {
		return err
	}
	defer m.mu.Unlock()
	for _, p := range entries {
		delete(m.entries, unitCommand{p.Unit, p.Command})
	}
	return nil
}

// InFlight returns the entries, also expired ones that Lookup has not removed yet.
func (m *PendingTable) InFlight() []delivery.Pending {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Values(m.entries))
}

// Flush removes all entries, as a restart of Redis does.
func (m *PendingTable) Flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.entries)
}

// maxHints is how many hints wait for a listener. Further hints get lost.
const maxHints = 1024

// Wake implements broker.PendingTable.
func (m *PendingTable) Wake(ctx context.Context, instance string, id telematics.CommandID) error {
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
func (m *PendingTable) Listen(ctx context.Context, instance string, wake func(telematics.CommandID)) error {
	hints := make(chan telematics.CommandID, maxHints)
	m.mu.Lock()
	m.listeners[instance] = append(m.listeners[instance], hints)
	m.mu.Unlock()
	defer m.removeListener(instance, hints)
	for {
		select {
		case id := <-hints:
			wake(id)
		case <-ctx.Done():
			return nil
		}
	}
}

func (m *PendingTable) removeListener(instance string, hints chan telematics.CommandID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listeners[instance] = slices.DeleteFunc(m.listeners[instance], func(c chan telematics.CommandID) bool { return c == hints })
}
