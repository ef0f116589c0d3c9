package activity

import (
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
)

// partitions returns the names of the partitions.
func (l *testLog) partitions() (names []string) {
	l.Helper()
	l.must(l.db.Pool.Select(&names, `select inhrelid::regclass::text from pg_inherits where inhparent = 'activity'::regclass order by 1`))
	return names
}

func (l *testLog) monthAhead(n int) string {
	l.Helper()
	now, err := l.db.Time(l.Context())
	l.must(err)
	return time.Date(now.Year(), now.Month()+time.Month(n), 1, 0, 0, 0, 0, time.UTC).Format("2006_01")
}

// unpartitioned is the last schema version with a single table.
const unpartitioned = 45

func logAt(t *testing.T, version int64) *testLog {
	t.Helper()
	db := storetest.OpenAsOwner(t, storetest.NewEmptyDatabase(t))
	require.NoError(t, db.MigrateTo(t.Context(), version))
	return &testLog{t, New(db), db}
}

// An instance of the previous version keeps its open connections and prepared statements.
func TestMigrate_TableBecomesTheFirstPartitionWhileEntriesAreAdded(t *testing.T) {
	t.Parallel()
	l := logAt(t, unpartitioned)
	l.exec(
		`create role activity_reader`, `create role activity_keeper`, `grant select on activity to activity_reader`,
		`grant select, insert, update, delete on activity to activity_keeper`,
	)
	t.Cleanup(func() {
		if _, err := l.db.Pool.Exec(`drop owned by activity_reader, activity_keeper; drop role activity_reader,
			activity_keeper`); err != nil {
			t.Error(err)
		}
	})
	l.write(numbered(1, 10)...)
	stop := make(chan struct{})
	added := make(chan int, 1)
	go func() {
		n := 0
		defer func() { added <- n }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			now := entry(n)
			now.At = time.Now()
			if err := l.Add(t.Context(), now); err != nil {
				t.Errorf("adding an entry during the migration: %v", err)
				return
			}
			n++
		}
	}()
	_, err := l.db.Migrate(t.Context())
	require.NoError(t, err)
	close(stop)
	n := <-added
	if n == 0 {
		t.Error("no entry was added during the migration")
	}
	if got, want := l.partitions(), []string{
		"activity_" + l.monthAhead(2), "activity_default", "activity_to_" + l.monthAhead(1),
	}; !slices.Equal(got, want) {
		t.Errorf("partitions %q, want %q", got, want)
	}
	l.write(entry(11))
	l.wantEntries(11 + n)
	var rights string
	l.must(
		l.db.Pool.Get(
			&rights,
			`select concat_ws(' ', has_table_privilege('activity_reader', 'activity', 'select'), has_table_privilege('activity_reader',
				'activity', 'insert'),
		has_table_privilege('activity_keeper', 'activity', 'insert'), has_table_privilege('activity_keeper', 'activity', 'update'),
		has_table_privilege('activity_keeper', 'activity_to_`+l.monthAhead(1)+`', 'delete'))`))
	assert.Equal(t, rights, "t f t f f", "rights")
}

// A month that began before it had a partition, since the clock had leapt, gets one, to which its
// entries move from the default partition.
func TestAddPartitions_OfTheNextMonthsAndOfEntriesThroughTheServicesRole(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	want := []string{
		"activity_" + l.monthAhead(0), "activity_" + l.monthAhead(1), "activity_" + l.monthAhead(2), "activity_default",
		"activity_to_" + l.monthAhead(-1),
	}
	assert.EqualSlices(t, l.partitions(), want, "partitions of a new database")
	now, err := l.db.Time(t.Context())
	l.must(err)
	current, far := entry(1), entry(1)
	current.At, far.At = now, now.AddDate(3, 0, 0)
	l.exec(`drop table activity_`+l.monthAhead(1), `drop table activity_`+l.monthAhead(2))
	l.write(current, entry(1), far)
	for range 2 {
		l.must(addPartitions(t.Context(), l.db))
	}
	want = slices.Insert(want, 3, "activity_"+l.monthAhead(36))
	assert.EqualSlices(t, l.partitions(), want, "partitions")
	var where []string
	l.must(l.db.Pool.Select(&where, `select tableoid::regclass::text from activity order by id`))
	if w := []string{want[0], want[5], want[3]}; !slices.Equal(where, w) {
		t.Errorf("entries are in %q, want %q", where, w)
	}
	if _, err := l.owner.Pool.Exec(`delete from ` + want[0]); err == nil || !strings.Contains(err.Error(), "append-only") {
		t.Errorf("delete from a partition: %v, want it refused as append-only", err)
	}
}
