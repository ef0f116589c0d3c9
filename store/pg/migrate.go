package pg

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"motorpool/store/migrations"
	"motorpool/store/unavailable"
)

// How often, and how many times, an instance tries to get the lock of the migrations.
const (
	lockEverySeconds = 1
	lockAttempts     = 300
)

// While a migration waits for the lock of a table, all later transactions on the table wait, too:
// during a backup for hours. So the migration waits for a shorter time than statements of the
// service do, and then lets the others run before it tries again.
const (
	tablePatience = 250 * time.Millisecond
	tableAgain    = time.Second
	tableAttempts = 300
)

// Migrate brings the schema up to date and returns its version. Any number of
// instances may do so concurrently: one migrates under an advisory lock, the others wait
// for it. It tries to lock a table that is in use repeatedly, for some minutes.
func (p *DB) Migrate(ctx context.Context) (version int64, err error) {
	if err := p.Suitable(ctx); err != nil { // with a pooler, another session might hold the lock
		return 0, err
	}
	db, err := p.WithoutTimeouts(ctx, tablePatience)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	provider, err := newProvider(db.DB)
	if err != nil {
		return 0, err
	}
	err = retryLocked(ctx, func() error {
		_, err := provider.Up(ctx)
		return err
	})
	if err == nil {
		err = retryLocked(ctx, func() error { return indexPartitions(ctx, db) })
	}
	if err != nil {
		return 0, unavailable.Wrap("migrate postgres", err)
	}
	version, err = provider.GetDBVersion(ctx)
	return version, unavailable.Wrap("read the version of the schema", err)
}

// Migrating returns an error that names the session for which Migrate would wait, such as one whose
// program was frozen; nil: none is known.
func Migrating(ctx context.Context, p *DB) error {
	found, ok := p.findHolder(ctx, `
		select '' as relation, `+holderColumns+` and l.locktype = 'advisory' and (l.classid, l.objid) = (0, $1)
			and l.database = (select oid from pg_database where datname = current_database())
		limit 1`, lock.DefaultLockID)
	if !ok {
		return nil
	}
	return found.error("the lock of migrations")
}

// MigrateTo brings an empty schema to an earlier version, for tests of migrations.
func (p *DB) MigrateTo(ctx context.Context, version int64) error {
	provider, err := newProvider(p.Pool.DB)
	if err != nil {
		return err
	}
	_, err = provider.UpTo(ctx, version)
	return unavailable.Wrap("migrate postgres", err)
}

// Migrated returns an error if the schema lacks a migration of this program. It may have more.
func (p *DB) Migrated(ctx context.Context) error {
	provider, err := newProvider(p.Health.DB)
	if err != nil {
		return err
	}
	// Without its table, the library would make it, which the service's role may not.
	var has, needs int64
	var versioned, pending bool
	err = p.Health.GetContext(ctx, &versioned, `select to_regclass('goose_db_version') is not null`)
	if err == nil && versioned {
		pending, err = provider.HasPending(ctx)
	}
	switch {
	case err == nil && !versioned:
		sources := provider.ListSources()
		needs = sources[len(sources)-1].Version
	case err == nil && pending:
		has, needs, err = provider.GetVersions(ctx)
	}
	if err != nil || needs == 0 {
		return unavailable.Wrap("read the version of the schema", err)
	}
	return fmt.Errorf("schema has version %d and lacks migrations up to version %d: run motorpool migrate", has, needs)
}

func newProvider(db *sql.DB) (*goose.Provider, error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockEverySeconds, lockAttempts))
	if err != nil {
		return nil, fmt.Errorf("make the lock of the migrations: %w", err)
	}
	// Databases of builds between two releases may lack lower numbers, which were added later.
	provider, err := goose.NewProvider(
		goose.DialectPostgres, db, migrations.Files, goose.WithSessionLocker(locker), goose.WithAllowOutofOrder(true),
	)
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return provider, nil
}
