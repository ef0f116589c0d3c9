package store

import (
	"context"

	"github.com/jmoiron/sqlx"

	"motorpool/telematics"
)

// within runs statements in one transaction: all of them count, or none.
func (p *Postgres) within(ctx context.Context, run func(*sqlx.Tx) error) error {
	tx, err := p.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it has nothing to do
	if err := run(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// addLines adds lines to the history, as a part of a transaction.
func addLines(ctx context.Context, tx *sqlx.Tx, lines ...telematics.Activity) error {
	if len(lines) == 0 {
		return nil
	}
	return insertLines(ctx, tx, lines)
}
