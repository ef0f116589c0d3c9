package main

import (
	"testing"
	"time"
)

func TestQuantilesAreOfWhatWasAdded(t *testing.T) {
	l := newLatencies()
	for i := range 1000 {
		l.add(time.Duration(i+1) * time.Millisecond)
	}
	l.add(-time.Second)
	l.add(time.Hour)
	q := l.quantiles()
	near := func(got, want float64) bool { return got > want*0.998 && got < want*1.002 }
	if !near(q.P50, 500) || !near(q.P90, 900) || !near(q.P99, 991) || !near(q.Max, 60_000) {
		t.Errorf("%+v", q)
	}
}
