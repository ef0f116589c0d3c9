package brokertest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"motorpool/broker"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	v1 "motorpool/telematics/v1"
)

// Memory stores in memory what the broker stores. It implements the ports for vehicles, twins,
// contacts, the audit log, halts and the clock; its fields implement the others, except Bulks. It
// is safe for concurrent use, also by several brokers, and waits on channels and mutexes only, so
// that it works in the virtual time of testing/synctest.
type Memory struct {
	*tables
	Commands *Commands
	Pending  *PendingTable
	Units    *Units
	Events   *Events

	announced map[telematics.VehicleID]telematics.PresenceStatus // connectivity as last published
	halts     telematics.Halts
}

// tables is the state that the parts of a Memory share, and their lock.
type tables struct {
	mu       sync.Mutex
	broken   map[string]error // by method
	twins    map[telematics.VehicleID]telematics.Twin
	cached   map[telematics.VehicleID]telematics.Twin // as last read
	auditLog []telematics.Activity
	ahead    time.Duration // how far the store's clock is ahead of the instances'
}

// enter locks the tables for a method. It returns an error, and does not lock them, where the
// method is broken or the caller's context has ended.
func (t *tables) enter(ctx context.Context, method string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	if err := t.broken[method]; err != nil {
		defer t.mu.Unlock()
		if errors.Is(err, ErrPanic) {
			delete(t.broken, method)
			panic(err)
		}
		return err
	}
	return nil
}

// NewMemory returns a memory with the given vehicles.
func NewMemory(twins ...telematics.Twin) *Memory {
	t := &tables{
		broken: map[string]error{},
		twins:  map[telematics.VehicleID]telematics.Twin{},
		cached: map[telematics.VehicleID]telematics.Twin{},
	}
	m := &Memory{
		tables: t,
		Commands: &Commands{
			tables:     t,
			commands:   map[telematics.CommandID]telematics.Command{},
			made:       map[callerKey]telematics.CommandID{},
			unrecorded: map[unitCommand]delivery.Unrecorded{},
		},
		Pending: &PendingTable{t, map[unitCommand]delivery.Pending{}, map[string][]chan telematics.CommandID{}},
		Units: &Units{
			tables: t, unknown: map[telematics.Unit]telematics.UnknownUnit{},
			health: map[telematics.Unit]telematics.UnitHealth{},
		},
		Events:    NewEvents(),
		announced: map[telematics.VehicleID]telematics.PresenceStatus{},
	}
	for _, twin := range twins {
		m.Put(twin)
	}
	return m
}

// Config returns the configuration of a broker that stores everything in the memory. The caller
// adds at least a Publisher and a Key.
func (m *Memory) Config() broker.Config {
	return broker.Config{
		Vehicles: m, Commands: m.Commands, Halts: m, Clock: m, AuditLog: m, Pending: m.Pending, Twins: m, Contacts: m, Events: m.Events,
		UnknownUnits: m.Units, Health: m.Units, Unrecorded: m.Commands,
	}
}

// ErrPanic makes the next call of a broken method panic, and mends the method.
var ErrPanic = errors.New("panic of the test")

// Break makes methods of the ports, by name ("Claim", "Register"), return an error and do nothing.
// A nil error mends them. Events has its own Break.
func (m *Memory) Break(err error, methods ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, method := range methods {
		m.broken[method] = err
	}
}

// Put adds or replaces a vehicle. Its connectivity counts as published.
func (m *Memory) Put(twin telematics.Twin) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.twins[twin.ID], m.announced[twin.ID] = twin, twin.Contact.At(time.Now())
}

// Change changes a stored vehicle, and publishes nothing.
func (m *Memory) Change(id telematics.VehicleID, change func(*telematics.Twin)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	twin := m.twins[id]
	change(&twin)
	m.twins[id] = twin
}

// Remove removes a vehicle.
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

// Record reads a vehicle without its reported state.
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

// Cached returns a vehicle from the cache, if it is there.
func (m *Memory) Cached(id telematics.VehicleID) (telematics.Twin, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	twin, ok := m.cached[id]
	return twin, ok
}

// Uncache removes a vehicle from the cache, so that the next Resolve reads it.
func (m *Memory) Uncache(id telematics.VehicleID) { m.uncache(id) }

func (t *tables) uncache(id telematics.VehicleID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.cached, id)
}

// version is a hash of what an order depends on, without the time of the last message.
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

// add needs the lock.
func (t *tables) add(entry telematics.Activity) {
	entry.ID = int64(len(t.auditLog) + 1)
	entry.At, entry.Latency = storedTime(entry.At), entry.Latency.Truncate(storedResolution)
	t.auditLog = append(t.auditLog, entry)
}

// Entries returns the audit log, oldest first.
func (m *Memory) Entries() []telematics.Activity {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.auditLog)
}

// Halt replaces the halts in force.
func (m *Memory) Halt(halts ...telematics.Halt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.halts = halts
}

// Halts implements broker.Halts.
func (m *Memory) Halts(ctx context.Context) (telematics.Halts, error) {
	if err := m.enter(ctx, "Halts"); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return m.halts, nil
}

// SetClock sets how far the clock of the store is ahead of the instances' clocks.
func (m *Memory) SetClock(ahead time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ahead = ahead
}

// Time implements broker.Clock.
func (m *Memory) Time(ctx context.Context) (time.Time, error) {
	if err := m.enter(ctx, "Time"); err != nil {
		return time.Time{}, err
	}
	defer m.mu.Unlock()
	return time.Now().Add(m.ahead), nil
}

// storedResolution is the resolution of timestamps in Postgres.
const storedResolution = time.Microsecond

func storedTime(t time.Time) time.Time { return t.UTC().Truncate(storedResolution) }

// Said returns a message of a unit with protocol v1, as it comes from the MQTT broker.
func Said(unit telematics.Unit, payload []byte, retained bool) telematics.Message {
	return telematics.Message{Dialect: v1.Dialect{}, Unit: unit, Payload: payload, Retained: retained}
}
