package ingest

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"motorpool/telematics"
)

// health collects what messages show of the health of their units, until it is stored: clock
// errors, rejects and reconnects.
type health struct {
	findings[telematics.UnitHealth]

	reading sync.Mutex // guards the clocks in the cache
	clocks  *lru.Cache[telematics.Unit, *clock]
}

func newHealth(c Config, overflow prometheus.Counter) *health {
	h := &health{clocks: NewCache[telematics.Unit, *clock](maxHealth)}
	h.what, h.batch, h.most, h.overflow = "health of units not stored", healthBatch, maxHealth, overflow
	if c.Health != nil {
		h.port = c.Health.StoreHealth
	}
	return h
}

func (h *health) reject(unit telematics.Unit, why telematics.Reject, now time.Time) {
	h.add(unit, telematics.UnitHealth{Unit: unit, Rejects: map[telematics.Reject]telematics.Tally{why: {Count: 1, Last: now}}})
}

func (h *health) reconnect(unit telematics.Unit, now time.Time) {
	h.add(unit, telematics.UnitHealth{Unit: unit, Reconnects: telematics.Tally{Count: 1, Last: now}})
}

// furthest limits how far a clock counts as off, so that no sum overflows.
const furthest = 100 * 365 * 24 * time.Hour

// readClock adds a reading of how far a unit's clock was ahead of this instance's when a report
// arrived.
func (h *health) readClock(unit telematics.Unit, ahead time.Duration, now time.Time) {
	ahead = min(max(ahead, -furthest), furthest)
	h.reading.Lock()
	defer h.reading.Unlock()
	c, ok := h.clocks.Get(unit)
	if !ok {
		c = &clock{}
		h.clocks.Add(unit, c)
	}
	if measured, isNew := c.read(ahead, now); isNew {
		h.add(unit, telematics.UnitHealth{Unit: unit, Clock: &telematics.ClockReading{Ahead: measured, At: now}})
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
