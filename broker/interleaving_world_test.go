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

// interleaving is a fleet and its service, drawn from a seed: instances over one record and one
// pending table, cars, and the network between them, all with faults.
type interleaving struct {
	*testing.T
	seed       uint64
	start      time.Time
	faultRates faultRates
	dice       *dice
	memory     *brokertest.Memory
	ledger     *ledger
	key        signing.Key
	ring       signing.Keyring
	cars       garage
	tracker    *tracker
	postgres   server
	redis      server
	mqtt       server
	mended     atomic.Bool
	calls      sync.WaitGroup // messages, executions in cars, and belated calls
	callers    sync.WaitGroup
	ends       sync.WaitGroup // ends of instances

	mu         sync.Mutex
	instances  []*instance
	downSince  time.Time // since when no instance is up; zero: one is up
	halts      []halting
	anomalies  map[telematics.CommandID]bool
	excused    map[telematics.CommandID]bool // commands and requests that a fault affected
	troubles   []interval                    // times of faults of Postgres, or without an instance
	others     []interval                    // times of other faults
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

// event is an entry of the trace, formatted when the trace is printed.
type event struct {
	at     time.Time
	format string
	args   []any
}

// server is a server that may be unavailable for a time, with a kind of fault.
type server struct {
	mu    sync.Mutex
	until time.Time
	how   callFault
}

func (s *server) fault() callFault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.until) {
		return s.how
	}
	return done
}

func (s *server) setFault(d time.Duration, how callFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until, s.how = time.Now().Add(d), how
}

func newInterleaving(t *testing.T, seed uint64, key signing.Key) *interleaving {
	d := newDice(seed, 0)
	w := &interleaving{
		T: t, seed: seed, start: time.Now(), faultRates: newFaultRates(d), dice: d, memory: brokertest.NewMemory(),
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

// maxSkew is the largest error of a car's clock.
const maxSkew = 2 * time.Second

func (w *interleaving) carOf(unit telematics.Unit) *motorcar {
	for _, m := range w.cars {
		if m.unit == unit {
			return m
		}
	}
	return nil
}

// run runs the planned events, ends all faults, and checks the result when everything is settled.
func (w *interleaving) run() {
	span := w.dice.within(40*time.Second, 100*time.Second)
	for range 1 + w.dice.below(3) {
		w.launch()
	}
	for _, m := range w.cars {
		w.calls.Go(func() { m.reports(w.start.Add(span)) })
	}
	w.plan(span)
	w.tracker.plan(span)
	time.Sleep(span)

	w.mend()
	before := w.memory.Entries()
	// The longest budget, and the time limit of a settlement.
	time.Sleep(telematics.MaxBudget + 8*time.Second)
	w.callers.Wait()
	w.lastReports()
	time.Sleep(2 * time.Second)
	w.everyInstance((*instance).stop)
	w.ends.Wait()
	w.calls.Wait()
	w.check(before)
}

// mend ends all faults.
func (w *interleaving) mend() {
	w.note("all faults end")
	w.mended.Store(true)
	for _, s := range []*server{&w.postgres, &w.redis, &w.mqtt} {
		s.setFault(0, done)
	}
	w.resume()
	w.everyInstance(func(i *instance) { i.link.own.setFault(0, done) })
	if w.anyInstance((*instance).up) == nil {
		w.launch()
	}
	time.Sleep(6 * time.Second) // cars restart, belated statements end
}

// lastReports delivers each car's results.
func (w *interleaving) lastReports() {
	for _, m := range w.cars {
		message := m.report()
		if i := w.anyInstance((*instance).up); i != nil {
			i.broker.Report(brokertest.Said(m.unit, message, false))
		}
	}
}

// halt replaces the active halt.
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

// haltedFor returns the active halt of an agency, and its begin.
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
