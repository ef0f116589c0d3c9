package twins

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// cache holds the reported states of vehicles. Beyond its size it evicts states that are in no
// outbox; there is at most one of the others per vehicle, so the size of the fleet bounds them. It
// is safe for concurrent use.
type cache struct {
	size  int
	dirty func(*state) bool // the state is in an outbox

	mu     sync.RWMutex
	states map[telematics.VehicleID]*state
}

func (c *cache) find(vehicle telematics.VehicleID) (*state, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s, ok := c.states[vehicle]
	return s, ok
}

// use returns the state of a vehicle with this unit, and adds an empty one where there is none. It
// drops a state that is from another unit. The state stays in the cache until the caller calls
// release, with the state in an outbox: else a report could be in a state that no reader finds.
func (c *cache) use(vehicle telematics.VehicleID, unit telematics.Unit) *state {
	if s, ok := c.useCached(vehicle, unit); ok {
		return s
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.states[vehicle]
	if !ok || s.unit != unit { // no other caller was faster
		c.evict()
		s = newState(vehicle, unit)
		c.states[vehicle] = s
	}
	s.users.Add(1)
	return s
}

func (c *cache) useCached(vehicle telematics.VehicleID, unit telematics.Unit) (*state, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s, ok := c.states[vehicle]
	if ok = ok && s.unit == unit; ok {
		s.users.Add(1)
	}
	return s, ok
}

func (s *state) release() { s.users.Add(-1) }

// isFree reports whether a state may leave the cache. It needs the lock.
func (c *cache) isFree(s *state) bool { return s.users.Load() == 0 && !c.dirty(s) }

// evict needs the lock.
func (c *cache) evict() {
	attempts := 0
	for vehicle, s := range c.states { // in random order
		if len(c.states) < c.size || attempts == evictionAttempts {
			return
		}
		if attempts++; c.isFree(s) {
			delete(c.states, vehicle)
		}
	}
}

// drop removes those of the states that are in no outbox. It is called for vehicles that report too
// seldom to be worth the memory.
func (c *cache) drop(states []*state) {
	if len(states) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range states {
		if c.states[s.vehicle] == s && c.isFree(s) {
			delete(c.states, s.vehicle)
		}
	}
}

// state is the reported state of a vehicle, as far as this instance has it. It is changed in place,
// since each report changes it.
type state struct {
	vehicle telematics.VehicleID
	unit    telematics.Unit
	users   atomic.Int32 // callers that merge a report

	mu       sync.Mutex // guards what follows
	owner    owner
	protocol telematics.Protocol
	seen     time.Time
	snapshot telematics.Snapshot // returned as a copy only
	// The only report so far of a state that is not loaded. It is not in the snapshot yet: most
	// states are loaded next, and only then merged with the state in Redis.
	pending  *telematics.Report
	reported bool

	loaded bool // it is merged with what Redis had, and Postgres, unless Redis had all of that
	based  bool // Redis had a base then, or gets this one
	base   base // that Redis does not have yet
	// From Postgres, where Redis had nothing: when the unit was last seen, and whether its latest
	// presence was not online.
	before  time.Time
	offline bool

	last        time.Time // the report before the newest one, as Redis has it
	urgent      bool      // an urgent field has changed
	reports     int       // that Redis has not counted yet
	sections    []section // by their places in telematics.Sections
	unpublished telematics.Snapshot

	waiting  []chan<- bool // callers that wait until Redis has their reports
	flushing []chan<- bool // likewise, whose reports are being written
}

// section compares a section of a state with that in Redis.
type section struct {
	token   string // of the row in Redis; empty: none is known
	changes int    // how often the section became newer than its row in Redis
	written int    // the changes that Redis has
}

func newState(vehicle telematics.VehicleID, unit telematics.Unit) *state {
	return &state{vehicle: vehicle, unit: unit, unpublished: telematics.Snapshot{}, sections: make([]section, len(telematics.Sections))}
}

// observe merges an observation. waiter, which is nil or holds one, receives whether Redis has it.
func (s *state) observe(o delivery.Observation, owner owner, waiter chan<- bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owner, s.protocol = owner, o.Protocol
	if o.At.After(s.seen) {
		s.seen = o.At
	}
	if o.Report != nil {
		s.reported = true
		s.reports++
		if s.mergePending(); !s.loaded && len(s.snapshot) == 0 {
			s.pending = o.Report
		} else {
			s.mergeReport(o.Report)
		}
	}
	if waiter != nil {
		s.waiting = append(s.waiting, waiter)
	}
}

func (s *state) mergePending() {
	if s.pending != nil {
		s.mergeReport(s.pending)
		s.pending = nil
	}
}

func (s *state) mergeReport(r *telematics.Report) {
	if s.snapshot == nil {
		s.snapshot = make(telematics.Snapshot, len(r.Values))
	}
	for field, reading := range r.Readings() {
		s.mergeReading(field, reading)
	}
}

// mergeReading merges a reading that was reported to this instance. In a state that is not loaded
// yet, load finds out whether it is a change.
func (s *state) mergeReading(field telematics.Field, reading telematics.Reading) {
	if s.keepNewer(field, reading) && s.loaded {
		s.publishLater(field, reading)
		s.urgent = s.urgent || slices.Contains(urgentFields, field)
	}
}

// keepNewer keeps the newer one of the given reading and the cached one, notes a change of the
// section, and reports whether the value of the field has changed.
func (s *state) keepNewer(field telematics.Field, reading telematics.Reading) (changed bool) {
	newer, changed := s.snapshot.KeepNewer(field, reading)
	if newer {
		s.sections[sectionOf[field]].changes++
	}
	return changed
}

// beginFlush notes that the reports so far are being written to Redis.
func (s *state) beginFlush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushing, s.waiting = append(s.flushing, s.waiting...), nil
}

