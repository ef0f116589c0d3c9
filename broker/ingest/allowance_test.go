package ingest

import (
	"testing"
	"time"
)

// The buckets are dated by the instance's clock. A unit whose message came while that clock was far
// ahead must not be limited until the same time comes again.
func TestLimiter_ClockSetBackLimitsNoUnit(t *testing.T) {
	l := NewLimiter(Allowance{Rate: 10, Burst: 20, Bytes: 1 << 20})
	now := time.Now().UTC()
	admit := func(at time.Time) bool {
		s, ok := l.Admit("car-1", 1, at)
		s.Handled(1)
		return ok
	}
	if !admit(now.Add(25 * time.Hour)) {
		t.Fatal("the first message was limited")
	}
	for i := range 200 { // a tenth of the allowed rate
		if now = now.Add(time.Second); !admit(now) {
			t.Fatalf("message %d was limited at one per second", i)
		}
	}
}
