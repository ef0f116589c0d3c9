package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// How often, and how many times, an instance asks for the lock of the migrations.
const (
	lockEverySeconds = 1
	lockAttempts     = 300
)

// Migrate brings the schema up to date and returns its version. Any number of
// instances may do so at once: one migrates under an advisory lock, the others wait
// for it.
func (p *Postgres) Migrate(ctx context.Context) (version int64, err error) {
	db, err := p.unhurried(ctx)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	provider, err := newProvider(db.DB)
	if err != nil {
		return 0, err
	}
	if _, err := provider.Up(ctx); err != nil {
		return 0, wrap("migrate postgres", err)
	}
	version, err = provider.GetDBVersion(ctx)
	return version, wrap("read the version of the schema", err)
}

// Version returns the version that the schema has, and the one that this program needs.
func (p *Postgres) Version(ctx context.Context) (has, needs int64, err error) {
	provider, err := newProvider(p.db.DB)
	if err != nil {
		return 0, 0, err
	}
	has, needs, err = provider.GetVersions(ctx)
	return has, needs, wrap("read the version of the schema", err)
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockEverySeconds, lockAttempts))
	if err != nil {
		return nil, fmt.Errorf("make the lock of the migrations: %w", err)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, fmt.Errorf("open the migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker))
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return provider, nil
}
