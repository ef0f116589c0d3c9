package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Times of many events are kept by vehicle, as microseconds since the epoch; zero: it did not come to that.

// mostAtOnce is how many of some spans overlap at most. A span that ends when another begins does not overlap it; one that
// has no end does not count.
func mostAtOnce(begins, ends []int64) int {
	type edge struct {
		at   int64
		step int
	}
	var edges []edge
	for i, end := range ends {
		if begins[i] != 0 && end != 0 {
			edges = append(edges, edge{begins[i], 1}, edge{end, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step)) })
	most, now := 0, 0
	for _, e := range edges {
		now += e.step
		most = max(most, now)
	}
	return most
}

// between joins two lists of times, by vehicle, and returns how long it took from the one to the other. Vehicles whose order was
// not answered do not count. It is an error if anything came before what it follows: then these are not times of the same command.
func between(from, to []int64) (latencies, error) {
	if len(from) != len(to) {
		return latencies{}, fmt.Errorf("%d vehicles gave answers, %d were answered for", len(from), len(to))
	}
	all := newLatencies()
	for v, end := range to {
		if end == 0 {
			continue
		}
		if from[v] == 0 || end < from[v] {
			return all, fmt.Errorf("vehicle %d: answered at %d, which follows from something at %d", v+1, end, from[v])
		}
		all.add(time.Duration(end-from[v]) * time.Microsecond)
	}
	return all, nil
}

// spanOf is from the first of some times to the last.
func spanOf(times []int64) time.Duration {
	taken := slices.DeleteFunc(slices.Clone(times), func(at int64) bool { return at == 0 })
	if len(taken) == 0 {
		return 0
	}
	return time.Duration(slices.Max(taken)-slices.Min(taken)) * time.Microsecond
}
