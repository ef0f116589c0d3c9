package main

import (
	"testing"
	"time"
)

func TestSpansThatOverlapAreCountedAtTheirPeak(t *testing.T) {
	for _, c := range []struct {
		name         string
		begins, ends []int64
		want         int
	}{
		{"none", nil, nil, 0},
		{"one after the other", []int64{1, 2, 3}, []int64{2, 3, 4}, 1},
		{"all together", []int64{1, 2, 3}, []int64{6, 5, 4}, 3},
		{"two, and two later", []int64{1, 2, 11, 12}, []int64{4, 3, 13, 14}, 2},
		{"one that was not answered", []int64{1, 1}, []int64{0, 2}, 1},
		{"one that was not sent", []int64{0, 1}, []int64{2, 2}, 1},
	} {
		if got := mostAtOnce(c.begins, c.ends); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestTimesOfTheSameVehicleAreJoined(t *testing.T) {
	l, err := between([]int64{1_000, 2_000, 3_000}, []int64{2_000, 0, 7_000})
	if err != nil || l.h.TotalCount() != 2 {
		t.Fatalf("%d joined, %v", l.h.TotalCount(), err)
	}
	if q := l.quantiles(); q.P50 != 1 || q.Max < 3.99 || q.Max > 4.01 {
		t.Errorf("%+v", q)
	}
}

func TestTimesThatCannotBelongTogetherAreAnError(t *testing.T) {
	for name, lists := range map[string][2][]int64{
		"answered before the vehicle gave its answer": {{1_000, 5_000}, {2_000, 4_000}},
		"answered, and the vehicle gave none":         {{0}, {1_000}},
		"of different fleets":                         {{1_000}, {2_000, 3_000}},
	} {
		if _, err := between(lists[0], lists[1]); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestASpanReachesFromTheFirstTimeToTheLast(t *testing.T) {
	if got := spanOf([]int64{5_000, 0, 2_000, 4_000}); got != 3*time.Millisecond {
		t.Error(got)
	}
	if got := spanOf([]int64{0}); got != 0 {
		t.Error(got)
	}
}
