package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // what is stored is read without the service
	"golang.org/x/sync/errgroup"

	"motorpool/cmd/bench/load"
)

// database reads what is stored, without the service.
type database struct{ *sqlx.DB }

func openDatabase(url string) (database, error) {
	db, err := sqlx.Open("postgres", url)
	return database{db}, err
}

// exec executes statements, each outside a transaction.
func (db database) exec(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%.40s: %w", statement, err)
		}
	}
	return nil
}

// walSegments is how many segments of its log, of 16 MB, Postgres keeps by default.
const walSegments = 32

// makeUsed brings a new cluster to the state of one that is in use: with segments of the log to
// write over. Otherwise commits wait for tens of milliseconds, again and again, while Postgres
// creates one.
func (db database) makeUsed(ctx context.Context) error {
	for range walSegments {
		// An empty segment is not switched.
		if err := db.exec(ctx, `select pg_logical_emit_message(false, 'bench', ''), pg_switch_wal()`); err != nil {
			return err
		}
	}
	return db.exec(ctx, `checkpoint`)
}

// connectUnits records that all units are connected. Otherwise the first message of each changes
// that, once in its life.
func (db database) connectUnits(ctx context.Context) error {
	return db.exec(ctx, `update units set status = 'online', session = 'bench', said_at = now(), changed_at = now(), last_seen = now(), announced = 'online'`)
}

// durability returns the settings of Postgres for the durability of commits.
func (db database) durability(ctx context.Context) (text string, err error) {
	err = db.GetContext(ctx, &text, `select 'fsync ' || current_setting('fsync') || ', synchronous_commit ' || current_setting('synchronous_commit')`)
	return text, err
}

// lockAction is how the audit log names locking.
const lockAction = "command.lock"

// entriesSince returns a function that counts the entries that are added to the audit log, of one
// action and executed.
func (db database) entriesSince(ctx context.Context, action string) (count func() (int64, error), err error) {
	var last, n int64
	err = db.GetContext(ctx, &last, `select coalesce(max(id), 0) from activity`)
	return func() (int64, error) {
		err := db.GetContext(ctx, &n, `select count(*) from activity where id > $1 and action = $2 and outcome = 'executed'`, last, action)
		return n, err
	}, err
}

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

// entriesPerStatement bounds the statements of addHistory.
const entriesPerStatement = 100_000

// addHistory adds entries of the last 90 days to the audit log, spread over a fleet: two of five
// are of commands, which are added, too, and the others of status reads.
func (db database) addHistory(ctx context.Context, entries, vehicles int) error {
	return db.addRows(ctx, 1, entries, entriesPerStatement, statement{historySQL, []any{entries, vehicles, load.SerialPrefix}})
}

// statement adds the rows from $1 to $2.
type statement struct {
	sql  string
	more []any // from $3 on
}

// addRows adds rows over several connections, those of each step in one transaction.
func (db database) addRows(ctx context.Context, first, last, step int, statements ...statement) error {
	writers, writing := errgroup.WithContext(ctx)
	writers.SetLimit(runtime.NumCPU())
	for from := first; from <= last; from += step {
		writers.Go(func() error {
			tx, err := db.BeginTxx(writing, nil)
			if err != nil {
				return err
			}
			// Foreign keys are not checked row by row: what they name exists.
			_, err = tx.ExecContext(writing, `set local session_replication_role = replica`)
			for _, s := range statements {
				if err == nil {
					_, err = tx.ExecContext(writing, s.sql, append([]any{from, min(from+step-1, last)}, s.more...)...)
				}
			}
			if err != nil {
				return fmt.Errorf("add rows: %w", errors.Join(err, tx.Rollback()))
			}
			return tx.Commit()
		})
	}
	// Otherwise Postgres would do this during the measurement.
	return errors.Join(writers.Wait(), db.exec(ctx, `vacuum (analyze)`, `checkpoint`)) //nolint:misspell // as Postgres spells it
}

const historySQL = `
	with numbered as materialized (
		select n, now() - ($3 - n) * interval '90 days' / $3 as at, 1 + abs(hashint8(n)::bigint) % $4 as vehicle_id,
			'admin-' || n % 200 as subject, n % 5 < 2 as ordered,
			case n % 5 when 0 then 'lock' when 1 then 'unlock' end as action,
			n % 500 = 1 as failed, 200000 + n % 1000 * 1000 as took
		from generate_series($1::bigint, $2::bigint) as n
	), past as materialized (
		-- Ids begin with their time, as those of commands do.
		select *, (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3)
			|| '8' || substr(md5(n::text), 4, 15))::uuid as id
		from numbered
	), made as (
		insert into commands (id, vehicle_id, agency_id, unit, action, lane, instance, actor_subject, actor_role, request_id,
			state, reported, attempts, requested_at, sent_at, completed_at, deadline)
		select id, vehicle_id, 1, $5 || lpad(vehicle_id::text, 9, '0'), action, 'access', 'motorpool-past', subject, 'admin', id,
			case when failed then 'failed' else 'succeeded' end, '{"telemetry":{"is_locked":true}}', 1,
			at, at, at + took * interval '1 microsecond', at + interval '15 seconds'
		from past where ordered order by n
	)
	insert into activity (at, actor_subject, actor_role, agency_id, vehicle_id, action, outcome, code, command_id, request_id, latency_us, late)
	select at, subject, 'admin', 1, vehicle_id, case when ordered then 'command.' || action else 'status.read' end,
		case when failed then 'failed' else 'executed' end, case when failed then 'command_failed' else '' end,
		case when ordered then id end, id, took, false
	from past order by n`
