package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // what is stored is read without the service

	"motorpool/lab/bench/load"
)

// database reads what is stored, without the service, over one connection: what Postgres uses for
// that is known.
type database struct{ *sqlx.DB }

// exec executes statements, each outside a transaction.
func (db database) exec(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%.40s: %w", statement, err)
		}
	}
	return nil
}

func get[T any](ctx context.Context, db database, query string, args ...any) (value T, err error) {
	return value, db.GetContext(ctx, &value, query, args...)
}

// fill puts vehicles on record up to a number, as the first one is, each with a unit that was never
// connected.
func (db database) fill(ctx context.Context, last int, tiny bool) error {
	if err := db.exec(ctx, fmt.Sprintf(`
		insert into vehicles (id, agency_id, status, powertrain, plate_number,
			brand, model, year, color, category, image, features, capabilities)
		select n, agency_id, status, powertrain, 'T-ST ' || n, brand, model, year, color, category, image, features, capabilities
		from vehicles, generate_series(2, %d) n where id = 1`, last), fmt.Sprintf(`
		insert into units (serial, vehicle_id, check_at)
		select '%s' || lpad(n::text, 9, '0'), n, null from generate_series(2, %d) n`, load.SerialPrefix, last)); err != nil || tiny {
		return err
	}
	// A cluster in use has segments of its log to write over, 32 by default. Otherwise commits wait
	// for tens of milliseconds, again and again, while Postgres creates one.
	return errors.Join(db.exec(ctx, `
		select pg_logical_emit_message(false, 'bench', ''), pg_switch_wal() from generate_series(1, 32)`), db.settle(ctx))
}

// settle does what Postgres would otherwise do during the measurement.
func (db database) settle(ctx context.Context) error {
	return db.exec(ctx, `vacuum (analyze)`, `checkpoint`) //nolint:misspell // as Postgres spells it
}

// connectUnits records that all units are connected. Otherwise the first message of each changes
// that, once in its life.
func (db database) connectUnits(ctx context.Context) error {
	return db.exec(ctx, `
		update units set status = 'online', announced = 'online', session = 'bench',
			said_at = now(), changed_at = now(), last_seen = now()`)
}

// addHistory adds entries of the last 90 days to the audit log, spread over a fleet: two of five
// are of commands, which are added, too, and the others of status reads.
func (db database) addHistory(ctx context.Context, entries, fleet int) error {
	past := fmt.Sprintf(`
		with numbered as (
			select n, now() - (%[1]d - n) * interval '90 days' / %[1]d as at, 1 + abs(hashint8(n)::bigint) %% %[2]d as vehicle_id
			from generate_series(1::bigint, %[1]d) as n
		), past as (
			select *, n %% 5 < 2 as ordered, ( -- ids of commands begin with their time
				lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3)
				|| '8' || substr(md5(n::text), 4, 15))::uuid as id
			from numbered
		)`, entries, fleet)
	// Foreign keys are not checked: what they name exists.
	return db.exec(ctx, `set session_replication_role = replica`,
		past+`
		insert into commands (id, vehicle_id, agency_id, unit, action, lane, instance, actor_subject, actor_role, request_id,
			state, reported, attempts, requested_at, sent_at, completed_at, deadline)
		select id, vehicle_id, 1, '`+load.SerialPrefix+`' || lpad(vehicle_id::text, 9, '0'), 'lock', 'access', 'past', 'admin', 'admin', id,
			'succeeded', '{"telemetry":{"is_locked":true}}', 1, at, at, at + interval '1 second', at + interval '15 seconds'
		from past where ordered`,
		past+`
		insert into activity (at, actor_subject, actor_role, agency_id, vehicle_id, action, outcome, code,
			command_id, request_id, latency_us, late)
		select at, 'admin', 'admin', 1, vehicle_id, case when ordered then 'command.lock' else 'status.read' end, 'executed', '',
			case when ordered then id end, id, 200000, false
		from past`, `reset session_replication_role`)
}

// walSQL selects how many bytes Postgres has written to its log.
const walSQL = `select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8`

// stored counts the vehicles whose last report, by sequence number, is not stored, and returns when
// the latest was.
func (db database) stored(ctx context.Context, last []int) (stale int, at time.Time, err error) {
	var rows []struct {
		Vehicle int     `db:"vehicle_id"`
		Mileage float64 `db:"mileage"`
		At      time.Time
	}
	if err := db.SelectContext(ctx, &rows, `
		select vehicle_id, (fields #>> '{telemetry.mileage_km,v}')::float8 as mileage, updated_at as at
		from snapshots where fields ? 'telemetry.mileage_km'`); err != nil {
		return 0, at, fmt.Errorf("read the latest reports: %w", err)
	}
	stored := make([]int, len(last))
	for _, row := range rows {
		stored[row.Vehicle-1] = load.SequenceOf(row.Mileage)
		if row.At.After(at) {
			at = row.At
		}
	}
	for v, published := range last {
		if published != 0 && stored[v] != published {
			stale++
		}
	}
	return stale, at, nil
}
