package twins

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"motorpool/store/unavailable"
	"motorpool/telematics"
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

// outbox holds the states that one server, Redis or Postgres, does not have yet.
type outbox struct {
	queuedSome signal

	mu       sync.Mutex
	queued   map[*state]bool
	flushing map[*state]bool // being written; what is reported meanwhile is queued
	began    time.Time       // the running flush
	complete time.Time       // the latest flush that left nothing began, or the first was queued
	left     bool            // the running flush has put something back
}

func newOutbox() *outbox { return &outbox{queuedSome: newSignal(), queued: map[*state]bool{}} }

func (o *outbox) add(states ...*state) {
	if len(states) == 0 {
		return
	}
	o.mu.Lock()
	if len(o.queued)+len(o.flushing) == 0 {
		o.complete = time.Now()
	}
	for _, s := range states {
		o.queued[s] = true
	}
	o.mu.Unlock()
	o.queuedSome.set()
}

// putBack queues states again that a flush did not write.
func (o *outbox) putBack(states ...*state) {
	o.add(states...)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left = o.left || len(states) > 0
}

// begin returns all queued states, which are being written until end.
func (o *outbox) begin() []*state {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.began, o.left = time.Now(), false
	o.queued, o.flushing = map[*state]bool{}, o.queued
	return slices.Collect(maps.Keys(o.flushing))
}

func (o *outbox) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flushing = nil
	if !o.left {
		o.complete = o.began
	}
}

// lag returns an upper bound of how long a state has been queued: all states that were queued
// before the latest complete flush began are written.
func (o *outbox) lag(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queued)+len(o.flushing) == 0 {
		return 0
	}
	return now.Sub(o.complete)
}

func (o *outbox) has(s *state) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queued[s] || o.flushing[s]
}

func (o *outbox) size() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queued) + len(o.flushing)
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
