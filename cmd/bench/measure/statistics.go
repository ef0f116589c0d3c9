package measure

import (
	"fmt"
	"slices"
)

// Of returns one figure of each round.
func Of[R any](rounds []R, figure func(R) float64) []float64 {
	all := make([]float64, len(rounds))
	for i, r := range rounds {
		all[i] = figure(r)
	}
	return all
}

// Pairs returns one figure for each pair of rounds with the same index.
func Pairs[R any](ours, theirs []R, figure func(ours, theirs R) float64) []float64 {
	all := make([]float64, min(len(ours), len(theirs)))
	for i := range all {
		all[i] = figure(ours[i], theirs[i])
	}
	return all
}

// Median is the middle value, or halfway between the two in the middle.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Spread is a figure that was measured several times.
type Spread struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

// SpreadOf returns the spread of values.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	return Spread{Median: Median(values), Least: slices.Min(values), Most: slices.Max(values)}
}

func (s Spread) String() string { return fmt.Sprintf("%.2f (%.2f to %.2f)", s.Median, s.Least, s.Most) }
