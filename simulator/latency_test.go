package simulator

import (
	"slices"
	"testing"
	"time"
)

func quantiles(l Latency) func(float64) time.Duration {
	rng := newRNG()
	drawn := make([]time.Duration, 20_000)
	for i := range drawn {
		drawn[i] = l(rng)
	}
	slices.Sort(drawn)
	return func(q float64) time.Duration { return drawn[int(q*float64(len(drawn)-1))] }
}

func TestMostCellularAnswersTakeTwoToTenSeconds(t *testing.T) {
	at := quantiles(Cellular)
	if median := at(0.5); median < 4*time.Second || median > 4400*time.Millisecond {
		t.Errorf("median %v", median)
	}
	if at(0.06) < 2*time.Second || at(0.96) > 10*time.Second {
		t.Errorf("6 %% take less than %v, 4 %% more than %v", at(0.06), at(0.96))
	}
	if at(1) < 12*time.Second { // log-normal: the tail is long
		t.Errorf("the slowest takes %v", at(1))
	}
}

func TestFastIsAFewMillisecondsAndARangeIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		latency   Latency
		low, high time.Duration
	}{
		"fast":    {Fast, 2 * time.Millisecond, 8 * time.Millisecond},
		"between": {Between(6*time.Second, 9*time.Second), 6 * time.Second, 9 * time.Second},
		"fixed":   {Between(time.Second, time.Second), time.Second, time.Second},
	} {
		if at := quantiles(c.latency); at(0) < c.low || at(1) > c.high {
			t.Errorf("%s: %v to %v", name, at(0), at(1))
		}
	}
}

func TestLatenciesAreNamed(t *testing.T) {
	for name, ok := range map[string]bool{"fast": true, "cellular": true, "": false, "5g": false} {
		if l, err := ParseLatency(name); (err == nil) != ok || (l != nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
