package ingest

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"motorpool/internal/assert"
	"motorpool/telematics"
)

// reading is a clock offset that a report shows, and the report's time since the first one.
type reading struct{ at, ahead time.Duration }

func TestClock_IsMeasuredByReportsThatWereNotLate(t *testing.T) {
	const s, m, h = time.Second, time.Minute, time.Hour
	every := func(interval, until time.Duration, ahead func(at time.Duration) time.Duration) (readings []reading) {
		for at := time.Duration(0); at <= until; at += interval {
			readings = append(readings, reading{at, ahead(at)})
		}
		return readings
	}
	constant := func(ahead time.Duration) func(time.Duration) time.Duration {
		return func(time.Duration) time.Duration { return ahead }
	}
	for name, c := range map[string]struct {
		readings []reading
		want     []reading
	}{
		"a right clock, once an hour": {every(m, 2*h, constant(-s)), []reading{{0, -s}, {h, -s}, {2 * h, -s}}},
		"a clock that gets ahead":     {[]reading{{0, 0}, {m, 7 * s}}, []reading{{0, 0}, {m, 7 * s}}},
		"a clock that is far ahead":   {[]reading{{0, 10 * h}}, []reading{{0, 10 * h}}},
		"a late report among others":  {[]reading{{0, -s}, {m, -2 * m}, {2 * m, -s}, {6 * m, -s}}, []reading{{0, -s}}},
		"a clock that falls behind": {
			[]reading{{0, -s}, {m, -3 * m}, {4 * m, -3 * m}, {6 * m, -3 * m}, {9 * m, -3 * m}, {12 * m, -3 * m}},
			[]reading{{0, -s}, {12 * m, -3 * m}},
		},
		"a clock that is years behind":           {every(m, 5*m, constant(-40000*h)), []reading{{5 * m, -40000 * h}}},
		"reports that were stored while offline": {every(10*s, 30*m, func(at time.Duration) time.Duration { return -8*h + 10*at }), nil},
		"stored reports, then a new one": {append(every(s, 2*m, func(at time.Duration) time.Duration {
			return -8*h + 100*at
		}), reading{3 * m, -s}), []reading{{3 * m, -s}}},
		"a clock that is set": {
			append(every(m, 5*m, constant(-2*h)), reading{6 * m, -s}), []reading{{5 * m, -2 * h}, {6 * m, -s}},
		},
	} {
		begin, is := time.Now(), &clock{}
		var got []reading
		for _, r := range c.readings {
			if measured, isNew := is.read(r.ahead, begin.Add(r.at)); isNew {
				got = append(got, reading{r.at, measured})
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: stored %v, want %v", name, got, c.want)
		}
	}
}

// stored takes all findings.
type stored struct{}

func (stored) StoreHealth(context.Context, []telematics.UnitHealth) error { return nil }

func TestHealth_IsDrainedInBatchesAndBounded(t *testing.T) {
	overflow := prometheus.NewCounter(prometheus.CounterOpts{Name: "overflow"})
	h, now := newHealth(Config{Health: stored{}}, overflow), time.Now()
	const units = 2*healthBatch + 3
	for n := range units {
		h.reject(telematics.Unit(fmt.Sprint(n)), telematics.Malformed, now)
	}
	h.reject("0", telematics.Malformed, now)
	found := map[telematics.Unit]int{}
	for _, drained := h.drain(); len(drained) > 0; _, drained = h.drain() {
		if len(drained) > healthBatch {
			t.Fatalf("%d units in one batch, want at most %d", len(drained), healthBatch)
		}
		for i, u := range drained {
			if i > 0 && drained[i-1].Unit >= u.Unit {
				t.Fatalf("unit %s comes after %s, want them sorted", u.Unit, drained[i-1].Unit)
			}
			found[u.Unit] += u.Rejects[telematics.Malformed].Count
		}
	}
	if len(found) != units || found["0"] != 2 || found["1"] != 1 {
		t.Errorf("%d units with %d and %d rejects, want all, 2 and 1", len(found), found["0"], found["1"])
	}
	for n := range maxHealth {
		h.of[telematics.Unit(fmt.Sprint(n))] = telematics.UnitHealth{}
	}
	for _, unit := range []telematics.Unit{"0", "a", "b", "c"} {
		h.reject(unit, telematics.Malformed, now)
	}
	assert.Equal(t, testutil.ToFloat64(overflow), 3, "units beyond the limit")
}

func TestHealth_DisabledCollectsNothing(t *testing.T) {
	h := newHealth(Config{}, prometheus.NewCounter(prometheus.CounterOpts{Name: "overflow"}))
	h.reject("u", telematics.Malformed, time.Now())
	h.readClock("u", time.Hour, time.Now())
	if _, drained := h.drain(); len(drained) > 0 {
		t.Errorf("collected %+v, want nothing", drained)
	}
}

func TestReadClock_UnboundedOffsetIsStoredOnce(t *testing.T) {
	h, now := newHealth(Config{Health: stored{}}, prometheus.NewCounter(prometheus.CounterOpts{Name: "overflow"})), time.Now()
	for n := range 10 {
		h.readClock("u", math.MaxInt64, now.Add(time.Duration(n)*time.Second))
		if _, drained := h.drain(); len(drained) != max(0, 1-n) || n == 0 && drained[0].Clock.Ahead != furthest {
			t.Errorf("after %d s: stored %+v, want only the first", n, drained)
		}
	}
}
