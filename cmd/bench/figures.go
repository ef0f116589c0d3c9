package main

import "slices"

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
