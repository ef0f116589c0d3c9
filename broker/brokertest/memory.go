package brokertest

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"motorpool/broker"
	"motorpool/broker/ingest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	v1 "motorpool/telematics/v1"
)

var (
	_ broker.Vehicles     = (*Memory)(nil)
	_ broker.Commands     = (*Memory)(nil)
	_ broker.Halts        = (*Memory)(nil)
	_ broker.Clock        = (*Memory)(nil)
	_ broker.AuditLog     = (*Memory)(nil)
	_ broker.PendingTable = (*Memory)(nil)
	_ ingest.Twins        = (*Memory)(nil)
	_ ingest.UnknownUnits = (*Memory)(nil)
	_ ingest.Health       = (*Memory)(nil)
	_ broker.Unrecorded   = (*Memory)(nil)
	_ ingest.Contacts     = (*Memory)(nil)
	_ broker.Events       = (*Memory)(nil)
)

// Memory implements the stores that the broker needs. It is safe for concurrent
// use, also by several brokers, and waits on channels and mutexes only, so
// that it lives in the virtual time of testing/synctest.
type Memory struct {
	*faults
	*memoryPending
	*memoryUnits

	twins     map[telematics.VehicleID]telematics.Twin
	cached    map[telematics.VehicleID]telematics.Twin           // as they were last read
	announced map[telematics.VehicleID]telematics.PresenceStatus // connectivity as last published
	commands  map[telematics.CommandID]telematics.Command
	seq       int64
	lines     []telematics.Activity
	made      map[callerKey]telematics.CommandID
	halts     telematics.Halts
	ahead     time.Duration // of the clock, to the instances'

	unrecorded map[unitCommand]delivery.Unrecorded

	events *Events
}

// faults locks a memory, and breaks its methods.
type faults struct {
	mu     sync.Mutex
	broken map[string]error
}

// Break makes methods of the ports, by name ("Claim", "Register"), return an error
// and do nothing. A nil error mends them.
func (f *faults) Break(err error, methods ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, method := range methods {
		f.broken[method] = err
	}
}

// enter locks the memory for a method, unless the method is broken or its caller gone.
func (f *faults) enter(ctx context.Context, method string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	if err := f.broken[method]; err != nil {
		f.mu.Unlock()
		return err
	}
	return nil
}

// NewMemory returns a memory that knows the vehicles.
func NewMemory(twins ...telematics.Twin) *Memory {
	faults := &faults{broken: map[string]error{}}
	m := &Memory{
		faults:        faults,
		memoryPending: &memoryPending{faults, map[pendingKey]delivery.Pending{}, map[string][]chan telematics.CommandID{}},
		memoryUnits:   &memoryUnits{faults: faults, units: map[telematics.Unit]telematics.UnknownUnit{}, health: map[telematics.Unit]telematics.UnitHealth{}},
		twins:         map[telematics.VehicleID]telematics.Twin{},
		cached:        map[telematics.VehicleID]telematics.Twin{},
		commands:      map[telematics.CommandID]telematics.Command{},
		made:          map[callerKey]telematics.CommandID{},

		unrecorded: map[unitCommand]delivery.Unrecorded{},
		announced:  map[telematics.VehicleID]telematics.PresenceStatus{},
		events:     NewEvents(),
	}
	for _, twin := range twins {
		m.Put(twin)
	}
	return m
}

// Put adds a vehicle, or replaces what is known of it.
func (m *Memory) Put(twin telematics.Twin) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.twins[twin.ID], m.announced[twin.ID] = twin, twin.Contact.At(time.Now())
}

// Change changes what is known of a vehicle.
func (m *Memory) Change(id telematics.VehicleID, change func(*telematics.Twin)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	twin := m.twins[id]
	change(&twin)
	m.twins[id] = twin
}

// Remove takes a vehicle out.
func (m *Memory) Remove(id telematics.VehicleID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.twins, id)
}

// Twin implements broker.Vehicles.
func (m *Memory) Twin(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	if err := m.enter(ctx, "Twin"); err != nil {
		return telematics.Twin{}, err
	}
	defer m.mu.Unlock()
	twin, ok := m.twins[id]
	if !ok {
		return telematics.Twin{}, telematics.NoSuchVehicle(id)
	}
	twin.Version = version(twin)
	m.cached[id] = twin.ForOrders()
	return twin, nil
}

// Record returns a vehicle as it is now, without its state.
func (m *Memory) Record(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	twin, err := m.Twin(ctx, id)
	twin.Snapshot = nil
	return twin, err
}

// Resolve implements broker.Vehicles.
func (m *Memory) Resolve(ctx context.Context, id telematics.VehicleID) (*telematics.Twin, error) {
	twin, ok := m.Cached(id)
	var err error
	if !ok {
		twin, err = m.Record(ctx, id)
	}
	return &twin, err
}

// Cached returns what Resolve returns without reading it.
func (m *Memory) Cached(id telematics.VehicleID) (telematics.Twin, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	twin, ok := m.cached[id]
	return twin, ok
}

// Uncache has a vehicle read when it is resolved next.
func (m *Memory) Uncache(id telematics.VehicleID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.cached, id)
}

// version differs where anything does that an order depends on, but for signs of life.
func version(t telematics.Twin) int64 {
	covered := t.ForOrders()
	covered.Version, covered.Contact.LastSeen = 0, time.Time{}
	h := fnv.New64a()
	fmt.Fprintf(h, "%#v", covered)
	return int64(h.Sum64()) //nolint:gosec // any number will do
}

// Add implements broker.AuditLog.
func (m *Memory) Add(ctx context.Context, entry telematics.Activity) error {
	if err := m.enter(ctx, "Add"); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.add(entry)
	return nil
}

func (m *Memory) add(entry telematics.Activity) {
	entry.ID = int64(len(m.lines) + 1)
	entry.At, entry.Latency = storedTime(entry.At), entry.Latency.Truncate(storedResolution)
	m.lines = append(m.lines, entry)
}

// Entries returns the audit log, oldest first.
func (m *Memory) Entries() []telematics.Activity {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.lines)
}

// Publish implements broker.Events.
func (m *Memory) Publish(ctx context.Context, events []telematics.Event) ([]telematics.Event, error) {
	if err := m.enter(ctx, "Publish"); err != nil {
		return events, err
	}
	m.mu.Unlock()
	return m.events.Publish(ctx, events)
}

// Published returns the published events, oldest first.
func (m *Memory) Published() []telematics.Event { return m.events.All() }

// storedResolution is that of Postgres.
const storedResolution = time.Microsecond

func storedTime(t time.Time) time.Time { return t.UTC().Truncate(storedResolution) }

// Said returns what a unit of protocol v1 said, as it comes from the MQTT broker.
func Said(unit telematics.Unit, payload []byte, retained bool) telematics.Message {
	return telematics.Message{Dialect: v1.Dialect{}, Unit: unit, Payload: payload, Retained: retained}
}
