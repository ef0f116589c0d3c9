package main

import (
	"fmt"
	"slices"
)

// of returns one figure of each round.
func of[R any](rounds []R, figure func(R) float64) []float64 {
	all := make([]float64, len(rounds))
	for i, r := range rounds {
		all[i] = figure(r)
	}
	return all
}

// median is the middle of an odd number of values, and between the two in the middle of an even one.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// pairs compares rounds that took turns, each with its own.
func pairs[R any](ours, theirs []R, figure func(ours, theirs R) float64) []float64 {
	all := make([]float64, min(len(ours), len(theirs)))
	for i := range all {
		all[i] = figure(ours[i], theirs[i])
	}
	return all
}

// spread is a figure that was measured some times.
type spread struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	return spread{Median: median(values), Least: slices.Min(values), Most: slices.Max(values)}
}

func (s spread) String() string { return fmt.Sprintf("%.2f (%.2f to %.2f)", s.Median, s.Least, s.Most) }
