package store

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestRedisIsLeftAloneForLessWhereSomebodyWaits(t *testing.T) {
	for name, c := range map[string]struct {
		pause time.Duration
		after time.Duration // somebody waits; zero: nobody
		want  time.Duration
	}{
		"nobody":                {pause: time.Second, want: time.Second},
		"somebody, at last":     {pause: time.Second, after: 300 * time.Millisecond, want: 300 * time.Millisecond},
		"somebody, at once":     {pause: time.Second, after: time.Millisecond, want: awaitedRest},
		"a pause that is short": {pause: awaitedRest / 2, after: time.Millisecond, want: awaitedRest / 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				twins := &Twins{awaited: make(chan struct{}, 1)}
				if c.after > 0 {
					time.AfterFunc(c.after, func() {
						twins.await()
						twins.await() // as many as there are
					})
				}
				twins.await()
				twins.awaitNobody() // what it waited for is under way
				began := time.Now()
				twins.restBeforeOffer(context.Background(), c.pause)
				if got := time.Since(began); got != c.want {
					t.Errorf("rested %v, want %v", got, c.want)
				}
			})
		})
	}
}
