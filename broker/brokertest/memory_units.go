package brokertest

import (
	"context"
	"maps"

	"motorpool/telematics"
)

// Units implements ingest.UnknownUnits and ingest.Health.
type Units struct {
	*tables
	unknown map[telematics.Unit]telematics.UnknownUnit
	stored  int // calls of StoreUnknownUnits
	health  map[telematics.Unit]telematics.UnitHealth
}

// StoreHealth implements ingest.Health.
func (m *Units) StoreHealth(ctx context.Context, units []telematics.UnitHealth) error {
	if err := m.enter(ctx, "StoreHealth"); err != nil {
		return err
	}
	defer m.mu.Unlock()
	for _, u := range units {
		m.health[u.Unit] = m.health[u.Unit].Merge(u)
	}
	return nil
}

// Health returns the findings about a unit.
func (m *Units) Health(unit telematics.Unit) telematics.UnitHealth {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.health[unit]
}

// StoreUnknownUnits implements ingest.UnknownUnits.
func (m *Units) StoreUnknownUnits(ctx context.Context, units []telematics.UnknownUnit) error {
	if err := m.enter(ctx, "StoreUnknownUnits"); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.stored++
	for _, u := range units {
		m.unknown[u.Unit] = m.unknown[u.Unit].Merge(u)
	}
	return nil
}

// UnknownUnits returns the stored units, and the number of calls of StoreUnknownUnits.
func (m *Units) UnknownUnits() (map[telematics.Unit]telematics.UnknownUnit, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.unknown), m.stored
}