// isHot reports whether the latest two reports of the vehicle came within hotWithin.
func (s *state) isHot() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.Sub(s.last) < hotWithin
}

// isAwaited reports whether a caller waits for the running flush.
func (s *state) isAwaited() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.flushing) > 0
}

// endFlush notifies waiting callers whether Redis has their reports.
func (s *state) endFlush(shared bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, waiter := range s.flushing {
		waiter <- shared // it holds one
	}
	s.flushing = nil
}

// lost notes that Redis has no state of the vehicle, so that all sections are written next, and
// reports whether Redis had one before.
func (s *state) lost() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	had := false
	for i := range s.sections {
		had, s.sections[i].token = had || s.sections[i].token != "", ""
	}
	return had
}

func (s *state) isLoaded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loaded
}

func (s *state) change(fields telematics.Snapshot) telematics.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return telematics.Change{
		Vehicle: s.vehicle, Agency: s.owner.agency, Powertrain: s.owner.powertrain, Fields: fields, LastSeen: s.seen,
	}
}

// copy returns the state in the form in which Redis has it.
func (s *state) copy() redisState {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mergePending()
	return redisState{unit: s.unit, seen: s.seen, snapshot: maps.Clone(s.snapshot)}
}

// observation returns the state as an observation to be merged in Postgres.
func (s *state) observation() observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mergePending()
	o := observation{vehicle: s.vehicle, readings: maps.Clone(s.snapshot)}
	o.Unit, o.At, o.Protocol = s.unit, s.seen, s.protocol
	if s.reported {
		o.Report = &telematics.Report{}
	}
	return o
}

// load merges the states in Redis and Postgres; stored is nil where Redis has everything of
// Postgres, or Postgres could not be read. Readings in Redis were published by the instance that
// wrote them. Readings only in Postgres were not: the instance that flushed them has yet to write
// them to Redis, and will find them there, so this instance publishes them. But Redis expires the
// state of a vehicle that is silent for long, and all of that was published.
func (s *state) load(shared redisState, stored *storedTwin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if shared.unit != s.unit {
		shared = redisState{}
	}
	mine, pending := s.snapshot, s.pending
	s.snapshot, s.pending, s.unpublished = shared.snapshot, nil, telematics.Snapshot{}
	if s.snapshot == nil {
		s.snapshot = make(telematics.Snapshot, len(mine))
	}
	for i := range s.sections {
		section := &s.sections[i]
		section.token, section.written = shared.token(i), section.changes
	}
	s.based = shared.base != ""
	if stored != nil {
		for field, reading := range stored.snapshot {
			wasPublished := shared.token(sectionOf[field]) == "" && s.seen.Sub(reading.At) > stateTTL
			if s.keepNewer(field, reading) && !wasPublished {
				s.publishLater(field, reading)
			}
		}
		s.base, s.based = stored.base, true
		s.before, s.offline = stored.seen, stored.offline
	}
	s.loaded = true
	for field, reading := range mine {
		s.mergeReading(field, reading)
	}
	if pending != nil {
		s.mergeReport(pending)
	}
}

