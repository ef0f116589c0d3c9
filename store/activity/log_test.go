package activity

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/require"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

var march = time.Date(2026, 3, 24, 10, 0, 0, 123456000, time.UTC)

// testLog is the log of an instance.
type testLog struct {
	*testing.T
	*Log
	owner *pg.DB
}

func newLog(t *testing.T) *testLog {
	t.Helper()
	address := storetest.NewDatabase(t)
	return &testLog{t, New(storetest.Open(t, address)), storetest.OpenAsOwner(t, address)}
}

func entry(n int) telematics.Activity {
	return telematics.Activity{
		At:    march.Add(time.Duration(n) * time.Second),
		Actor: telematics.Actor{Subject: fmt.Sprintf("admin-<%d>", n%7), Role: telematics.Admin, Agency: 2}, Agency: 2,
		Vehicle: telematics.VehicleID(n), Action: telematics.StatusRead, Outcome: telematics.Executed,
		RequestID: uuid.New(), Details: map[string]any{"filter": map[string]any{"q": "ä & b"}, "vehicles": float64(n)},
		Latency: 1500 * time.Microsecond,
	}
}

func (l *testLog) must(err error) {
	l.Helper()
	require.NoError(l, err)
}

// write adds entries in one statement.
func (l *testLog) write(entries ...telematics.Activity) {
	l.Helper()
	l.must(Insert(l.Context(), l.db.Pool, entries...))
}

// numbered returns entries by their numbers.
func numbered(from, to int) (entries []telematics.Activity) {
	for n := from; n <= to; n++ {
		entries = append(entries, entry(n))
	}
	return entries
}

// exec runs statements as the owner of the database.
func (l *testLog) exec(statements ...string) {
	l.Helper()
	for _, statement := range statements {
		storetest.Exec(l.T, l.owner.Pool, statement)
	}
}

// wantEntries checks how many entries there are, each with a different id.
func (l *testLog) wantEntries(n int) {
	l.Helper()
	entries, err := l.Activities(l.Context(), telematics.ActivityQuery{})
	l.must(err)
	ids := map[int64]bool{}
	for _, e := range entries {
		ids[e.ID] = true
	}
	if len(entries) != n || len(ids) != n || ids[0] {
		l.Errorf("%d entries have %d different ids, want %d", len(entries), len(ids), n)
	}
}

func TestActivities_ChangesHaveNoReads(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	change := entry(2)
	change.Action = telematics.VehicleChange
	l.write(entry(1), change, entry(3))
	found, err := l.Activities(t.Context(), telematics.ActivityQuery{Changes: true})
	if err != nil || len(found) != 1 || found[0].Action != telematics.VehicleChange {
		t.Errorf("%+v, %v, want the change alone", found, err)
	}
}
