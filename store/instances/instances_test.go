package instances

import (
	"context"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/commands"
	"motorpool/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestBeat_NumbersGrowAndShowTheOthers(t *testing.T) {
	db := storetest.Open(t, storetest.NewDatabase(t))
	beat := func(id string, least int64) map[string]Instance {
		t.Helper()
		all, err := Beat(t.Context(), db, id, "key-"+id, least)
		require.NoError(t, err)
		byID := map[string]Instance{}
		for _, i := range all {
			byID[i.ID] = i
		}
		return byID
	}
	beat("a", 0)
	if all := beat("b", 0); all["a"] != (Instance{"a", 1, "key-a", true}) || all["b"] != (Instance{"b", 1, "key-b", true}) {
		t.Errorf("two instances: %+v", all)
	}
	assert.Equal(t, beat("a", 1)["a"].Beats, 2, "the second beat has the number")
	// The database was restored: its number is older than the one that the instance has shown.
	assert.Equal(t, beat("a", 50)["a"].Beats, 51, "after a restore: number")
	storetest.Exec(t, db.Pool, `update instances set seen_at = now() - interval '20 seconds' where id = 'b'`)
	if all := beat("a", 51); all["b"].Running {
		t.Error("an instance without a beat for 20 s is running")
	}
	storetest.Exec(t, db.Pool, `update instances set seen_at = now() - interval '25 hours' where id = 'b'`)
	if more, err := Forget(t.Context(), db, 100); more || err != nil {
		t.Errorf("Forget = %v, %v", more, err)
	}
	if all := beat("a", 52); len(all) != 1 {
		t.Errorf("after a day: %+v, want one", all)
	}
}

// Forms of a Postgres that answers and takes no writes.
func TestBeat_FailsWherePostgresTakesNoWrites(t *testing.T) {
	address := storetest.NewDatabase(t)
	db := storetest.Open(t, address)
	_, err := Beat(t.Context(), db, "a", "key", 0)
	require.NoError(t, err)
	storetest.Exec(t, db.Pool, `do $$ begin execute format('alter database %I set default_transaction_read_only = on',
		current_database()); end $$`)
	if _, err := Beat(t.Context(), storetest.Open(t, address), "a", "key", 1); err == nil {
		t.Error("a read-only database took a beat")
	}
}

// Bookings wait for the rows of a vehicle that an open transaction has locked.
func TestBeat_HasAConnectionWhereAllOthersWait(t *testing.T) {
	db := storetest.Open(t, storetest.NewDatabase(t))
	for range db.Pool.Stats().MaxOpenConnections {
		conn, err := db.Pool.Connx(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
	}
	for name, ask := range map[string]func(context.Context) error{
		"beat":    func(ctx context.Context) error { _, err := Beat(ctx, db, "a", "key", 0); return err },
		"clock":   func(ctx context.Context) error { _, err := db.Time(ctx); return err },
		"observe": func(ctx context.Context) error { _, err := db.ObserveClock(ctx); return err },
		"schema":  db.Migrated,
		"rights":  db.Allowed,
		"numbers": func(ctx context.Context) error { _, _, err := commands.Numbers{DB: db}.Raise(ctx, true); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), storetest.Patience)
		assert.NoError(t, ask(ctx), "%s", name)
		cancel()
	}
}
