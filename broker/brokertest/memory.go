package brokertest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
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
		memoryUnits:   &memoryUnits{faults: faults, units: map[telematics.Unit]telematics.UnknownUnit{}},
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
func (m *Memory) Resolve(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	if twin, ok := m.Cached(id); ok {
		return twin, nil
	}
	return m.Record(ctx, id)
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

// Claim implements broker.Commands.
func (m *Memory) Claim(ctx context.Context, c *telematics.Command, accept func() (*telematics.Command, error)) (delivery.Claim, error) {
	claim, err := m.claim(ctx, *c)
	if err != nil {
		m.Uncache(c.Vehicle)
	}
	if !errors.Is(err, errStale) {
		return claim, err
	}
	if c, err = accept(); err != nil {
		return delivery.Claim{}, err
	}
	accepted := *c
	accepted.Version = 0
	return m.claim(ctx, accepted)
}

// errStale means that a vehicle's record has another version than a command.
var errStale = errors.New("the vehicle's record has changed")

func (m *Memory) claim(ctx context.Context, c telematics.Command) (delivery.Claim, error) {
	if err := m.enter(ctx, "Claim"); err != nil {
		return delivery.Claim{}, err
	}
	defer m.mu.Unlock()
	twin, ok := m.twins[c.Vehicle]
	switch {
	case c.Version != 0 && (!ok || c.Version != version(twin)):
		return delivery.Claim{}, errStale
	case !ok:
		return delivery.Claim{}, telematics.NoSuchVehicle(c.Vehicle)
	}
	c.Version = 0
	if _, ok := m.commands[c.ID]; ok {
		return delivery.Claim{}, fmt.Errorf("claim: there is a command %s already", c.ID)
	}
	for _, other := range m.commands {
		if other.Vehicle == c.Vehicle && other.Lane == c.Lane && other.State.IsOpen() || c.Lane == telematics.UnitLane && other.Unit == c.Unit && other.AwaitsAnswer(time.Now().Add(m.ahead)) {
			return delivery.Claim{Occupant: &other}, nil
		}
	}
	if c.Key != nil && !m.keep(*c.Key, c.ID) {
		return delivery.Claim{KeyTaken: true}, nil
	}
	m.seq++
	c.Seq, c.State = m.seq, telematics.Accepted
	c.Requested, c.Deadline = storedTime(c.Requested), storedTime(c.Deadline)
	if !c.AnswerBy.IsZero() {
		c.AnswerBy = storedTime(c.AnswerBy)
	}
	m.commands[c.ID] = c
	return delivery.Claim{Seq: c.Seq, At: time.Now().Add(m.ahead)}, nil
}

// AwaitingAnswer implements broker.Commands.
func (m *Memory) AwaitingAnswer(ctx context.Context, unit telematics.Unit) (telematics.Command, bool, error) {
	if err := m.enter(ctx, "AwaitingAnswer"); err != nil {
		return telematics.Command{}, false, err
	}
	defer m.mu.Unlock()
	for _, c := range m.commands {
		if c.Unit == unit && c.AwaitsAnswer(time.Now().Add(m.ahead)) {
			return c, true, nil
		}
	}
	return telematics.Command{}, false, nil
}

// AnsweredBefore implements broker.Commands.
func (m *Memory) AnsweredBefore(ctx context.Context, c telematics.Command) (before telematics.Command, found bool, err error) {
	if err := m.enter(ctx, "AnsweredBefore"); err != nil {
		return telematics.Command{}, false, err
	}
	defer m.mu.Unlock()
	for _, other := range m.commands {
		if other.Unit == c.Unit && other.Lane == telematics.UnitLane && other.Seq < c.Seq && other.Seq > before.Seq &&
			(!other.ReceivedAt.IsZero() || other.State.IsFinal()) {
			before, found = other, true
		}
	}
	return before, found, nil
}

// StoreProgress implements broker.Commands.
func (m *Memory) StoreProgress(ctx context.Context, notes []delivery.Note) error {
	if err := m.enter(ctx, "StoreProgress"); err != nil {
		return err
	}
	defer m.mu.Unlock()
	for _, n := range notes {
		c, ok := m.commands[n.Command]
		switch {
		case !ok:
			continue
		case !n.ReceivedAt.IsZero() && c.State.MayBecome(telematics.Received):
			c.State = telematics.Received
		case !n.SentAt.IsZero() && c.State == telematics.Accepted:
			c.State = telematics.Sent
		}
		m.commands[n.Command] = progressed(c, n.Progress)
	}
	return nil
}

// Settle implements broker.Commands.
func (m *Memory) Settle(ctx context.Context, s delivery.Settlement) (*telematics.Command, bool, error) {
	if err := m.enter(ctx, "Settle"); err != nil {
		return nil, false, err
	}
	defer m.mu.Unlock()
	c, ok := m.commands[s.Command]
	if !ok || s.Unit != "" && s.Unit != c.Unit || !c.State.MayBecome(s.State) {
		return nil, false, nil
	}
	c.Late, c.Overruled = !c.State.IsOpen(), c.Overruled || c.State == telematics.Rejected
	c.State, c.Reason, c.Detail = s.State, s.Reason, s.Detail
	if s.Reported != nil {
		c.Reported = s.Reported
	}
	if s.State == telematics.Received {
		s.ReceivedAt = s.At
	}
	c = progressed(c, s.Progress)
	if s.Unit != "" && !s.State.IsOpen() {
		c.AnswerBy = time.Time{}
	}
	if !s.State.IsOpen() {
		c.Completed = storedTime(s.At)
		m.add(c.Activity())
	}
	m.commands[c.ID] = c
	return &c, true, nil
}

// progressed returns a command that has come as far as is known: of each time the first stays.
func progressed(c telematics.Command, p delivery.Progress) telematics.Command {
	if c.SentAt.IsZero() {
		c.SentAt = storedTime(p.SentAt)
	}
	if c.ReceivedAt.IsZero() {
		c.ReceivedAt = storedTime(p.ReceivedAt)
	}
	if len(p.Retransmitted) > len(c.Retransmitted) {
		c.Retransmitted = slices.Clone(p.Retransmitted)
	}
	c.Attempts = max(c.Attempts, p.Attempts)
	return c
}

// Updates implements broker.Commands.
func (m *Memory) Updates(ctx context.Context, unanswered, received []telematics.CommandID) ([]telematics.Command, error) {
	if err := m.enter(ctx, "Updates"); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var news []telematics.Command
	for id, c := range m.commands {
		heard := slices.Contains(received, id)
		if (heard || slices.Contains(unanswered, id)) && (!c.State.IsOpen() || c.State == telematics.Received && !heard) {
			news = append(news, c)
		}
	}
	return news, nil
}

// Overdue implements broker.Commands.
func (m *Memory) Overdue(ctx context.Context, before time.Time, limit int) ([]telematics.Command, error) {
	if err := m.enter(ctx, "Overdue"); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	if now := time.Now(); before.After(now) {
		before = now
	}
	var overdue []telematics.Command
	for _, c := range m.commands {
		if c.State.IsOpen() && c.Deadline.Before(before) {
			overdue = append(overdue, c)
		}
	}
	slices.SortFunc(overdue, func(a, b telematics.Command) int { return a.Deadline.Compare(b.Deadline) })
	return overdue[:min(limit, len(overdue))], nil
}

// Unconfirmed implements broker.Commands.
func (m *Memory) Unconfirmed(ctx context.Context, since time.Time, behind telematics.Command, limit int) ([]telematics.Command, error) {
	if err := m.enter(ctx, "Unconfirmed"); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	order := func(a, b telematics.Command) int {
		return cmp.Or(a.Deadline.Compare(b.Deadline), bytes.Compare(a.ID[:], b.ID[:]))
	}
	var found []telematics.Command
	for _, c := range m.commands {
		if m.isUnconfirmed(&c) && c.Deadline.After(since) && order(c, behind) > 0 {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, order)
	return found[:min(limit, len(found))], nil
}

func (m *Memory) isUnconfirmed(c *telematics.Command) bool {
	if c.State != telematics.Unknown || !c.ByReport || c.ReportedBefore || c.Contradicted || c.SentAt.IsZero() {
		return false
	}
	for _, other := range m.commands {
		if other.Vehicle == c.Vehicle && other.Lane == c.Lane && other.Seq > c.Seq {
			return false
		}
	}
	return true
}

// Conclude implements broker.Commands.
func (m *Memory) Conclude(ctx context.Context, s delivery.Settlement) (*telematics.Command, bool, error) {
	if err := m.enter(ctx, "Conclude"); err != nil {
		return nil, false, err
	}
	c, ok := m.commands[s.Command]
	if !ok || !m.isUnconfirmed(&c) {
		m.mu.Unlock()
		return nil, false, nil
	}
	if s.State == telematics.Unknown {
		defer m.mu.Unlock()
		c.Contradicted = true
		m.commands[c.ID] = c
		return &c, true, nil
	}
	m.mu.Unlock()
	return m.Settle(ctx, s)
}

// Command returns a command as it is written down, or a *telematics.Error with
// CommandNotFound.
func (m *Memory) Command(ctx context.Context, id telematics.CommandID) (telematics.Command, error) {
	if err := m.enter(ctx, "Command"); err != nil {
		return telematics.Command{}, err
	}
	defer m.mu.Unlock()
	c, ok := m.commands[id]
	if !ok {
		return telematics.Command{}, telematics.NoSuchCommand(id)
	}
	return c, nil
}

// Add implements broker.AuditLog.
func (m *Memory) Add(ctx context.Context, line telematics.Activity) error {
	if err := m.enter(ctx, "Add"); err != nil {
		return err
	}
	defer m.mu.Unlock()
	m.add(line)
	return nil
}

func (m *Memory) add(line telematics.Activity) {
	line.ID = int64(len(m.lines) + 1)
	line.At, line.Latency = storedTime(line.At), line.Latency.Truncate(storedResolution)
	m.lines = append(m.lines, line)
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
