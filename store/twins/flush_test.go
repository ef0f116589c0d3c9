package twins

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestPauseRedis_IsShorterWhereACallerWaits(t *testing.T) {
	for name, c := range map[string]struct {
		pause time.Duration
		after time.Duration // a caller waits; zero: none
		want  time.Duration
	}{
		"no caller":             {pause: time.Second, want: time.Second},
		"a caller, later":       {pause: time.Second, after: 300 * time.Millisecond, want: 300 * time.Millisecond},
		"a caller, immediately": {pause: time.Second, after: time.Millisecond, want: awaitedPause},
		"a pause that is short": {pause: awaitedPause / 2, after: time.Millisecond, want: awaitedPause / 2},
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
				twins.awaited.clear() // what it waited for is being flushed
				began := time.Now()
				twins.pauseRedis(context.Background(), c.pause)
				if got := time.Since(began); got != c.want {
					t.Errorf("rested %v, want %v", got, c.want)
				}
			})
		})
	}
}
