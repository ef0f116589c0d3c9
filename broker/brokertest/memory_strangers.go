package brokertest

import (
	"context"
	"maps"

	"motorpool/telematics"
)

// NoteStrangers implements broker.Strangers.
func (m *Memory) NoteStrangers(ctx context.Context, heard []telematics.UnknownUnit) error {
	if err := m.enter(ctx, "NoteStrangers"); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.notes++
	for _, s := range heard {
		m.strangers[s.Unit] = m.strangers[s.Unit].Merge(s)
	}
	return nil
}

// Strangers returns the units without a vehicle, and how many times some were noted.
func (m *Memory) Strangers() (map[telematics.Unit]telematics.UnknownUnit, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.strangers), m.notes
}
