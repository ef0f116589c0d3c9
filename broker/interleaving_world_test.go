package broker_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// interleaving is one fleet and its service, drawn from a seed, in which everything may go
// wrong: instances over one record and one pending table, cars, and the air between.
type interleaving struct {
	*testing.T
	seed     uint64
	start    time.Time
	temper   temper
	dice     *dice
	memory   *brokertest.Memory
	ledger   *ledger
	key      signing.Key
	ring     signing.Keyring
	cars     garage
	tracker  *tracker
	postgres server
	redis    server
	mqtt     server
	mended   atomic.Bool
	calls    sync.WaitGroup // what goes on in the air, in cars and on the network
	callers  sync.WaitGroup
	ends     sync.WaitGroup // of instances that were stopped or have crashed

	mu         sync.Mutex
	instances  []*instance
	downSince  time.Time // no instance is up; zero: one is
	halts      []halting
	anomalies  map[telematics.CommandID]bool
	excused    map[telematics.CommandID]bool // commands and requests that a fault touched
	troubles   []interval                    // of the record, or without an instance
	others     []interval                    // of Redis
	replies    []reply
	trace      []event
	violations []string
	tally      map[string]int
	steps      map[[2]telematics.State]int
}

type interval struct{ from, to time.Time }

type halting struct {
	interval
	telematics.Halt
}

// event is a line of the story, formatted when it is read.
type event struct {
	at     time.Time
	format string
	args   []any
}

// server is one that may be unavailable for a while, and how.
type server struct {
	mu    sync.Mutex
	until time.Time
	how   callFault
}

func (s *server) away() callFault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.until) {
		return s.how
	}
	return done
}

func (s *server) leave(d time.Duration, how callFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until, s.how = time.Now().Add(d), how
}

func newInterleaving(t *testing.T, seed uint64, key signing.Key) *interleaving {
	d := newDice(seed, 0)
	w := &interleaving{
		T: t, seed: seed, start: time.Now(), temper: newTemper(d), dice: d, memory: brokertest.NewMemory(),
		key: key, ring: key.Keyring(), downSince: time.Now(),
		anomalies: map[telematics.CommandID]bool{}, excused: map[telematics.CommandID]bool{},
		tally: map[string]int{}, steps: map[[2]telematics.State]int{},
	}
	w.ledger = newLedger(w, w.memory)
	w.tracker = newTracker(w)
	for i := range 1 + d.below(3) {
		id := telematics.VehicleID(i + 1)
		m := &motorcar{
			interleaving: w, id: id, unit: telematics.Unit(fmt.Sprintf("unit-%d", id)),
			skew: d.within(-maxSkew, maxSkew), dice: newDice(seed, uint64(100+i)),
			seen: map[telematics.CommandID]*job{}, last: map[telematics.Lane]int64{}, queue: map[telematics.Lane][]*job{},
		}
		w.cars = append(w.cars, m)
		twin := healthy()
		twin.ID, twin.Unit, twin.AgencyID = id, m.unit, telematics.AgencyID(1+i%2)
		w.memory.Put(twin)
	}
	return w
}

// maxSkew is how wrong the cars' clocks are.
const maxSkew = 2 * time.Second

func (w *interleaving) carOf(unit telematics.Unit) *motorcar {
	for _, m := range w.cars {
		if m.unit == unit {
			return m
		}
	}
	return nil
}

// run lets it all happen, mends everything, and waits until all is said.
func (w *interleaving) run() {
	span := w.dice.within(40*time.Second, 100*time.Second)
	for range 1 + w.dice.below(3) {
		w.launch()
	}
	for _, m := range w.cars {
		w.calls.Go(func() { m.reports(w.start.Add(span)) })
	}
	w.plan(span)
	w.tracker.isAsked(span)
	time.Sleep(span)

	w.mend()
	before := w.memory.Entries()
	// The longest budget, and what a settlement may take.
	time.Sleep(telematics.MaxBudget + 8*time.Second)
	w.callers.Wait()
	w.lastReports()
	time.Sleep(2 * time.Second)
	w.everyInstance((*instance).stop)
	w.ends.Wait()
	w.calls.Wait()
	w.judge(before)
}

// mend ends every trouble.
func (w *interleaving) mend() {
	w.note("everything is mended")
	w.mended.Store(true)
	for _, s := range []*server{&w.postgres, &w.redis, &w.mqtt} {
		s.leave(0, done)
	}
	w.resume()
	w.everyInstance(func(i *instance) { i.link.own.leave(0, done) })
	if w.anyInstance((*instance).up) == nil {
		w.launch()
	}
	time.Sleep(6 * time.Second) // cars come back, belated statements end
}

// lastReports brings each car's results to the service.
func (w *interleaving) lastReports() {
	for _, m := range w.cars {
		message := m.report()
		if i := w.anyInstance((*instance).up); i != nil {
			i.broker.Report(brokertest.Said(m.unit, message, false))
		}
	}
}

// halt replaces the halt that is in force.
func (w *interleaving) halt(agency telematics.AgencyID) {
	w.resume()
	w.mu.Lock()
	defer w.mu.Unlock()
	h := telematics.Halt{Agency: agency, Why: "trial", Since: time.Now()}
	w.halts = append(w.halts, halting{interval{from: time.Now()}, h})
	w.memory.Halt(h)
}

func (w *interleaving) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.memory.Halt()
	for i := range w.halts {
		if w.halts[i].to.IsZero() {
			w.halts[i].to = time.Now()
		}
	}
}

// haltedFor returns the halt that stops an agency at an instant, and since when.
func (w *interleaving) haltedFor(agency telematics.AgencyID, now time.Time) (telematics.Halt, time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.halts {
		if _, stops := (telematics.Halts{h.Halt}).Stops(agency); stops && h.to.IsZero() {
			return h.Halt, h.from, true
		}
	}
	return telematics.Halt{}, time.Time{}, false
}
