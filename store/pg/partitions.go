package pg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/guard"
	"motorpool/store/unavailable"
)

// Month is the partition of a month, in UTC. Its name ends with it: settled_commands_2026_11.
type Month struct {
	Name  string `db:"name"`
	Rows  int64  `db:"rows"`  // as Postgres estimates them
	Bytes int64  `db:"bytes"` // with indexes

	until time.Time
}

// Months returns the partitions by month of a table, the oldest first.
func (p *DB) Months(ctx context.Context, table string) ([]Month, error) {
	var months []Month
	err := p.Pool.SelectContext(ctx, &months, `
		select c.relname as name, greatest(c.reltuples, 0)::bigint as rows,
			coalesce(pg_total_relation_size(c.oid), 0) as bytes -- null: dropped meanwhile
		from pg_inherits i join pg_class c on c.oid = i.inhrelid
		where i.inhparent = $1::text::regclass and c.relname ~ '_\d{4}_\d{2}$'
		order by c.relname`, table)
	if err != nil {
		return nil, unavailable.Wrap("read the partitions of "+table, err)
	}
	for i, m := range months {
		first, err := time.Parse("2006_01", m.Name[len(m.Name)-len("2006_01"):])
		if err != nil {
			return nil, fmt.Errorf("read the partitions of %s: %w", table, err)
		}
		months[i].until = first.AddDate(0, 1, 0)
	}
	return months, nil
}

// KeepSince returns the beginning of the first month to keep, in UTC by Postgres's clock: the
// current month and the given number of months before it are kept. By a clock that has leapt it
// returns ErrClockLeapt.
func (p *DB) KeepSince(ctx context.Context, months int) (time.Time, error) {
	if err := p.checkSteady(ctx); err != nil {
		return time.Time{}, err
	}
	now, err := p.Time(ctx)
	now = now.UTC()
	return time.Date(now.Year(), now.Month()-time.Month(months), 1, 0, 0, 0, 0, time.UTC), err
}

// DropMonths drops the partitions of a table that end at or before a time, each with a row in
// history_pruned, and returns them; with dryRun it only returns them. The database's role must own
// the table. Where a partition is being read, it tries again for some minutes, and delays no other
// reader meanwhile.
func (p *DB) DropMonths(ctx context.Context, table, history string, before time.Time, dryRun bool) ([]Month, error) {
	months, err := p.Months(ctx, table)
	if err != nil {
		return nil, err
	}
	outdated := 0
	for outdated < len(months) && !months[outdated].until.After(before) {
		outdated++
	}
	months = months[:outdated]
	if dryRun || outdated == 0 {
		return months, nil
	}
	for i, m := range months {
		err := p.WhenFree(ctx, func(tx *sqlx.Tx) error {
			_, err := tx.ExecContext(ctx, `
				insert into history_pruned as p (history, before) values ($1, $2)
				on conflict (history) do update set before = greatest(p.before, excluded.before)`, history, m.until)
			if err == nil {
				_, err = tx.ExecContext(ctx, `drop table if exists `+pq.QuoteIdentifier(m.Name))
			}
			return err
		})
		if err != nil {
			return months[:i], unavailable.Wrap("drop "+m.Name, err)
		}
	}
	return months, nil
}

// WhenFree runs statements that lock whole tables, in one transaction. Where a table is in use it
// tries again for some minutes, and lets other statements run meanwhile. The statements have no
// timeout but that of the context.
func (p *DB) WhenFree(ctx context.Context, run func(*sqlx.Tx) error) error {
	db, err := p.WithoutTimeouts(ctx, tablePatience)
	if err != nil {
		return err
	}
	defer db.Close()
	return retryLocked(ctx, func() error { return Within(ctx, db, run) })
}

// retryLocked calls do again where it failed because a table is in use, for some minutes.
func retryLocked(ctx context.Context, do func() error) error {
	for attempt := 1; ; attempt++ {
		err := do()
		if refusal := pq.As(err); refusal == nil || refusal.Code != unavailable.LockNotAvailable || attempt == tableAttempts {
			return err
		}
		if !guard.Pause(ctx, tableAgain) {
			return errors.Join(err, ctx.Err())
		}
	}
}
