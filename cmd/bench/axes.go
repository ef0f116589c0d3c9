package main

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
)

// spanAxes makes the axes of a plot hold all points. The ticks of x are the numbers that were measured, those of y are round.
func spanAxes(p *plot.Plot, curves []curve) {
	var inFlight []float64
	for _, c := range curves {
		for _, at := range c.Points {
			inFlight = append(inFlight, float64(at.InFlight))
		}
	}
	slices.Sort(inFlight)
	inFlight = slices.Compact(inFlight)
	p.X.Tick.Marker = ticks(inFlight)
	p.X.Min, p.X.Max = inFlight[0]/1.2, inFlight[len(inFlight)-1]*1.1

	round := roundAround(p.Y.Min, p.Y.Max)
	p.Y.Tick.Marker = ticks(round)
	p.Y.Min, p.Y.Max = round[0], round[len(round)-1]
}

// roundAround are the numbers 1, 2 and 5 of each power of ten, from the last below an interval to the first above it.
func roundAround(low, high float64) []float64 {
	var round []float64
	for power := int(math.Floor(math.Log10(low))) - 1; ; power++ {
		for _, digit := range []float64{1, 2, 5} {
			n := digit * math.Pow10(power)
			if n < low {
				round = round[:0]
			}
			round = append(round, n)
			if n > high {
				return round
			}
		}
	}
}

func ticks(at []float64) plot.ConstantTicks {
	var t plot.ConstantTicks
	for _, value := range at {
		t = append(t, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'g', 6, 64)})
	}
	return t
}
