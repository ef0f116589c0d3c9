package audit

import (
	"testing"
	"time"

	"motorpool/internal/assert"
)

func TestIntervals_AreJoinedAndMeasured(t *testing.T) {
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	up := joined([]Interval{{at(20), at(30)}, {at(0), at(10)}, {at(5), at(12)}, {at(12), at(14)}, {at(40), time.Time{}}, {at(50), at(60)}})
	if len(up) != 3 || !up[0].To.Equal(at(14)) || !up[2].To.IsZero() {
		t.Fatalf("joined to %v", up)
	}
	for _, c := range []struct {
		from, to int
		longest  time.Duration
		covered  bool
	}{
		{2, 9, 7 * time.Second, true},
		{0, 14, 14 * time.Second, true},
		{13, 26, 6 * time.Second, false},
		{14, 20, 0, false},
		{15, 19, 0, false},
		{25, 45, 5 * time.Second, false},
		{70, 90, 20 * time.Second, true},
		{9, 8, 0, true},
	} {
		assert.Equal(t, longest(up, at(c.from), at(c.to)), c.longest, "longest from %d to %d", c.from, c.to)
		assert.Equal(t, covers(up, at(c.from), at(c.to)), c.covered, "covers %d to %d", c.from, c.to)
	}
}

func TestLongestWithout_LongestUntouchedInterval(t *testing.T) {
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	touched := joined([]Interval{{at(10), at(12)}, {at(20), at(30)}, {at(40), time.Time{}}})
	for _, c := range []struct {
		from, to int
		want     time.Duration
	}{
		{0, 5, 5 * time.Second},
		{0, 11, 10 * time.Second},
		{11, 35, 8 * time.Second},
		{21, 29, 0},
		{25, 60, 10 * time.Second},
		{50, 60, 0},
		{5, 4, 0},
	} {
		assert.Equal(t, longestWithout(touched, at(c.from), at(c.to)), c.want, "from %d to %d", c.from, c.to)
	}
}
