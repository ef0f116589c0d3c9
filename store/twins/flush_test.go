package twins

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestPauseRedis_IsShorterWhereACallerWaits(t *testing.T) {
	for name, c := range map[string]struct {
		pause time.Duration
		after time.Duration // a caller waits; zero: none
		want  time.Duration
	}{
		"no caller":              {pause: time.Second, want: time.Second},
		"a caller, later":        {pause: time.Second, after: 300 * time.Millisecond, want: 300 * time.Millisecond},
		"a caller, immediately":  {pause: time.Second, after: time.Millisecond, want: awaitedPause},
		"a pause that is short":  {pause: awaitedPause / 2, after: time.Millisecond, want: awaitedPause / 2},
		"a short one, no caller": {pause: awaitedPause / 2, want: redisEvery},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				twins := &Twins{awaited: newSignal()}
				if c.after > 0 {
					time.AfterFunc(c.after, func() {
						twins.awaited.set()
						twins.awaited.set() // as many as there are
					})
				}
				twins.awaited.set()
				twins.awaited.clear() // its report is being flushed
				began := time.Now()
				twins.pauseRedis(context.Background(), c.pause, began)
				if got := time.Since(began); got != c.want {
					t.Errorf("paused for %v, want %v", got, c.want)
				}
			})
		})
	}
}

func TestQueue_LagIsTheAgeOfWhatNoFlushHasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, first, second := newQueue(), owner{vehicle: 1}, owner{vehicle: 2}
		add := func(owner owner) {
			q.add(delivery.Observation{Unit: "unit"}, owner, nil)
			for _, p := range q.take() {
				q.putBack(p) // Redis does not take it
			}
		}
		want := func(what string, want time.Duration) {
			t.Helper()
			assert.Equal(t, q.lag(time.Now()), want, "%s", what)
		}
		flush := func(takes time.Duration, left ...telematics.VehicleID) {
			began, owed := time.Now(), q.owed()
			counts := make([]int, len(owed))
			for i, p := range owed {
				_, counts[i] = q.observation(p)
			}
			time.Sleep(takes)
			for i, p := range owed {
				if !slices.Contains(left, p.vehicle) {
					q.setStored(p, counts[i], began)
				}
			}
		}
		time.Sleep(time.Hour)
		want("empty", 0)
		add(first)
		time.Sleep(2 * time.Second)
		want("queued", 2*time.Second)
		flush(time.Second, first.vehicle)
		want("not written", 3*time.Second)
		time.AfterFunc(time.Second, func() { add(second) })
		flush(2 * time.Second)
		synctest.Wait()
		want("queued while the flush ran", time.Second)
		time.AfterFunc(time.Second, func() { add(second) })
		flush(2 * time.Second)
		synctest.Wait()
		want("observed again while the flush ran", 2*time.Second)
		flush(0)
		want("all is written", 0)
		time.Sleep(time.Hour)
		add(second)
		want("observed long after it was written", 0)
	})
}
