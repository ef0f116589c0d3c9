package activity

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"motorpool/telematics"
)

// monthsAgo returns the first day of an earlier month.
func (l *sealedLog) monthsAgo(n int) time.Time {
	l.Helper()
	now, err := l.db.Time(l.Context())
	l.must(err)
	return time.Date(now.Year(), now.Month()-time.Month(n), 1, 12, 0, 0, 0, time.UTC)
}

// months replaces the first partition by partitions of n months, each with ten sealed entries.
func (l *sealedLog) months(n int) {
	l.Helper()
	l.exec(`drop table activity_to_` + l.monthAhead(-1))
	for ; n >= 0; n-- {
		if at := l.monthsAgo(n); n > 0 {
			name := "activity_" + l.monthAhead(-n)
			l.exec(`select create_activity_table('`+name+`')`,
				fmt.Sprintf(`alter table activity attach partition %s for values from ('%s') to ('%s')`, name, at.Format("2006-01-02"), at.AddDate(0, 1, 0).Format("2006-01-02")))
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
		l.seal()
	}
}

func (l *sealedLog) prune(months int, dryRun bool) (names []string, others int64) {
	l.Helper()
	p, err := Prune(l.Context(), l.db, months, dryRun)
	l.must(err)
	for _, m := range p.Months {
		names = append(names, m.Name)
	}
	return names, p.Others
}

func TestPrune_ChainStaysValidWithoutTheRemovedMonths(t *testing.T) {
	t.Parallel()
	l := newSealedLog(t)
	stray := entry(1)
	stray.At = l.monthsAgo(80)
	l.months(5)
	l.write(stray)
	l.seal()
	l.exec(`select nextval(pg_get_serial_sequence('activity', 'id'))`)
	noted := l.head()
	if r := l.verify(); len(r.Findings) > 0 || r.Entries != 61 {
		t.Fatalf("before the pruning: %+v", r)
	}
	outdated := []string{"activity_" + l.monthAhead(-5), "activity_" + l.monthAhead(-4), "activity_" + l.monthAhead(-3)}
	if names, _ := l.prune(2, true); !slices.Equal(names, outdated) || len(l.partitions()) != 9 {
		t.Errorf("the dry run names %q, want %q, and must remove none", names, outdated)
	}
	if names, others := l.prune(2, false); !slices.Equal(names, outdated) || others != 1 || len(l.partitions()) != 6 {
		t.Errorf("pruned %q and %d other entries, left %q", names, others, l.partitions())
	}
	l.write(entry(1)) // an entry of March is in the default partition
	l.seal()
	// Three months of ten entries each. One of them was written late; it is counted separately.
	r := l.verify(noted)
	if len(r.Findings) > 0 || r.Entries != 29+1 || r.PrunedBefore != l.monthsAgo(2).Format("2006-01") {
		t.Errorf("after the pruning: %+v", r)
	}
	var first int64
	l.must(l.db.Pool.Get(&first, `select min(number) from activity_seals`))
	if first < 4 {
		t.Errorf("the first seal is %d: the seals of removed entries still exist", first)
	}
	var file bytes.Buffer
	l.must(l.Export(t.Context(), &file, Range{}))
	if r, err := VerifyExport(&file, noted); err != nil || len(r.Findings) > 0 || r.Entries < 28 {
		t.Errorf("export: %+v, %v", r, err)
	}
	if names, others := l.prune(2, false); len(names) > 0 || others != 1 {
		t.Errorf("pruned again: %q and %d other entries, want none and 1", names, others)
	}
	l.prune(1, false)
	if r := l.verify(noted); len(r.Findings) > 0 || r.Entries != 19 {
		t.Errorf("a month later: %+v", r)
	}

	before := l.partitions()
	l.tamper(fmt.Sprintf(`insert into activity (id, at, actor_subject, actor_role, action, outcome, code, latency_us, late) overriding system value
		values (7, '%s', 'eve', 'admin', 'status.read', 'executed', '', 1, false)`, l.monthsAgo(4).Format(time.DateOnly)))
	if r := l.verify(); !slices.Equal(problems(r), []string{"entry inserted 7-7"}) {
		t.Errorf("an entry inserted where entries were pruned: %v", r.Findings)
	}
	l.tamper(`delete from activity where id = 7`)
	l.exec(`drop table ` + before[0]) // the partition of the last month
	if r := l.verify(); len(r.Findings) < 10 || r.Findings[0].Problem != EntryRemoved {
		t.Errorf("a partition dropped by hand: %v, want removed entries", r.Findings)
	}
}
