package audit

import (
	"slices"
	"time"
)

// joined returns intervals in order, those that touch as one.
func joined(all []Interval) []Interval {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b Interval) int { return a.From.Compare(b.From) })
	var out []Interval
	for _, next := range all {
		if len(out) == 0 || out[len(out)-1].endsBefore(next.From) {
			out = append(out, next)
			continue
		}
		last := &out[len(out)-1]
		if next.To.IsZero() || last.endsBefore(next.To) {
			last.To = next.To
		}
	}
	return out
}

func (i Interval) endsBefore(t time.Time) bool { return !i.To.IsZero() && i.To.Before(t) }

// longest returns the longest part of the (joined) intervals that lies between two times, unbroken.
func longest(within []Interval, from, to time.Time) time.Duration {
	var most time.Duration
	for _, i := range within {
		start, end := i.From, to
		if start.Before(from) {
			start = from
		}
		if i.endsBefore(to) {
			end = i.To
		}
		most = max(most, end.Sub(start))
	}
	return most
}

// longestWithout returns the longest part between two times that none of the (joined) intervals
// touches.
func longestWithout(intervals []Interval, from, to time.Time) time.Duration {
	var most time.Duration
	for _, i := range intervals {
		if i.From.After(to) {
			break
		}
		most = max(most, i.From.Sub(from))
		switch {
		case i.To.IsZero():
			return most
		case i.To.After(from):
			from = i.To
		}
	}
	return max(most, to.Sub(from))
}

// covers reports whether one of the (joined) intervals holds the whole time between two times.
func covers(intervals []Interval, from, to time.Time) bool {
	return slices.ContainsFunc(intervals, func(i Interval) bool { return !i.From.After(from) && !i.endsBefore(to) })
}
