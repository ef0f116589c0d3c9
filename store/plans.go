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
// that reads a whole table, and every statement here names its rows by a list of keys: "= any ($1)" can only be
// looked up in an index, where a join with as few rows might be planned to read the whole index.
// A context that ends does not end a statement that is under way: to watch for that, the library starts a goroutine for each
// statement. Its time is bounded all the same, in Postgres and on the connection.
type plans struct {
	db       *sqlx.DB
	mu       sync.RWMutex
	prepared map[string]*sqlx.Stmt // guarded by mu
}

// byIndex are the settings of such connections.
var byIndex = map[string]string{"enable_seqscan": "off", "jit": "off", "plan_cache_mode": "force_generic_plan"}

func newPlans(db *sqlx.DB) *plans { return &plans{db: db, prepared: map[string]*sqlx.Stmt{}} }

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

// QueryxContext is that of sqlx.
func (p *plans) QueryxContext(ctx context.Context, query string, args ...any) (*sqlx.Rows, error) {
	s, err := p.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryxContext(context.WithoutCancel(ctx), args...)
}

// ExecContext is that of sqlx.
func (p *plans) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := p.statement(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.ExecContext(context.WithoutCancel(ctx), args...)
}

// within runs statements in one transaction: all of them count, or none.
func (p *plans) within(ctx context.Context, run func(context.Context, *planned) error) error {
	ctx = context.WithoutCancel(ctx)
	tx, err := p.db.BeginTxx(ctx, nil)
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

// QueryxContext is that of sqlx.
func (t *planned) QueryxContext(ctx context.Context, query string, args ...any) (*sqlx.Rows, error) {
	if s := t.plans.known(query); s != nil {
		return t.tx.StmtxContext(ctx, s).QueryxContext(ctx, args...)
	}
	t.unknown = append(t.unknown, query)
	return t.tx.QueryxContext(ctx, query, args...)
}

// ExecContext is that of sqlx.
func (t *planned) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if s := t.plans.known(query); s != nil {
		return t.tx.StmtxContext(ctx, s).ExecContext(ctx, args...)
	}
	t.unknown = append(t.unknown, query)
	return t.tx.ExecContext(ctx, query, args...)
}

// querier is whatever runs queries: a pool, a transaction, or plans.
type querier interface {
	QueryxContext(ctx context.Context, query string, args ...any) (*sqlx.Rows, error)
}

// execer is whatever runs statements that return nothing.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// selectAll reads all rows into a slice of structs.
func selectAll(ctx context.Context, db querier, rows any, query string, args ...any) error {
	found, err := db.QueryxContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer found.Close()
	return sqlx.StructScan(found, rows)
}
