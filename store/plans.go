package store

import (
	"context"
	"database/sql"
	"sync"

	"github.com/jmoiron/sqlx"
)

// plans runs the statements of commands on connections of their own. Each connection parses and plans such a statement
// once, however often it runs it: these are long statements over few rows, of which planning would take the greater part.
// Statements are constant texts, so they are few. Safe for concurrent use.
//
// A plan that was made for empty tables would still be used when they have grown. So these connections make none
// that reads a whole table, and every statement here must look its rows up by keys, such as "= any ($1)": a join with as few
// rows might be planned to read a whole index.
//
// A context that ends does not end a statement that is under way: to watch for that, the library starts a goroutine for each
// statement. That one statement is bounded all the same, in Postgres and on the connection. Nobody waits for a
// connection, or begins another statement, beyond the end of its context.
type plans struct {
	db       *sqlx.DB
	free     chan struct{} // one for each connection that is taken
	mu       sync.RWMutex
	prepared map[string]*sqlx.Stmt // guarded by mu
}

// byIndex are the settings of such connections.
var byIndex = map[string]string{"enable_seqscan": "off", "jit": "off", "plan_cache_mode": "force_generic_plan"}

func newPlans(db *sqlx.DB, connections int) *plans {
	return &plans{db: db, free: make(chan struct{}, connections), prepared: map[string]*sqlx.Stmt{}}
}

// take waits for a connection, which the caller gives back.
func (p *plans) take(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case p.free <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *plans) give() { <-p.free }

func (p *plans) close() error { return p.db.Close() }

func (p *plans) known(query string) *sqlx.Stmt {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.prepared[query]
}

// statement prepares a statement when it is first run, since a server may be away before.
func (p *plans) statement(ctx context.Context, query string) (*sqlx.Stmt, error) {
	if known := p.known(query); known != nil {
		return known, nil
	}
	fresh, err := p.db.PreparexContext(ctx, query)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.prepared[query]; known != nil { // another caller was faster
		return known, fresh.Close()
	}
	p.prepared[query] = fresh
	return fresh, nil
}

// run gives a statement a connection, for as long as do uses it, with a context that does not end under it.
func (p *plans) run(ctx context.Context, query string, do func(context.Context, *sqlx.Stmt) error) error {
	if err := p.take(ctx); err != nil {
		return err
	}
	defer p.give()
	s, err := p.statement(ctx, query)
	if err != nil {
		return err
	}
	return do(context.WithoutCancel(ctx), s)
}

// selectAll reads all rows into a slice of structs.
func (p *plans) selectAll(ctx context.Context, rows any, query string, args ...any) error {
	return p.run(ctx, query, func(ctx context.Context, s *sqlx.Stmt) error { return s.SelectContext(ctx, rows, args...) })
}

// each calls read at each row.
func (p *plans) each(ctx context.Context, query string, args []any, read func(*sql.Rows) error) error {
	return p.run(ctx, query, func(ctx context.Context, s *sqlx.Stmt) error {
		rows, err := s.QueryContext(ctx, args...)
		return readRows(rows, err, read)
	})
}

func readRows(rows *sql.Rows, err error, read func(*sql.Rows) error) error {
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // what may go wrong is in Err
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// ExecContext is that of sqlx.
func (p *plans) ExecContext(ctx context.Context, query string, args ...any) (done sql.Result, err error) {
	err = p.run(ctx, query, func(ctx context.Context, s *sqlx.Stmt) error {
		done, err = s.ExecContext(ctx, args...)
		return err
	})
	return done, err
}

// within runs statements in one transaction: all of them count, or none.
func (p *plans) within(ctx context.Context, run func(context.Context, *planned) error) error {
	if err := p.take(ctx); err != nil {
		return err
	}
	defer p.give()
	tx, err := p.db.BeginTxx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it has nothing to do
	of := &planned{plans: p, tx: tx}
	if err := run(ctx, of); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	for _, query := range of.unknown {
		_, _ = p.statement(ctx, query) // or the next time
	}
	return nil
}

// planned is a transaction. It takes no second connection to prepare what nobody has run before.
type planned struct {
	plans   *plans
	tx      *sqlx.Tx
	unknown []string
}

// selectAll reads all rows into a slice of structs.
func (t *planned) selectAll(ctx context.Context, rows any, query string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s := t.plans.known(query); s != nil {
		ctx = context.WithoutCancel(ctx)
		return t.tx.StmtxContext(ctx, s).SelectContext(ctx, rows, args...)
	}
	t.unknown = append(t.unknown, query)
	return t.tx.SelectContext(ctx, rows, query, args...)
}

// each calls read at each row.
func (t *planned) each(ctx context.Context, query string, args []any, read func(*sql.Rows) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s := t.plans.known(query); s != nil {
		ctx = context.WithoutCancel(ctx)
		rows, err := t.tx.StmtxContext(ctx, s).QueryContext(ctx, args...)
		return readRows(rows, err, read)
	}
	t.unknown = append(t.unknown, query)
	rows, err := t.tx.QueryContext(ctx, query, args...)
	return readRows(rows, err, read)
}

// ExecContext is that of sqlx.
func (t *planned) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s := t.plans.known(query); s != nil {
		ctx = context.WithoutCancel(ctx)
		return t.tx.StmtxContext(ctx, s).ExecContext(ctx, args...)
	}
	t.unknown = append(t.unknown, query)
	return t.tx.ExecContext(ctx, query, args...)
}

// querier reads all rows of a query into a slice of structs: by plans, in a transaction of theirs, or on any connection.
type querier interface {
	selectAll(ctx context.Context, rows any, query string, args ...any) error
}

// planner is plans, or a transaction of theirs. What is read with each command is read row by row: for a slice of structs sqlx looks up each
// time where their columns are.
type planner interface {
	querier
	each(ctx context.Context, query string, args []any, read func(*sql.Rows) error) error
}

// unplanned queries are planned each time, for what is asked.
type unplanned struct{ *sqlx.DB }

func (u unplanned) selectAll(ctx context.Context, rows any, query string, args ...any) error {
	return u.SelectContext(ctx, rows, query, args...)
}

// execer is whatever runs statements that return nothing.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}
