package main

import (
	"math"
	"math/rand/v2"
	"time"
)

// cellular is a network by its median: what it takes is log-normal, between two fifths of that and twice as much. With 5 s
// that is from 2 to 10 s, for which the service is made.
type cellular time.Duration

const cellularSigma = 0.5

func (c cellular) least() time.Duration { return time.Duration(c) * 2 / 5 }
func (c cellular) most() time.Duration  { return time.Duration(c) * 2 }

func (c cellular) takes() time.Duration {
	for {
		d := time.Duration(float64(c) * math.Exp(cellularSigma*rand.NormFloat64()))
		if c.least() <= d && d <= c.most() {
			return d
		}
	}
}