func (s *state) comparePublished(field telematics.Field, mine telematics.Reading, published telematics.Snapshot) {
	if theirs, ok := published[field]; ok && field.Same(mine.Value, theirs.Value) {
		delete(s.unpublished, field)
	} else {
		s.publishLater(field, mine)
	}
}

func (s *state) publishLater(field telematics.Field, reading telematics.Reading) {
	if !field.IsOfArrival() {
		s.unpublished[field] = reading
	}
}

func (s *state) has(section int) bool {
	return slices.ContainsFunc(fieldsOf[section], func(f telematics.Field) bool { _, ok := s.snapshot[f]; return ok })
}

// update returns the sections that Redis does not have. The error names the sections that could not
// be encoded; the others are returned.
func (s *state) update() (u update, errs error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u = update{
		state: s, seen: s.seen, reports: s.reports, base: s.base, offline: s.offline, before: s.before,
		urgent: s.urgent, whole: true,
	}
	u.sections = make([]sectionUpdate, 0, len(s.sections))
	for place, section := range s.sections {
		if !s.has(place) {
			continue
		}
		if section.changes == section.written && section.token != "" {
			u.whole = false
			continue
		}
		row, err := encodeSection(place, s.snapshot)
		if err != nil {
			errs, u.whole = errors.Join(errs, err), false
			continue
		}
		u.sections = append(u.sections, sectionUpdate{place: place, expected: section.token, row: row, changes: section.changes})
	}
	return u, errs
}

// apply notes the outcome of an update. It returns the changes to publish, now that Redis has them,
// whether some sections must be written again, and whether Redis was emptied.
func (u update) apply(result outcome) (changed telematics.Snapshot, again, emptied bool) {
	s := u.state
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = telematics.Snapshot{}
	s.reports -= u.reports
	if result.before.Before(u.seen) { // not of a repeated update
		s.last = result.before
	}
	for _, written := range u.sections {
		section := &s.sections[written.place]
		conflict, refused := result.conflicts[written.place]
		switch {
		case !refused:
			section.token, section.written = result.token, written.changes
			for field, reading := range s.unpublished {
				if sectionOf[field] == written.place {
					changed[field] = reading
					delete(s.unpublished, field)
				}
			}
		case conflict.token == "":
			section.token, again, emptied = "", true, true
			s.based, s.base = false, "" // the writer to Postgres will find out
		default:
			section.token = conflict.token
			again = s.merge(written.place, conflict) || again
		}
	}
	if s.offline, s.urgent, s.before = false, false, (time.Time{}); !again {
		s.base = ""
	}
	if !again && s.based && !result.complete {
		s.loaded = false // Postgres had more
	}
	return changed, again, emptied
}

// merge merges a section that another instance has written, and reports whether this instance has
// readings that it lacks. A section that this instance wrote without getting the reply is written
// again, and then published.
func (s *state) merge(place int, c conflict) bool {
	theirs := telematics.Snapshot{}
	err := decodeSection(theirs, place, c.row)
	ahead := err != nil || c.own // a section that cannot be read is replaced
	for _, field := range fieldsOf[place] {
		reading, has := theirs[field]
		_, mine := s.snapshot[field]
		switch {
		case has && c.own:
			s.snapshot.KeepNewer(field, reading)
		case has:
			ahead = s.mergeField(field, reading) || ahead
		case mine:
			ahead = true
		}
	}
	section := &s.sections[place]
	if section.written = section.changes; ahead {
		section.changes++
	}
	return ahead
}

// mergeField merges a reading of another instance, and reports whether the cached one is still
// different.
func (s *state) mergeField(field telematics.Field, theirs telematics.Reading) (ahead bool) {
	s.snapshot.KeepNewer(field, theirs)
	mine := s.snapshot[field]
	s.comparePublished(field, mine, telematics.Snapshot{field: theirs})
	return !mine.At.Equal(theirs.At) || mine.Once != theirs.Once || !telematics.SameValue(mine.Value, theirs.Value)
}
