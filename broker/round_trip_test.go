package broker

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"motorpool/internal/assert"
)

// cellular is a random round trip on a cellular network: log-normal with a median of 5 s, from 2 to
// 10 s.
func cellular(dice *rand.Rand) time.Duration {
	return time.Duration(min(max(5*math.Exp(0.5*dice.NormFloat64()), 2), 10) * float64(time.Second))
}

func TestRoundTrip_EstimateFollowsTheNetwork(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	var u roundTrip
	assert.Equal(t, u.estimate(), minRoundTrip, "estimate before any measurement")
	for range 300 {
		u.observe(cellular(dice))
	}
	if w := u.estimate(); w < 4*time.Second || w > 6500*time.Millisecond {
		t.Errorf("estimate %v on a cellular network, want about 5 s", w)
	}
	for range 1000 {
		u.observe(50 * time.Millisecond)
	}
	assert.Equal(t, u.estimate(), minRoundTrip, "estimate on a fast network")
}

func TestFirstRetransmit_IsNotDelayedByLosses(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	const budget = 30 * time.Second
	var u roundTrip
	for range 2000 { // three of ten messages are lost, and answered when retransmitted
		took := 300 * time.Millisecond
		for attempt := 1; dice.Float64() < 0.3; attempt++ {
			took += retransmitAfter(firstRetransmit(u.estimate(), budget), attempt, false, dice.Float64())
		}
		u.observe(took)
		if first := firstRetransmit(u.estimate(), budget); first > 3*time.Second {
			t.Fatalf("with losses, retransmitted after %v, want at most 3 s", first)
		}
	}
}

func TestFirstRetransmit_IsTwoRoundTripsButEarlyEnoughForASecond(t *testing.T) {
	for _, c := range []struct{ usual, budget, want time.Duration }{
		{time.Second, 10 * time.Second, 2 * time.Second},
		{1200 * time.Millisecond, 10 * time.Second, 2400 * time.Millisecond},
		{5 * time.Second, 10 * time.Second, 2 * time.Second},
		{3 * time.Second, 30 * time.Second, 6 * time.Second},
		{5 * time.Second, time.Second, 2 * time.Second},
	} {
		if got := firstRetransmit(c.usual, c.budget); got != c.want {
			t.Errorf("round trip %v, budget %v: retransmitted after %v, want %v", c.usual, c.budget, got, c.want)
		}
	}
	const latest = 0.999999 // jitter
	for usual := minRoundTrip; usual <= maxRoundTrip; usual += 100 * time.Millisecond {
		for budget := time.Second; budget <= 30*time.Second; budget += time.Second {
			first := firstRetransmit(usual, budget)
			second := retransmitAfter(first, 1, false, latest) + retransmitAfter(first, 2, false, latest)
			if first > minRetransmit && second+usual > budget+time.Millisecond {
				t.Errorf(
					"round trip %v, budget %v: retransmitted after %v, then after %v, too late for an answer within the budget",
					usual, budget, first, second,
				)
			}
		}
	}
}
