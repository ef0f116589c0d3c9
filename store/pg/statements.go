package pg

import (
	"context"
	"database/sql"
	"sync"

	"github.com/jmoiron/sqlx"
)

// Statements runs the statements of commands and reports on separate connections. Each connection
// parses and plans a statement once, however often it runs it: these are long statements over few
// rows, for which planning would take most of the time. Statements are constant texts, so they are
// few. It is safe for concurrent use.
//
// A plan that was made for empty tables would still be used when they have grown. So these
// connections make no plan that reads a whole table, and every statement must find its rows by
// keys, such as "= any ($1)": a join with as few rows might be planned to read a whole index.
//
// A context that ends does not end a running statement: to watch for that, the library starts a
// goroutine for each statement. That one statement is bounded by the timeouts of Postgres and of
// the connection. Waiting for a connection, and beginning another statement, end with the context.
type Statements struct {
	Pool     *sqlx.DB      // for tests and Connects
	slots    chan struct{} // one for each connection in use
	mu       sync.RWMutex
	prepared map[string]*sqlx.Stmt // guarded by mu
}

// byIndex are the settings of the connections of Statements.
var byIndex = map[string]string{"enable_seqscan": "off", "jit": "off", "plan_cache_mode": "force_generic_plan"}

// NewStatements returns statements for a pool with that number of connections.
func NewStatements(db *sqlx.DB, connections int) *Statements {
	return &Statements{Pool: db, slots: make(chan struct{}, connections), prepared: map[string]*sqlx.Stmt{}}
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

func (p *Statements) close() error { return p.Pool.Close() }

func (p *Statements) find(query string) *sqlx.Stmt {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.prepared[query]
}

// statement prepares a statement when it is first run, since the server may be unavailable before.
func (p *Statements) statement(ctx context.Context, query string) (*sqlx.Stmt, error) {
	if known := p.find(query); known != nil {
		return known, nil
	}
	fresh, err := p.Pool.PreparexContext(ctx, query)
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

// run acquires a connection, and calls do with the prepared statement and a context that does not
// end.
func (p *Statements) run(ctx context.Context, query string, do func(context.Context, *sqlx.Stmt) error) error {
	if err := p.Acquire(ctx); err != nil {
		return err
	}
	defer p.Release()
	s, err := p.statement(ctx, query)
	if err != nil {
		return err
	}
	return do(context.WithoutCancel(ctx), s)
}

// Select reads all rows into a slice of structs.
func (p *Statements) Select(ctx context.Context, rows any, query string, args ...any) error {
	return p.run(ctx, query, func(ctx context.Context, s *sqlx.Stmt) error { return s.SelectContext(ctx, rows, args...) })
}

// Each calls read at each row.
func (p *Statements) Each(ctx context.Context, query string, args []any, read func(*sql.Rows) error) error {
	return p.run(ctx, query, func(ctx context.Context, s *sqlx.Stmt) error {
		rows, err := s.QueryContext(ctx, args...)
		return eachRow(rows, err, read)
	})
}

func eachRow(rows *sql.Rows, err error, read func(*sql.Rows) error) error {
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
func (p *Statements) ExecContext(ctx context.Context, query string, args ...any) (done sql.Result, err error) {
	err = p.run(ctx, query, func(ctx context.Context, s *sqlx.Stmt) error {
		done, err = s.ExecContext(ctx, args...)
		return err
	})
	return done, err
}

// Within runs statements in one transaction, and commits it unless run returns an error.
func (p *Statements) Within(ctx context.Context, run func(context.Context, *Tx) error) error {
	if err := p.Acquire(ctx); err != nil {
		return err
	}
	defer p.Release()
	tx, err := p.Pool.BeginTxx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it has nothing to do
	of := &Tx{statements: p, tx: tx}
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

// Tx is a transaction. It runs a statement that is not prepared yet unprepared, since preparing it
// would take a second connection.
type Tx struct {
	statements *Statements
	tx         *sqlx.Tx
	unknown    []string
}

// Select reads all rows into a slice of structs.
func (t *Tx) Select(ctx context.Context, rows any, query string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s := t.statements.find(query); s != nil {
		ctx = context.WithoutCancel(ctx)
		return t.tx.StmtxContext(ctx, s).SelectContext(ctx, rows, args...)
	}
	t.unknown = append(t.unknown, query)
	return t.tx.SelectContext(ctx, rows, query, args...)
}

// Each calls read at each row.
func (t *Tx) Each(ctx context.Context, query string, args []any, read func(*sql.Rows) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s := t.statements.find(query); s != nil {
		ctx = context.WithoutCancel(ctx)
		rows, err := t.tx.StmtxContext(ctx, s).QueryContext(ctx, args...)
		return eachRow(rows, err, read)
	}
	t.unknown = append(t.unknown, query)
	rows, err := t.tx.QueryContext(ctx, query, args...)
	return eachRow(rows, err, read)
}

// ExecContext is that of sqlx.
func (t *Tx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s := t.statements.find(query); s != nil {
		ctx = context.WithoutCancel(ctx)
		return t.tx.StmtxContext(ctx, s).ExecContext(ctx, args...)
	}
	t.unknown = append(t.unknown, query)
	return t.tx.ExecContext(ctx, query, args...)
}

// Querier reads all rows of a query into a slice of structs: [Statements], a transaction on them,
// or any connection.
type Querier interface {
	Select(ctx context.Context, rows any, query string, args ...any) error
}

// RowQuerier is [Statements], or a transaction on them. Queries that run for each command read row
// by row: for a slice of structs, sqlx resolves the columns each time.
type RowQuerier interface {
	Querier
	Each(ctx context.Context, query string, args []any, read func(*sql.Rows) error) error
}

// Unprepared plans each query anew, for its parameters.
type Unprepared struct{ *sqlx.DB }

func (u Unprepared) Select(ctx context.Context, rows any, query string, args ...any) error {
	return u.SelectContext(ctx, rows, query, args...)
}

// Execer runs statements that return no rows.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}
