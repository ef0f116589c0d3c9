package store

import (
	"sync"

	"motorpool/telematics"
)

// knownVehicles is of how many vehicles the latest state is remembered, or of more while they
// are owed to Redis or Postgres.
const knownVehicles = 1 << 16

// memory is what an instance knows of vehicles. Beyond its size it forgets vehicles of which
// nothing is owed; of those that something is owed of there is one for each, so they are bounded
// by the fleet. It is safe for concurrent use.
type memory struct {
	size int

	mu       sync.RWMutex // taken before that of a vehicle
	vehicles map[telematics.VehicleID]*known
}

func newMemory() *memory {
	return &memory{size: knownVehicles, vehicles: map[telematics.VehicleID]*known{}}
}

// find returns what is known of a vehicle.
func (m *memory) find(vehicle telematics.VehicleID) (*known, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	k, ok := m.vehicles[vehicle]
	return k, ok
}

// of returns what is known of a vehicle by its unit. What another unit has said of it is
// Postgres's to know.
func (m *memory) of(vehicle telematics.VehicleID, unit telematics.Unit) *known {
	if k, ok := m.find(vehicle); ok && k.unit == unit {
		return k
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if k, ok := m.vehicles[vehicle]; ok && k.unit == unit { // another was faster
		return k
	}
	m.forget()
	k := newKnown(vehicle, unit)
	m.vehicles[vehicle] = k
	return k
}

// glances bounds how many vehicles are looked at for one that can be forgotten.
const glances = 16

// forget needs the lock.
func (m *memory) forget() {
	looked := 0
	for vehicle, k := range m.vehicles { // in no order
		if len(m.vehicles) < m.size || looked == glances {
			return
		}
		if looked++; !k.isOwed() {
			delete(m.vehicles, vehicle)
		}
	}
}
