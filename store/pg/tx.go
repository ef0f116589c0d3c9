package pg

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/store/unavailable"
)

// Within runs statements in one transaction, and commits it unless run returns an error. The end of
// the context does not interrupt the commit: an interrupted wait for the synchronous standby would
// leave the commit on the primary alone, and the driver would report success.
func (p *DB) Within(ctx context.Context, run func(*sqlx.Tx) error) error {
	return Within(ctx, p.Pool, run)
}

// WithinLocks is [DB.Within] for a transaction that waits for rows which others may have locked for
// long. Such transactions use at most half of the connections of Pool: one that gets no place
// within the timeout of a statement fails as if the server were unavailable.
func WithinLocks(ctx context.Context, p *DB, run func(*sqlx.Tx) error) error {
	timeout := time.NewTimer(p.config.Timeout)
	defer timeout.Stop()
	select {
	case p.lockers <- struct{}{}:
		defer func() { <-p.lockers }()
		return p.Within(ctx, run)
	case <-timeout.C:
		return unavailable.Mark(errors.New("too many transactions wait for rows that others have locked"))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Constant returns a value that never changes once it is stored. It calls read until that succeeds
// once.
func Constant(p *DB, name string, read func() (string, error)) (string, error) {
	if value, ok := p.constants.Load(name); ok {
		return value.(string), nil
	}
	value, err := read()
	if err == nil {
		p.constants.Store(name, value)
	}
	return value, err
}

// Exec runs a statement in a separate transaction ([DB.Within]), for writes that the caller then
// confirms.
func (p *DB) Exec(ctx context.Context, statement string, args ...any) error {
	return p.Within(ctx, func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, statement, args...)
		return err
	})
}

// Within is [DB.Within] on other connections, such as those of [DB.WithoutTimeouts].
func Within(ctx context.Context, db *sqlx.DB, run func(*sqlx.Tx) error) error {
	conn, err := db.Connx(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // it goes back to the pool
	tx, err := conn.BeginTxx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it has nothing to do
	if err := run(tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return tx.Commit()
}

// Forget runs a statement that removes up to limit rows, its only parameter, and reports whether
// there may be others. By a clock that has leapt it removes none, and returns ErrClockLeapt.
func (p *DB) Forget(ctx context.Context, doing, statement string, limit int) (more bool, err error) {
	if err := p.checkSteady(ctx); err != nil {
		return false, err
	}
	n, err := Affected(p.Pool.ExecContext(ctx, statement, limit))
	return err == nil && n == int64(limit), unavailable.Wrap(doing, err)
}

// Prune repeats a statement that removes up to pruneBatch rows from before a time, its parameters,
// until none is left, and returns their number.
func Prune(ctx context.Context, p *DB, doing, statement string, before time.Time) (removed int64, err error) {
	for {
		n, err := Affected(p.Pool.ExecContext(ctx, statement, before, pruneBatch))
		if removed += n; err != nil || n < pruneBatch {
			return removed, unavailable.Wrap(doing, err)
		}
	}
}

// Affected returns how many rows a statement has changed, by the results of ExecContext.
func Affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Map returns what a function makes of each item; never nil.
func Map[T, U any](items []T, convert func(T) U) []U {
	list := make([]U, len(items))
	for i, item := range items {
		list[i] = convert(item)
	}
	return list
}
