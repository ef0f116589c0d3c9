package twins

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// signal is a wake-up that is kept until it is received; several count as one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) set() {
	select {
	case s <- struct{}{}:
	default:
	}
}

func (s signal) clear() {
	select {
	case <-s:
	default:
	}
}

// pending is what this instance has observed of a vehicle, until Redis has it.
type pending struct {
	observation
	// The only report so far. It is not in the readings: most vehicles report once between two
	// flushes, and it is merged with the state in Redis alone.
	only    *telematics.Report
	owner   owner
	waiting []chan<- bool // callers that wait until Redis has it

	// failed: Redis has not taken it yet, refused: it never does. This instance writes it to
	// Postgres.
	failed, refused bool
	observed        int       // observations
	stored          int       // those of them that Postgres has
	since           time.Time // when the first that Postgres lacks was observed

	attempt attempt
}

// attempt is an update whose reply was lost: where its token is in Redis, its changes are to be
// published.
type attempt struct {
	token   string
	changed telematics.Snapshot
}

// observe merges an observation. waiter is nil or has a buffer of one.
func (p *pending) observe(o delivery.Observation, owner owner, waiter chan<- bool) {
	if p.observed == p.stored {
		p.since = time.Now()
	}
	p.observed++
	p.owner, p.refused = owner, false
	if o.At.After(p.At) {
		p.At = o.At
	}
	if waiter != nil {
		p.waiting = append(p.waiting, waiter)
	}
	if o.Report == nil {
		return
	}
	if p.reports++; p.reports == 1 && p.readings == nil {
		p.only = o.Report
		return
	}
	p.gather()
	p.readings.Keep(o.Report.Readings())
}

// gather merges the only report into the readings.
func (p *pending) gather() {
	if p.readings == nil {
		p.readings = telematics.NewSnapshot()
	}
	if p.only != nil {
		p.readings.Keep(p.only.Readings())
		p.only = nil
	}
}

// all returns all readings.
func (p *pending) all() iter.Seq2[telematics.Field, telematics.Reading] {
	if p.only != nil {
		return p.only.Readings()
	}
	return p.readings.All()
}

// join merges what was observed of the same unit later.
func (p *pending) join(newer *pending) {
	p.gather()
	p.readings.Keep(newer.all())
	if newer.At.After(p.At) {
		p.At = newer.At
	}
	if p.observed == p.stored {
		p.since = newer.since
	}
	p.observed, p.reports = p.observed+newer.observed, p.reports+newer.reports
	p.owner, p.refused = newer.owner, false
	p.waiting = append(p.waiting, newer.waiting...)
}

// owed reports whether this instance must write it to Postgres.
func (p *pending) owed() bool { return (p.failed || p.refused) && p.observed > p.stored }

// answer notifies waiting callers whether Redis has their reports.
func (p *pending) answer(shared bool) {
	for _, waiter := range p.waiting {
		waiter <- shared // it holds one
	}
	p.waiting = nil
}

// queue holds what Redis does not have yet, by vehicle. It is safe for concurrent use.
type queue struct {
	added signal

	mu     sync.Mutex // guards what follows, and what is queued
	queued map[telematics.VehicleID]*pending
	// What the running flush is writing, which only the flush changes. What is reported meanwhile
	// is queued.
	flushing map[telematics.VehicleID]*pending
}

func newQueue() *queue {
	return &queue{
		added: newSignal(), queued: map[telematics.VehicleID]*pending{}, flushing: map[telematics.VehicleID]*pending{},
	}
}

// add merges an observation. It replaces what is from another unit of the vehicle.
func (q *queue) add(o delivery.Observation, owner owner, waiter chan<- bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.of(owner.vehicle, o.Unit).observe(o, owner, waiter)
	q.added.set()
}

// restore queues a state that Redis has lost.
func (q *queue) restore(s *hotState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.of(s.owner.vehicle, s.unit)
	p.observe(delivery.Observation{Unit: s.unit, At: s.seen}, s.owner, nil)
	p.gather()
	p.readings.Keep(s.snapshot.All())
	q.added.set()
}

