package ingest

import (
	"testing"
	"time"
)

// The accounts are dated by the instance's clock. A unit that was heard while that was far ahead
// must not wait until it is as late again.
func TestLimiter_AClockThatIsSetBackKeepsNoUnitOut(t *testing.T) {
	l := NewLimiter(Allowance{Rate: 10, Burst: 20, Bytes: 1 << 20})
	now := time.Now().UTC()
	admit := func(at time.Time) bool {
		s, ok := l.Admit("car-1", 1, at)
		s.Handled(1)
		return ok
	}
	if !admit(now.Add(25 * time.Hour)) {
		t.Fatal("the first message was refused")
	}
	for i := range 200 { // a tenth of the allowance
		if now = now.Add(time.Second); !admit(now) {
			t.Fatalf("message %d of one a second was refused", i)
		}
	}
}
