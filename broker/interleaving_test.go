package broker_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// How many seeds are tried. INTERLEAVINGS sets another number, INTERLEAVING a single seed. make
// test tries 200 without the race detector, too.
const (
	interleavings     = 2000
	interleavingsRace = 30 // each takes five times as long
	storiesShown      = 2
)

// TestInterleavings draws whole installations from seeds and checks each against the laws: 1 to 3
// instances over one record, cars that follow the protocol, a network that loses, repeats and
// delays messages, and faults of all servers. A seed always gives the same plan and the same random
// numbers; the order of simultaneous events is up to the scheduler, so a rare failure may need
// several runs of its seed (-count).
func TestInterleavings(t *testing.T) {
	key, err := signing.NewKey()
	require.NoError(t, err)
	first, last := uint64(1), uint64(numberFrom(t, "INTERLEAVINGS", interleavings))
	if require.Race {
		last = uint64(numberFrom(t, "INTERLEAVINGS", interleavingsRace))
	}
	one := numberFrom(t, "INTERLEAVING", 0)
	if one > 0 {
		first, last = uint64(one), uint64(one)
	}
	all := &explored{tally: map[string]int{}, steps: map[[2]telematics.State]int{}}
	began := time.Now()
	t.Run("worlds", func(t *testing.T) {
		for seed := first; seed <= last; seed++ {
			t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(time.Until(today))
					w := newInterleaving(t, seed, key)
					w.run()
					all.add(w)
				})
			})
		}
	})
	all.log(t, time.Since(began))
	if one == 0 && last >= interleavings {
		all.wantEveryStep(t)
	}
}

func numberFrom(t *testing.T, name string, otherwise int) int {
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q is not a number of interleavings", name, s)
	}
	return n
}

// explored sums up all interleavings.
type explored struct {
	mu     sync.Mutex
	worlds int
	failed int
	tally  map[string]int
	steps  map[[2]telematics.State]int
}

func (x *explored) add(w *interleaving) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.worlds++
	for what, n := range w.tally {
		x.tally[what] += n
	}
	for step, n := range w.steps {
		x.steps[step] += n
	}
	if len(w.violations) == 0 {
		return
	}
	x.failed++
	w.Errorf("seed %d violates:\n  %s\nto repeat: INTERLEAVING=%d go test ./broker -run TestInterleavings",
		w.seed, strings.Join(w.violations, "\n  "), w.seed)
	if x.failed <= storiesShown {
		w.Log(w.story())
	}
}

func (x *explored) log(t *testing.T, took time.Duration) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%d worlds in %v, %d of them violated a law\n", x.worlds, took.Round(time.Millisecond), x.failed)
	for _, what := range slices.Sorted(maps.Keys(x.tally)) {
		fmt.Fprintf(&b, "%9d %s\n", x.tally[what], what)
	}
	for _, from := range telematics.States {
		for _, to := range telematics.States {
			if n := x.steps[[2]telematics.State{from, to}]; n > 0 {
				fmt.Fprintf(&b, "%9d %s → %s\n", n, from, to)
			}
		}
	}
	t.Log(b.String())
}

// wantEveryStep fails where an allowed change of state never happened: then the faults are too rare
// for the test to be useful.
func (x *explored) wantEveryStep(t *testing.T) {
	t.Helper()
	for _, from := range telematics.States {
		for _, to := range telematics.States {
			if from.MayBecome(to) && x.steps[[2]telematics.State{from, to}] == 0 {
				t.Errorf("no command changed from %s to %s", from, to)
			}
		}
	}
}
