package simulator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"motorpool/internal/assert"
)

func TestAir_LosesEveryOtherCommandOnce(t *testing.T) {
	a := newAir(Fast, &Faults{Drop: Rule{Every: 2}}, newRNG())
	for i := range 6 {
		message := []byte(fmt.Sprintf("command %d", i))
		_, first := a.down(epoch, message)
		_, second := a.down(epoch, message)
		if lost := i%2 == 1; first == lost || !second {
			t.Errorf("command %d: first delivery arrives %t, second %t", i, first, second)
		}
	}
}

func TestAir_LosesTheConfiguredShare(t *testing.T) {
	a := newAir(Fast, &Faults{Drop: Rule{Chance: 0.3}}, newRNG())
	lost := 0
	for range 10_000 {
		if _, arrives := a.down(epoch, []byte("the same")); !arrives {
			lost++
		}
	}
	if lost < 2800 || lost > 3200 {
		t.Errorf("%d of 10000 deliveries were lost, want about 3000", lost)
	}
}

func TestAir_SameSeedMakesTheSameFaults(t *testing.T) {
	arrivals := func(car Config) string {
		a := newAir(Cellular, &Faults{Drop: Rule{Chance: 0.5}}, Random(car.Seed, car.Unit))
		arrivals := ""
		for i := range 50 {
			at, arrives := a.down(epoch, []byte{byte(i)})
			arrivals += fmt.Sprint(at, arrives)
		}
		return arrivals
	}
	car, other := Config{Unit: aUnit, Seed: 3}, Config{Unit: "another", Seed: 3}
	once, again := arrivals(car), arrivals(car)
	if once != again || once == arrivals(other) {
		t.Error("the faults are not reproducible, or equal for different cars")
	}
}

// A radio delays messages, but reorders them only with that fault.
func TestAir_KeepsTheOrderWithoutFaults(t *testing.T) {
	a := newAir(Cellular, &Faults{}, newRNG())
	var down, up []time.Time
	for i := range 100 {
		now := epoch.Add(time.Duration(i) * 50 * time.Millisecond)
		at, _ := a.down(now, []byte{byte(i)})
		down = append(down, at)
		up = append(up, a.upAnswer(now)...)
		up = append(up, a.up(now))
	}
	if !slices.IsSortedFunc(down, time.Time.Compare) || !slices.IsSortedFunc(up, time.Time.Compare) || len(up) != 200 {
		t.Error("messages are out of order, or some are missing")
	}
}

func TestAir_CommandAndAnswerTakeOneLatencyTogether(t *testing.T) {
	a := newAir(Between(6*time.Second, 6*time.Second), &Faults{Delay: 2 * time.Second}, newRNG())
	at, _ := a.down(epoch, []byte("command"))
	assert.Equal(t, a.upAnswer(at)[0].Sub(epoch), 8*time.Second, "the round trip took")
}

func TestAir_DuplicatesDropsAndReordersAnswers(t *testing.T) {
	a := newAir(Fast, &Faults{Duplicate: Always}, newRNG())
	assert.Equal(t, len(a.upAnswer(epoch)), 2, "copies of a duplicated answer")
	a = newAir(Fast, &Faults{DropAnswer: Always}, newRNG())
	assert.Equal(t, len(a.upAnswer(epoch)), 0, "copies of a dropped answer")
	a = newAir(Fast, &Faults{Reorder: Rule{Chance: 0.5}}, newRNG())
	var leave []time.Time
	for range 50 {
		leave = append(leave, a.upAnswer(epoch)...)
	}
	if slices.IsSortedFunc(leave, time.Time.Compare) {
		t.Error("no answer was reordered")
	}
	for _, at := range leave {
		if at.Sub(epoch) > maxHold+10*time.Millisecond {
			t.Errorf("an answer was delayed by %v, more than the limit", at.Sub(epoch))
		}
	}
}

func TestAir_ReportAfterADelayIsNotLate(t *testing.T) {
	faults := Faults{Delay: 20 * time.Second}
	a := newAir(Fast, &faults, newRNG())
	now := time.Now()
	faults.Delay = 0
	a.settle()
	if at := a.up(now); at.After(now.Add(time.Second)) {
		t.Errorf("the report leaves %v later, want at most 1s", at.Sub(now))
	}
}

func quantiles(l Latency) func(float64) time.Duration {
	rng := newRNG()
	drawn := make([]time.Duration, 20_000)
	for i := range drawn {
		drawn[i] = l(rng)
	}
	slices.Sort(drawn)
	return func(q float64) time.Duration { return drawn[int(q*float64(len(drawn)-1))] }
}

func TestCellular_MostAnswersTakeTwoToTenSeconds(t *testing.T) {
	at := quantiles(Cellular)
	if median := at(0.5); median < 4*time.Second || median > 4400*time.Millisecond {
		t.Errorf("the median is %v, want about 4.2s", median)
	}
	if at(0.06) < 2*time.Second || at(0.96) > 10*time.Second {
		t.Errorf("6 %% take less than %v, 4 %% more than %v, want 2s and 10s", at(0.06), at(0.96))
	}
	if at(1) < 12*time.Second { // log-normal: the tail is long
		t.Errorf("the slowest takes %v, want at least 12s", at(1))
	}
}

func TestLatency_StaysInItsRange(t *testing.T) {
	for name, c := range map[string]struct {
		latency   Latency
		low, high time.Duration
	}{
		"fast":    {Fast, 2 * time.Millisecond, 8 * time.Millisecond},
		"between": {Between(6*time.Second, 9*time.Second), 6 * time.Second, 9 * time.Second},
		"fixed":   {Between(time.Second, time.Second), time.Second, time.Second},
	} {
		if at := quantiles(c.latency); at(0) < c.low || at(1) > c.high {
			t.Errorf("%s: %v to %v, want %v to %v", name, at(0), at(1), c.low, c.high)
		}
	}
}
