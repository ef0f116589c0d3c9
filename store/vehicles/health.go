package vehicles

import (
	"context"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// reconnects is the kind of the counts of reconnects; the other kinds are reasons of rejects.
const reconnects = "reconnect"

// clocksKeptFor is how long the last reading of a clock is kept, of units that left the fleet.
const clocksKeptFor = 30 * 24 * time.Hour

var (
	clockRows = pg.RowSet{Name: "n", Columns: []string{"unit text", "ahead_ms bigint", "at timestamptz"}}
	countRows = pg.RowSet{Name: "n", Columns: []string{"unit text", "kind text", "count bigint", "last_at timestamptz"}}
)

// ofVehicles leaves out units that no vehicle has: each client could invent some.
const ofVehicles = ` where exists (select from units u where u.serial = n.unit and u.vehicle_id is not null)`

// Both lock their rows in the same order, so that two instances do not wait for each other.
var (
	upsertClocks = `
		with ` + clockRows.Many() + `
		insert into unit_clocks as c (unit, ahead_ms, at)
		select unit, ahead_ms, at from n` + ofVehicles + ` order by unit
		on conflict (unit) do update set ahead_ms = excluded.ahead_ms, at = excluded.at where c.at < excluded.at`
	upsertCounts = `
		with ` + countRows.Many() + `
		insert into unit_counts as c (unit, hour, kind, count, last_at)
		select unit, date_trunc('hour', last_at), kind, count, last_at from n` + ofVehicles + ` order by unit, kind
		on conflict (unit, hour, kind) do update set count = c.count + excluded.count, last_at = greatest(c.last_at, excluded.last_at)`
)

// StoreHealth implements ingest.Health.
func (f *Fleet) StoreHealth(ctx context.Context, units []telematics.UnitHealth) error {
	var clocks, counts [][]any
	count := func(unit telematics.Unit, kind string, t telematics.Tally) {
		if t.Count > 0 {
			counts = append(counts, []any{string(unit), kind, int64(t.Count), pg.Timestamp(t.Last)})
		}
	}
	for _, u := range units {
		if u.Clock != nil {
			clocks = append(clocks, []any{string(u.Unit), u.Clock.Ahead.Milliseconds(), pg.Timestamp(u.Clock.At)})
		}
		count(u.Unit, reconnects, u.Reconnects)
		for why, tally := range u.Rejects {
			count(u.Unit, string(why), tally)
		}
	}
	return unavailable.Wrap("store the health of units", f.db.Within(ctx, func(tx *sqlx.Tx) error {
		// No caller waits for the commit, and losing it does no harm.
		if _, err := tx.ExecContext(ctx, `set local synchronous_commit = off`); err != nil {
			return err
		}
		return errors.Join(insertRows(ctx, tx, upsertClocks, clocks), insertRows(ctx, tx, upsertCounts, counts))
	}))
}

func insertRows(ctx context.Context, tx *sqlx.Tx, statement string, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, statement, pg.Arrays(rows)...)
	return err
}

// ForgetHealth removes counts that are older than a day, and the clocks of units that have not
// reported for clocksKeptFor, up to limit of each, and reports whether there may be others.
func ForgetHealth(ctx context.Context, db *pg.DB, limit int) (more bool, err error) {
	counts, err := db.Forget(ctx, "forget counts of units", `
		delete from unit_counts where (unit, hour, kind) in (
			select unit, hour, kind from unit_counts where hour <= now() - `+pg.Interval(telematics.UnitHealthFor)+`
			order by hour limit $1 for update skip locked)`, limit)
	if err != nil {
		return false, err
	}
	clocks, err := db.Forget(ctx, "forget clocks of units", `
		delete from unit_clocks where unit in (
			select unit from unit_clocks where at <= now() - `+pg.Interval(clocksKeptFor)+` limit $1 for update skip locked)`, limit)
	return counts || clocks, err
}
