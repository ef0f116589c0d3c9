package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/errgroup"
)

// linesAtOnce are written in one statement.
const linesAtOnce = 100_000

// remember gives the record a past of some months: so many lines of the history, spread over the fleet, and the commands of which
// two of five tell. The rest are reads of a status.
func (w *world) remember(ctx context.Context, lines int) error {
	db, err := sqlx.Open("postgres", w.postgres.URL())
	if err != nil {
		return err
	}
	defer db.Close()
	var written atomic.Int64
	writers, ctx := errgroup.WithContext(ctx)
	writers.SetLimit(runtime.NumCPU())
	for first := 1; first <= lines; first += linesAtOnce {
		last := min(first+linesAtOnce-1, lines)
		writers.Go(func() error {
			if err := w.rememberSome(ctx, db, first, last, lines); err != nil {
				return fmt.Errorf("write a history: %w", err)
			}
			if n := written.Add(int64(last - first + 1)); n%(10*linesAtOnce) == 0 {
				say("%d of %d lines of the history are written", n, lines)
			}
			return nil
		})
	}
	return writers.Wait()
}

// rememberSome writes some of the lines. That the vehicles exist is known, and not checked command by command.
func (w *world) rememberSome(ctx context.Context, db *sqlx.DB, first, last, lines int) (err error) {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	if _, err := tx.ExecContext(ctx, `set local session_replication_role = replica`); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `
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
		from past order by n`, first, last, lines, w.vehicles, serialPrefix); err != nil {
		return err
	}
	return tx.Commit()
}
