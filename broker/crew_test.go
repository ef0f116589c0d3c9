package broker

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// resting returns how many goroutines of a crew wait for a function.
func (c *crew) resting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.idle)
}

// Each function is done once, also where many come while others end, rest and leave.
func TestACrewDoesEachFunctionOnce(t *testing.T) {
	var c crew
	defer c.dismiss()
	var wg sync.WaitGroup
	did := make([]int, 1000)
	for i := range did {
		wg.Go(func() {
			c.do(func() {
				did[i]++ // not guarded: do returns after it
				runtime.Gosched()
			})
			did[i] += 10
		})
	}
	wg.Wait()
	for i, n := range did {
		if n != 11 {
			t.Fatalf("function %d: %d, want once and then the caller", i, n)
		}
	}
}

func TestWhoRestsInACrewWorksNextAndLeavesAfterAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c crew
		defer c.dismiss()
		at := func(d time.Duration, want int) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if got := c.resting(); got != want {
				t.Fatalf("%d rest, want %d", got, want)
			}
		}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { c.do(func() { time.Sleep(time.Second) }) })
		}
		both.Wait()
		at(0, 2)
		for _, want := range []int{2, 2, 1} { // one of them is enough, and nobody needs the other
			at(restFor*2/5, want)
			c.do(func() {})
		}
		at(0, 1)
		at(restFor-time.Millisecond, 1)
		at(time.Millisecond, 0)
		c.do(func() {})
		at(0, 1)
	})
}

func TestAPanicInACrewIsItsCallers(t *testing.T) {
	var c crew
	defer c.dismiss()
	for range 2 { // whoever panicked works again
		func() {
			defer func() {
				err, ok := recover().(error)
				if !ok || !strings.Contains(err.Error(), "on the way") || !strings.Contains(err.Error(), "crew_test.go") {
					t.Errorf("panic %v, want the value and where it was", err)
				}
			}()
			c.do(func() { panic(errors.New("on the way")) })
		}()
	}
}

func TestAFunctionThatLeavesItsGoroutineIsNotDone(t *testing.T) {
	var c crew
	defer c.dismiss()
	defer func() {
		if recover() == nil {
			t.Error("its caller went on")
		}
	}()
	c.do(runtime.Goexit)
}

func TestACrewThatIsDismissedWorksOnAndDoesNotRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which fails where a goroutine stays
		var c crew
		c.do(func() {})
		c.dismiss()
		did := false
		c.do(func() { did = true })
		if !did {
			t.Error("the function was not done")
		}
		if got := c.resting(); got != 0 {
			t.Errorf("%d rest", got)
		}
	})
}
