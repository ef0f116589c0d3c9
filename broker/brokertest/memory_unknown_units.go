package brokertest

import (
	"context"
	"maps"

	"motorpool/telematics"
)

// StoreUnknownUnits implements ingest.UnknownUnits.
func (m *Memory) StoreUnknownUnits(ctx context.Context, heard []telematics.UnknownUnit) error {
	if err := m.enter(ctx, "StoreUnknownUnits"); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.stored++
	for _, s := range heard {
		m.unknownUnits[s.Unit] = m.unknownUnits[s.Unit].Merge(s)
	}
	return nil
}

// UnknownUnits returns the units without a vehicle, and how many times some were noted.
func (m *Memory) UnknownUnits() (map[telematics.Unit]telematics.UnknownUnit, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.unknownUnits), m.stored
}