// of needs the lock.
func (q *queue) of(vehicle telematics.VehicleID, unit telematics.Unit) *pending {
	p := q.queued[vehicle]
	if p == nil || p.Unit != unit {
		p = &pending{observation: observation{vehicle: vehicle}}
		p.Unit = unit
		q.queued[vehicle] = p
	}
	return p
}

// take returns what is queued for Redis. Pass each to done, putBack or refuse.
func (q *queue) take() []*pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	for vehicle, p := range q.queued {
		if !p.refused {
			q.flushing[vehicle] = p
			delete(q.queued, vehicle)
		}
	}
	return slices.Collect(maps.Values(q.flushing))
}

// done removes what Redis has, or what cannot be written anywhere.
func (q *queue) done(flushed *pending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.flushing, flushed.vehicle)
}

// putBack queues again what a flush to Redis has not written, also for Postgres.
func (q *queue) putBack(left *pending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	left.failed = true
	q.requeue(left)
	q.added.set()
}

// refuse queues for Postgres alone what Redis refuses, until the next report.
func (q *queue) refuse(p *pending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p.refused = true
	q.requeue(p)
}

// requeue needs the lock.
func (q *queue) requeue(p *pending) {
	delete(q.flushing, p.vehicle)
	newer := q.queued[p.vehicle]
	if newer != nil && newer.Unit != p.Unit {
		return // the vehicle has another unit now
	}
	if newer != nil {
		p.join(newer)
	}
	q.queued[p.vehicle] = p
}

// find returns a copy of what is pending of a vehicle.
func (q *queue) find(vehicle telematics.VehicleID) (s redisState, found bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range []*pending{q.flushing[vehicle], q.queued[vehicle]} {
		if p == nil {
			continue
		}
		if s.unit != p.Unit {
			s = redisState{unit: p.Unit, snapshot: telematics.NewSnapshot()}
		}
		s.merge(p.At, p.all())
		found = true
	}
	return s, found
}

// owed returns what Redis does not take and Postgres lacks.
func (q *queue) owed() (list []*pending) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for p := range q.all() {
		if p.owed() {
			list = append(list, p)
		}
	}
	return list
}

// all needs the lock.
func (q *queue) all() iter.Seq[*pending] {
	return func(yield func(*pending) bool) {
		for _, some := range []map[telematics.VehicleID]*pending{q.flushing, q.queued} {
			for _, p := range some {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// observation returns what is pending as an observation to be merged in Postgres, and of how many.
func (q *queue) observation(p *pending) (observation, int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	o := p.observation
	o.readings = telematics.NewSnapshot()
	o.readings.Keep(p.all())
	return o, p.observed
}

// setStored notes that Postgres has a number of the observations, since a flush that began then.
func (q *queue) setStored(p *pending, observed int, began time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p.stored, p.since = max(p.stored, observed), began
	if p.refused && !p.owed() && q.queued[p.vehicle] == p {
		delete(q.queued, p.vehicle)
	}
}

// lag returns an upper bound of how long something has been owed.
func (q *queue) lag(now time.Time) (lag time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for p := range q.all() {
		if p.owed() {
			lag = max(lag, now.Sub(p.since))
		}
	}
	return lag
}

// unresolved holds observations of units that could not be looked up, merged by unit. They are
// written to Postgres later.
type unresolved struct {
	mu     sync.Mutex // guards what follows
	queued map[telematics.Unit]observation
}

var errTooManyUnresolved = unavailable.Mark(errors.New("observations of too many units wait for postgres"))

// add reports an error where there is no room for one more unit.
func (u *unresolved) add(o observation) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	before, ok := u.queued[o.Unit]
	if !ok && len(u.queued) >= maxUnresolved {
		return errTooManyUnresolved
	}
	u.queued[o.Unit] = before.merge(o)
	return nil
}

// drain returns all, by unit.
func (u *unresolved) drain() []observation {
	u.mu.Lock()
	defer u.mu.Unlock()
	list := make([]observation, 0, len(u.queued))
	for _, unit := range slices.Sorted(maps.Keys(u.queued)) {
		list = append(list, u.queued[unit])
	}
	clear(u.queued)
	return list
}

func (u *unresolved) size() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.queued)
}
