package audit

import (
	"testing"
	"time"

	"motorpool/lab/chaos/verdict"
)

func TestShown_Stays(t *testing.T) {
	begin := time.Now().Truncate(time.Second)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	shown := func(start, end, lastSeen int, stored bool) Shown {
		return Shown{Start: at(start), End: at(end), By: "list", Vehicle: 7, LastSeen: at(lastSeen), LocatedAt: at(0), Stored: stored}
	}
	other := shown(3, 4, -50, true)
	other.Vehicle = 8
	moved := shown(3, 4, 1, true)
	moved.LocatedAt = at(-1)
	unit := shown(3, 4, 1, true)
	unit.NoPosition, unit.LocatedAt = true, time.Time{}
	never := shown(3, 4, 1, true)
	never.LastSeen = time.Time{}
	for name, test := range map[string]struct {
		shown      []Shown
		violations int
	}{
		"the same, and newer":              {[]Shown{shown(1, 2, 1, true), shown(3, 4, 1, true), shown(5, 6, 5, false)}, 0},
		"back":                             {[]Shown{shown(1, 2, 1, true), shown(3, 4, 0, true)}, 1},
		"back, in the other order":         {[]Shown{shown(3, 4, 0, true), shown(1, 2, 1, true)}, 1},
		"back to nothing":                  {[]Shown{shown(1, 2, 1, true), never}, 1},
		"back, after one that was allowed": {[]Shown{shown(1, 2, 1, true), shown(3, 4, 3, false), shown(5, 6, 0, true)}, 1},
		"back, at the same time":           {[]Shown{shown(1, 4, 3, true), shown(3, 5, 1, true)}, 0},
		"back, and it was said":            {[]Shown{shown(1, 2, 1, false), shown(3, 4, -60, false)}, 0},
		"back by too much":                 {[]Shown{shown(1, 2, 1, false), shown(3, 4, -80, true)}, 1},
		"nothing stored yet, as was said":  {[]Shown{shown(1, 2, 1, false), never}, 0},
		"the position goes back":           {[]Shown{shown(1, 2, 1, true), moved}, 1},
		"a resource without position":      {[]Shown{shown(1, 2, 1, true), unit, shown(5, 6, 1, true)}, 0},
		"another vehicle":                  {[]Shown{shown(1, 2, 1, true), other}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			report := verdict.New("shown")
			shownStays(&checker{view: newView(Evidence{Shown: test.shown}), law: "shown", report: &report})
			if len(report.Violations) != test.violations {
				t.Errorf("violations: %v", report.Violations)
			}
		})
	}
}

func TestMonthsEnd_LosesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		months     *Months
		violations int
	}{
		"not judged": {nil, 0},
		"good":       {&Months{Entries: 5, Samples: 5}, 0},
		"both":       {&Months{Entries: 5, Outside: 1, Refused: 2}, 2},
	} {
		report := verdict.New("month")
		monthsEndLosesNothing(&checker{view: newView(Evidence{Months: test.months}), law: "month", report: &report})
		if len(report.Violations) != test.violations {
			t.Errorf("%s: violations %v", name, report.Violations)
		}
	}
}
