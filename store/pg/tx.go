package pg

import (
	"context"

	"github.com/jmoiron/sqlx"
)

// Within runs statements in one transaction: all of them count, or none.
func (p *DB) Within(ctx context.Context, run func(*sqlx.Tx) error) error {
	tx, err := p.Pool.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it has nothing to do
	if err := run(tx); err != nil {
		return err
	}
	return tx.Commit()
}
