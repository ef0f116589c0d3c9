package broker

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestTimers_NextIsTheEarliest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		in := func(d time.Duration) time.Time { return now.Add(d) }
		for name, tt := range map[string]struct {
			timers timers
			want   time.Duration
		}{
			"the deadline alone": {timers{deadline: in(10 * time.Second)}, 10 * time.Second},
			"a publication": {
				timers{deadline: in(10 * time.Second), retransmit: in(2 * time.Second), progress: in(3 * time.Second)}, 2 * time.Second,
			},
			"progress": {
				timers{deadline: in(10 * time.Second), retransmit: in(2 * time.Second), progress: in(time.Second)}, time.Second,
			},
			"a publication after the deadline": {
				timers{deadline: in(10 * time.Second), retransmit: in(11 * time.Second)}, 10 * time.Second,
			},
			"overdue progress": {timers{deadline: in(10 * time.Second), progress: in(-time.Second)}, -time.Second},
		} {
			if got := tt.timers.next(); got != tt.want {
				t.Errorf("%s: next in %v, want %v", name, got, tt.want)
			}
		}
		for at, want := range map[time.Time]bool{{}: false, now: true, in(-time.Second): true, in(time.Nanosecond): false} {
			if due(at) != want {
				t.Errorf("%v is due: %v, want %v", at, !want, want)
			}
		}
	})
}
