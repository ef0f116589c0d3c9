package main

import (
	"maps"
	"testing"
)

func TestEveryReportComesToOneEnd(t *testing.T) {
	before := ledger{reportsTaken: 50, reportsMerged: 50, "reports_dropped": 2}
	now := ledger{
		reportsTaken: 150, reportsMerged: 140, "reports_dropped": 5, "reports_malformed": 1,
		"observations_lost": 4, "units_unknown": 2, "presence_taken": 9,
	}
	added := now.since(before)
	if n := added.ended(); n != 90+3+1+4+2 {
		t.Errorf("%d ended", n)
	}
	want := ledger{"reports_dropped": 3, "reports_malformed": 1, "observations_lost": 4, "units_unknown": 2}
	if !maps.Equal(added.lost(), want) {
		t.Errorf("lost %v, want %v", added.lost(), want)
	}
}

func TestWhoOnlyCountsIsDoneOnceItHasTaken(t *testing.T) {
	if n := (ledger{reportsTaken: 7}).ended(); n != 7 {
		t.Errorf("%d ended", n)
	}
}

func TestARoundThatLostAnythingIsNotSound(t *testing.T) {
	for name, r := range map[string]ingestRound{
		"dropped": {Lost: ledger{"reports_dropped": 1}}, "stale": {Stale: 1}, "unread": {Unread: 1},
	} {
		if r.sound() == nil {
			t.Errorf("%s: taken for sound", name)
		}
	}
	if err := (ingestRound{Lost: ledger{}}).sound(); err != nil {
		t.Error(err)
	}
}

func TestTheMedianIsInTheMiddle(t *testing.T) {
	for want, values := range map[float64][]float64{0: nil, 4: {4}, 3: {9, 1, 3}, 2.5: {4, 1, 3, 2}} {
		if got := median(values); got != want {
			t.Errorf("median of %v is %v, want %v", values, got, want)
		}
	}
}
