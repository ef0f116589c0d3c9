package broker

import (
	"testing"
	"time"
)

// The accounts are dated by the instance's clock. A unit that was heard while that was far ahead must not wait until it is as late again.
func TestIntake_AClockThatIsSetBackKeepsNoUnitOut(t *testing.T) {
	in := newIntake(allowance{rate: 10, burst: 20, bytes: 1 << 20})
	now := time.Now().UTC()
	admit := func(at time.Time) bool {
		s, ok := in.admit("car-1", 1, at)
		s.handled(1)
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
