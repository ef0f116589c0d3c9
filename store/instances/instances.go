// Package instances records in Postgres which instances of an installation run. Each writes a beat
// each second: a proof that the database takes writes, and that the instance belongs to it, which
// no copy of the database has.
//
// Where a comment names no error, the error is the database's; unavailable.Is reports whether
// Postgres could not be used.
package instances

import (
	"context"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

// Instance is what an instance wrote last.
type Instance struct {
	ID         string `db:"id"`
	Beats      int64  `db:"beats"` // the number of its writes, which only grows
	SigningKey string `db:"signing_key"`
	Running    bool   `db:"running"` // it wrote a moment ago
}

// Beat writes a beat of an instance, and returns all instances as they were
// immediately before, its own with the new number. The number is above least: a database that was
// restored, or a standby that lacked commits, may have an older one.
//
// As commands are, it is written by a statement alone: the driver would
// begin one that writes even where transactions are read-only by default. It waits for the
// synchronous standby, beyond the end of the context.
func Beat(ctx context.Context, db *pg.DB, id, signingKey string, least int64) (all []Instance, err error) {
	ctx, cancel := context.WithTimeout(ctx, db.Timeout())
	defer cancel()
	conn, err := db.Health.Connx(ctx)
	if err != nil {
		return nil, unavailable.Wrap("write to postgres", err)
	}
	defer conn.Close() //nolint:errcheck // it goes back to the pool
	err = conn.SelectContext(context.WithoutCancel(ctx), &all, `
		with mine as (
			insert into instances as i (id, beats, signing_key, seen_at) values ($1, $3::bigint + 1, $2, now())
			on conflict (id) do update
			set beats = greatest(i.beats, $3::bigint) + 1, signing_key = excluded.signing_key, seen_at = excluded.seen_at
			returning id, beats, signing_key
		)
		select id, beats, signing_key, true as running from mine
		union all
		select id, beats, signing_key, abs(extract(epoch from now() - seen_at)) < 15 as running
		from instances where id <> $1`, id, signingKey, least)
	return all, unavailable.Wrap("write to postgres", err)
}

// Forget removes instances that have not run for a day.
func Forget(ctx context.Context, db *pg.DB, limit int) (more bool, err error) {
	return db.Forget(ctx, "forget instances", `
		delete from instances where id in (select id from instances where seen_at < now() - interval '1 day' limit $1)`, limit)
}
