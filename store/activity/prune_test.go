package activity

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/telematics"
)

// monthsAgo returns the first day of an earlier month.
func (l *testLog) monthsAgo(n int) time.Time {
	l.Helper()
	now, err := l.db.Time(l.Context())
	l.must(err)
	return time.Date(now.Year(), now.Month()-time.Month(n), 1, 12, 0, 0, 0, time.UTC)
}

// months replaces the first partition by partitions of n months, each with ten entries.
func (l *testLog) months(n int) {
	l.Helper()
	l.exec(`drop table activity_to_` + l.monthAhead(-1))
	for ; n >= 0; n-- {
		if at := l.monthsAgo(n); n > 0 {
			name := "activity_" + l.monthAhead(-n)
			l.exec(
				`select create_activity_table('`+name+`')`,
				fmt.Sprintf(
					`alter table activity attach partition %s for values from ('%s') to ('%s')`, name,
					at.Format("2006-01-02"), at.AddDate(0, 1, 0).Format("2006-01-02"),
				),
			)
		}
		var entries []telematics.Activity
		for i := range 10 {
			a := entry(i)
			a.At = l.monthsAgo(n).Add(time.Duration(i) * time.Second)
			if i == 0 && n < 5 { // an entry of the month before, written late
				a.At = l.monthsAgo(n + 1)
			}
			entries = append(entries, a)
		}
		l.write(entries...)
	}
}

func (l *testLog) prune(months int, dryRun bool) (names []string, others int64) {
	l.Helper()
	p, err := Prune(l.Context(), l.owner, months, dryRun)
	l.must(err)
	for _, m := range p.Months {
		names = append(names, m.Name)
	}
	return names, p.Others
}

func TestPrune_RemovesMonthsAndWhatIsOlderInTheDefaultPartition(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	stray := entry(1)
	stray.At = l.monthsAgo(80)
	l.months(5)
	l.write(stray)
	l.wantEntries(61)
	outdated := []string{"activity_" + l.monthAhead(-5), "activity_" + l.monthAhead(-4), "activity_" + l.monthAhead(-3)}
	if names, _ := l.prune(2, true); !slices.Equal(names, outdated) || len(l.partitions()) != 9 {
		t.Errorf("the dry run names %q, want %q, and must remove none", names, outdated)
	}
	l.wantEntries(61)
	if names, others := l.prune(2, false); !slices.Equal(names, outdated) || others != 1 || len(l.partitions()) != 6 {
		t.Errorf("pruned %q and %d other entries, left %q", names, others, l.partitions())
	}
	// Three months of ten entries each, one of which was an entry of the month before.
	l.wantEntries(29)
	var before time.Time
	l.must(l.db.Pool.Get(&before, `select before from history_pruned where history = 'activity'`))
	if want := l.monthsAgo(2).Truncate(24 * time.Hour); !before.Equal(want) {
		t.Errorf("history_pruned says that the log begins with %v, want %v", before, want)
	}
	l.write(stray)
	if names, others := l.prune(2, false); len(names) > 0 || others != 1 {
		t.Errorf("pruned again: %q and %d other entries, want none and 1", names, others)
	}
	if _, err := l.owner.Pool.Exec(`delete from activity_default`); err == nil || !strings.Contains(err.Error(), "append-only") {
		t.Errorf("delete after the pruning: %v, want it refused as append-only", err)
	}
	l.prune(1, false)
	l.wantEntries(19)
}
