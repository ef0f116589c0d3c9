package brokertest

import (
	"fmt"
	"hash/fnv"
	"time"

	"motorpool/telematics"
)

// Remembered implements broker.Vehicles.
func (m *Memory) Remembered(id telematics.VehicleID) (telematics.Twin, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	twin, ok := m.recalled[id]
	return twin, ok
}

// Confirm implements broker.Vehicles.
func (m *Memory) Confirm(telematics.Twin) {}

// Forget implements broker.Vehicles.
func (m *Memory) Forget(id telematics.VehicleID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.recalled, id)
}

// version tells apart all that an order depends on, but for signs of life.
func version(t telematics.Twin) int64 {
	covered := t.Recollection()
	covered.Version, covered.Contact.LastSeen = 0, time.Time{}
	h := fnv.New64a()
	fmt.Fprintf(h, "%#v", covered)
	return int64(h.Sum64()) //nolint:gosec // any number will do
}
