package floor

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/labstack/echo/v4"
	"github.com/lib/pq"
	"github.com/redis/go-redis/v9"

	"motorpool/telematics"
)

// store has the commands of the durable floor; nil: stores nothing.
type store struct {
	redis            *redis.Client
	inserts, updates *writer
}

const schemaSQL = `create table if not exists bench_commands (
	id uuid primary key, vehicle_id bigint not null, unit text not null, action text not null, actor text not null, state text not null,
	requested_at timestamptz not null, deadline timestamptz not null, completed_at timestamptz, reported jsonb)`

const insertSQL = `insert into bench_commands (id, vehicle_id, unit, action, actor, state, requested_at, deadline)
	select id, vehicle_id, unit, action, 'bench', 'sent', requested_at, deadline
	from unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[])
	as r (id, vehicle_id, unit, action, requested_at, deadline)`

const updateSQL = `update bench_commands c set state = r.state, completed_at = r.completed_at, reported = '{"telemetry":{"is_locked":true}}'
	from unnest($1::uuid[], $2::text[], $3::timestamptz[]) as r (id, state, completed_at) where c.id = r.id`

var (
	register = redis.NewScript(`return redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2])`)
	release  = redis.NewScript(`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`)
)

// openStore opens a store, until the end of the process.
func openStore(ctx context.Context, postgresURL, redisURL string) (*store, error) {
	options, err := redis.ParseURL(redisURL)
	if err != nil {
		return nil, err
	}
	db, err := sqlx.ConnectContext(ctx, "postgres", postgresURL)
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, schemaSQL); err != nil {
		return nil, err
	}
	f := &store{redis: redis.NewClient(options)}
	if f.inserts, err = newWriter(ctx, db, insertSQL, func(c telematics.Command, _ telematics.Answer) []any {
		return []any{c.ID.String(), int64(c.Vehicle), string(c.Unit), string(c.Action), c.Requested, c.Deadline}
	}); err != nil {
		return nil, err
	}
	if f.updates, err = newWriter(ctx, db, updateSQL, func(c telematics.Command, a telematics.Answer) []any {
		return []any{c.ID.String(), string(a.State), a.At}
	}); err != nil {
		return nil, err
	}
	return f, nil
}

// begin registers a command, and inserts it.
func (f *store) begin(ctx context.Context, c telematics.Command) error {
	if f == nil {
		return nil
	}
	err := register.Run(ctx, f.redis, []string{"bench:" + string(c.Unit)}, c.ID.String(), time.Until(c.Deadline).Milliseconds()).Err()
	if errors.Is(err, redis.Nil) {
		return echo.NewHTTPError(http.StatusConflict, "the vehicle executes another command")
	}
	if err != nil {
		return err
	}
	return f.inserts.write(ctx, c, telematics.Answer{})
}

// end updates a command, and releases it.
func (f *store) end(ctx context.Context, c telematics.Command, a telematics.Answer) error {
	if f == nil {
		return nil
	}
	if err := f.updates.write(ctx, c, a); err != nil {
		return err
	}
	return release.Run(ctx, f.redis, []string{"bench:" + string(c.Unit)}, c.ID.String()).Err()
}

// writer executes a statement for all rows that have queued meanwhile: one batch is in flight.
type writer struct {
	statement *sqlx.Stmt
	row       func(telematics.Command, telematics.Answer) []any
	queue     chan queued
}

type queued struct {
	row  []any
	done chan error
}

// newWriter returns a writer, which runs until the context ends. Each parameter of the statement is
// an array with a value of each row.
func newWriter(ctx context.Context, db *sqlx.DB, statement string, row func(telematics.Command, telematics.Answer) []any) (*writer, error) {
	prepared, err := db.PreparexContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	w := &writer{prepared, row, make(chan queued, 1000)}
	go w.run(ctx)
	return w, nil
}

// write returns when the row is committed.
func (w *writer) write(ctx context.Context, c telematics.Command, a telematics.Answer) error {
	q := queued{w.row(c, a), make(chan error, 1)}
	w.queue <- q
	select {
	case err := <-q.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *writer) run(ctx context.Context) {
	for {
		var batch []queued
		select {
		case first := <-w.queue:
			batch = append(batch, first)
		case <-ctx.Done():
			return
		}
		for len(w.queue) > 0 {
			batch = append(batch, <-w.queue)
		}
		parameters := make([]any, len(batch[0].row))
		for n := range parameters {
			column := make([]any, len(batch))
			for i, q := range batch {
				column[i] = q.row[n]
			}
			parameters[n] = pq.Array(column)
		}
		_, err := w.statement.ExecContext(ctx, parameters...)
		for _, q := range batch {
			q.done <- err
		}
	}
}
