package ingest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"motorpool/telematics"
)

// health collects what messages show of the health of their units, until it is stored: clock
// errors, rejects and reconnects.
type health struct {
	on       bool
	overflow prometheus.Counter

	mu       sync.Mutex
	buffered map[telematics.Unit]telematics.UnitHealth // at most maxHealth
	clocks   *lru.Cache[telematics.Unit, *clock]
}

func newHealth(on bool, overflow prometheus.Counter) *health {
	clocks, err := lru.New[telematics.Unit, *clock](maxHealth)
	if err != nil { // only for a size below 1
		panic(err)
	}
	return &health{on: on, overflow: overflow, buffered: map[telematics.Unit]telematics.UnitHealth{}, clocks: clocks}
}

func (h *health) reject(unit telematics.Unit, why telematics.Reject, now time.Time) {
	h.note(telematics.UnitHealth{Unit: unit, Rejects: map[telematics.Reject]telematics.Tally{why: {Count: 1, Last: now}}})
}

func (h *health) reconnect(unit telematics.Unit, now time.Time) {
	h.note(telematics.UnitHealth{Unit: unit, Reconnects: telematics.Tally{Count: 1, Last: now}})
}

// furthest limits how far a clock counts as off, so that no sum overflows.
const furthest = 100 * 365 * 24 * time.Hour

// readClock adds a reading of how far a unit's clock was ahead of this instance's when a report
// arrived.
func (h *health) readClock(unit telematics.Unit, ahead time.Duration, now time.Time) {
	if !h.on {
		return
	}
	ahead = min(max(ahead, -furthest), furthest)
	h.mu.Lock()
	defer h.mu.Unlock()
	c, ok := h.clocks.Get(unit)
	if !ok {
		c = &clock{}
		h.clocks.Add(unit, c)
	}
	if measured, isNew := c.read(ahead, now); isNew {
		h.add(telematics.UnitHealth{Unit: unit, Clock: &telematics.ClockReading{Ahead: measured, At: now}})
	}
}

// note adds findings about a unit.
func (h *health) note(found telematics.UnitHealth) {
	if !h.on {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.add(found)
}

// add is called with the mutex held.
func (h *health) add(found telematics.UnitHealth) {
	before, ok := h.buffered[found.Unit]
	if !ok && len(h.buffered) == maxHealth {
		h.overflow.Inc()
		return
	}
	h.buffered[found.Unit] = before.Merge(found)
}

// drain removes up to healthBatch units, and returns them in the order of their serials.
func (h *health) drain() []telematics.UnitHealth {
	h.mu.Lock()
	defer h.mu.Unlock()
	drained := make([]telematics.UnitHealth, 0, min(len(h.buffered), healthBatch))
	for unit, found := range h.buffered { // in no order, so that none waits for long
		if len(drained) == healthBatch {
			break
		}
		drained = append(drained, found)
		delete(h.buffered, unit)
	}
	slices.SortFunc(drained, func(a, b telematics.UnitHealth) int { return cmp.Compare(a.Unit, b.Unit) })
	return drained
}

// storeHealth stores the health of up to healthBatch units; others wait.
func (in *Ingest) storeHealth(ctx context.Context) {
	drained := in.health.drain()
	if len(drained) == 0 {
		return
	}
	ctx, cancel := in.step(ctx)
	defer cancel()
	err := in.Health.StoreHealth(ctx, drained)
	if in.outages.health.Note(ctx, in.Logger, "health of units not stored", err); err != nil {
		for _, found := range drained {
			in.health.note(found)
		}
	}
}

// saidAt returns the time that a unit gave its report; false: it gave none.
func saidAt(r telematics.Report, dropped []telematics.Dropped) (time.Time, bool) {
	for _, d := range dropped {
		if d.Fault == telematics.WrongTime {
			return d.Said, !d.Said.IsZero()
		}
	}
	return r.At, !r.Undated
}

// clock estimates how far a unit's clock is ahead, from its reports. A delayed report makes the
// clock seem to be behind, and none makes it seem to be ahead: so of the reports within clockWindow
// the one counts by which the clock is furthest ahead.
type clock struct {
	stored      time.Duration // how far it is ahead, as read returned it last
	storedAt    time.Time     // zero: never
	since       time.Time
	least, most time.Duration // of the reports since then
}

// read adds the reading of a report. It returns how far the clock is ahead, and true where that
// must be stored: it differs from the stored value, or that was stored long ago.
func (c *clock) read(ahead time.Duration, now time.Time) (measured time.Duration, isNew bool) {
	if c.since.IsZero() {
		c.since, c.least, c.most = now, ahead, ahead
	}
	c.least, c.most = min(c.least, ahead), max(c.most, ahead)
	measured = c.most
	late, spread, ended := measured < -telematics.LiveWithin, c.most-c.least, now.Sub(c.since) >= clockWindow
	if ended {
		c.since, c.least, c.most = now, ahead, ahead
	}
	switch {
	case late && (!ended || spread > lateSpread):
		return 0, false // the unit may be sending what it could not send before
	case c.storedAt.IsZero(), measured > c.stored+clockStep:
	case ended && (measured < c.stored-clockStep || now.Sub(c.storedAt) >= clockRefresh):
	default:
		return 0, false
	}
	c.stored, c.storedAt = measured, now
	return measured, true
}
