package commands

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

// Numbering is the state of the sequence that numbers commands. A vehicle refuses a command whose
// number is not greater than its last, so the sequence jumps ahead at the first number that is
// drawn after each start or promotion of Postgres: see migration 24.
type Numbering struct {
	Last     int64     // the number drawn last; 0: none yet
	Next     int64     // a number near the one that a jump would lead to now
	Current  bool      // the sequence was raised in this life of the server
	RaisedAt time.Time // zero: never
}

// Numbers is the sequence that numbers commands. It is safe for concurrent use.
type Numbers struct{ DB *pg.DB }

// Read returns the state of the sequence. It draws no number.
func (n Numbers) Read(ctx context.Context) (Numbering, error) {
	var s Numbering
	err := n.DB.Pool.QueryRowContext(ctx, `
		select case when s.is_called then s.last_value else 0 end as last,
			greatest(s.last_value + 10000001, (extract(epoch from clock_timestamp()) * 1000000)::bigint) as next,
			coalesce(n.server_start = pg_postmaster_start_time() and n.sequence = 'commands_seq'::regclass::oid, false) as current,
			n.raised_at
		from commands_seq s left join command_numbering n on true`).Scan(&s.Last, &s.Next, &s.Current, pg.UTC(&s.RaisedAt))
	return s, unavailable.Wrap("read the numbering of commands", err)
}

// Raise raises the sequence that numbers commands, unless that was done since Postgres started or
// was promoted; with always, also then. It returns the numbers of the sequence before and after,
// both zero where it was not raised. It may run while commands are claimed.
func (n Numbers) Raise(ctx context.Context, always bool) (before, after int64, err error) {
	err = n.DB.Health.QueryRowxContext(ctx, `select was, is_now from raise_commands_seq($1)`, always).Scan(&before, &after)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, 0, nil
	}
	return before, after, unavailable.Wrap("raise the numbers of commands", err)
}
