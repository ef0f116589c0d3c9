package simulator

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Latency draws how long the radio takes for one command and its answer together.
type Latency func(*rand.Rand) time.Duration

// Fast is a bench next to the broker.
func Fast(rng *rand.Rand) time.Duration { return uniform(rng, 2*time.Millisecond, 8*time.Millisecond) }

// The cellular model: half of all answers within the median, nine of ten between 2 and 10 seconds.
const (
	cellularMedian = 4200 * time.Millisecond
	cellularSigma  = 0.45
)

// Cellular is a mobile network on an ordinary day.
func Cellular(rng *rand.Rand) time.Duration {
	return time.Duration(float64(cellularMedian) * math.Exp(cellularSigma*rng.NormFloat64()))
}

// Between returns a radio that takes from low to high.
func Between(low, high time.Duration) Latency {
	return func(rng *rand.Rand) time.Duration { return uniform(rng, low, high) }
}

// ParseLatency returns the model named fast or cellular.
func ParseLatency(name string) (Latency, error) {
	switch name {
	case "fast":
		return Fast, nil
	case "cellular":
		return Cellular, nil
	}
	return nil, fmt.Errorf("latency %q: want fast or cellular", name)
}

func uniform(rng *rand.Rand, low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(rng.Int64N(int64(high-low)))
}
