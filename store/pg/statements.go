package pg

import (
	"context"
	"database/sql"

	"github.com/jmoiron/sqlx"
)

// Statements runs the statements of commands and reports on separate connections. Each connection
// parses and plans a statement once, however often it runs it (session.planned): these are long
// statements over few rows, for which planning would take most of the time. It is safe for
// concurrent use.
//
// A plan that was made for empty tables would still be used when they have grown. So these
// connections make no plan that reads a whole table, and every statement must find its rows by
// keys, such as "= any ($1)": a join with as few rows might be planned to read a whole index.
//
// A context that ends does not end a running statement: to watch for that, the library starts a
// goroutine for each statement. That one statement is bounded by the timeouts of Postgres and of
// the connection. Waiting for a connection, and beginning another statement, end with the context.
type Statements struct {
	Pool  *sqlx.DB      // for tests and Connects
	slots chan struct{} // one for each connection in use
}

// byIndex are the settings of the connections of Statements.
var byIndex = map[string]string{"enable_seqscan": "off", "jit": "off", "plan_cache_mode": "force_generic_plan"}

// NewStatements returns statements for a pool, of which they use that number of connections.
func NewStatements(db *sqlx.DB, connections int) *Statements {
	return &Statements{Pool: db, slots: make(chan struct{}, connections)}
}

// Acquire waits for a connection, until the context ends. The caller releases it.
func (p *Statements) Acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Release gives a connection back.
func (p *Statements) Release() { <-p.slots }

// run acquires a connection, and calls do with a context that does not end.
func (p *Statements) run(ctx context.Context, do func(context.Context) error) error {
	if err := p.Acquire(ctx); err != nil {
		return err
	}
	defer p.Release()
	return do(context.WithoutCancel(ctx))
}

// SelectContext reads all rows into a slice of structs.
func (p *Statements) SelectContext(ctx context.Context, rows any, query string, args ...any) error {
	return p.run(ctx, func(ctx context.Context) error { return p.Pool.SelectContext(ctx, rows, query, args...) })
}

// QueryContext is that of sqlx, on a connection that the caller has acquired.
func (p *Statements) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return p.Pool.QueryContext(ctx, query, args...)
}

// ExecContext is that of sqlx.
func (p *Statements) ExecContext(ctx context.Context, query string, args ...any) (done sql.Result, err error) {
	err = p.run(ctx, func(ctx context.Context) error {
		done, err = p.Pool.ExecContext(ctx, query, args...)
		return err
	})
	return done, err
}

// Within runs statements in one transaction, and commits it unless run returns an error.
func (p *Statements) Within(ctx context.Context, run func(context.Context, *sqlx.Tx) error) error {
	return p.run(ctx, func(endless context.Context) error {
		tx, err := p.Pool.BeginTxx(endless, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // after a commit it has nothing to do
		if err := run(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// Querier reads the rows of a query: [Statements], any other connection, or a transaction.
type Querier interface {
	// SelectContext reads all of them into a slice of structs. Queries that run for each command
	// use [Read] or [Each]: for a slice of structs, sqlx resolves the columns each time.
	SelectContext(ctx context.Context, rows any, query string, args ...any) error
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Execer runs statements that return no rows.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}
