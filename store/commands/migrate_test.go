package commands

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lib/pq"
	"github.com/pressly/goose/v3/lock"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/migrations"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

func TestMigrate_ManyInstancesConcurrently(t *testing.T) {
	address := storetest.NewEmptyDatabase(t)
	var wg sync.WaitGroup
	for range 2 {
		p := openAsOwner(t, address)
		wg.Go(func() {
			version, err := p.Migrate(context.Background())
			if migrated := p.Migrated(context.Background()); err != nil || migrated != nil || version == 0 {
				t.Errorf("Migrate = %d, %v; Migrated = %v; want the newest version", version, err, migrated)
			}
		})
	}
	wg.Wait()
	p := openAsOwner(t, address)
	storetest.AddVehicle(t, p.DB, 1)
	if _, err := p.Migrate(t.Context()); err != nil {
		t.Errorf("Migrate again: %v", err)
	}
	if _, err := p.Twin(t.Context(), 1); err != nil {
		t.Errorf("after migrating again: %v", err)
	}
}

func TestMigrated_RefusesAnEmptyDatabase(t *testing.T) {
	address := storetest.NewEmptyDatabase(t)
	ctx, cancel := context.WithTimeout(t.Context(), storetest.Patience)
	defer cancel()
	for _, p := range []*instance{asRole(t, address, "app_without_schema"), openAsOwner(t, address)} {
		if err := p.Migrated(ctx); err == nil || !strings.Contains(err.Error(), "version 0 and lacks migrations") {
			t.Errorf("Migrated = %v, want version 0", err)
		}
	}
}

func TestMigrating_NamesTheSessionWithTheLock(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	require.NoError(t, pg.Migrating(t.Context(), p.DB))
	other, err := p.Lists.Connx(t.Context())
	require.NoError(t, err)
	defer other.Close()
	_, err = other.ExecContext(t.Context(), `select pg_advisory_lock($1)`, lock.DefaultLockID)
	require.NoError(t, err)
	if err := pg.Migrating(t.Context(), p.DB); err == nil || !strings.Contains(err.Error(), "holds the lock of migrations: backend ") {
		t.Errorf("Migrating = %v, want the session", err)
	}
}

func TestMigrated_NamesTheRightToReadTheVersion(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), storetest.Patience)
	defer cancel()
	err := asRole(t, storetest.NewDatabase(t), "app_without_rights").Migrated(ctx)
	if err == nil || !strings.Contains(err.Error(), "permission denied for table goose_db_version") {
		t.Errorf("Migrated = %v, want the missing right", err)
	}
}

func TestMigrations_HaveNoDownSection(t *testing.T) {
	files, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("migrations %v, %v", files, err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(migrations.Files, file)
		require.NoError(t, err)
		if !strings.HasPrefix(string(text), "-- +goose Up\n") || strings.Contains(string(text), "+goose Down") {
			t.Errorf("%s: want one section, Up", file)
		}
	}
}

// A backup reads every table for hours. A migration that waited for it in the queue of an exclusive
// lock would delay all later statements.
func TestMigrate_WaitingForABackupDelaysNoOtherStatement(t *testing.T) {
	p := openAsOwner(t, storetest.NewEmptyDatabase(t))
	const before = 5 // the next migration alters a table that is in use
	require.NoError(t, p.MigrateTo(t.Context(), before))
	backup := storetest.Begin(t, p.Pool)
	storetest.Exec(t, backup, `lock table commands in access share mode`)
	migrated := make(chan error, 1)
	go func() {
		_, err := p.Migrate(context.Background())
		migrated <- err
	}()
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := p.Pool.Exec(`update commands set attempts = attempts`); err != nil {
			t.Fatalf("a write while a migration waits: %v", err)
		}
		// Keeps the transaction from its idle timeout.
		storetest.Exec(t, backup, `select 1`)
	}
	want := fmt.Sprintf("schema has version %d ", before)
	if err := p.Migrated(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("during the backup Migrated = %v, want %s", err, want)
	}
	require.NoError(t, backup.Commit())
	select {
	case err := <-migrated:
		assert.NoError(t, err)
	case <-time.After(storetest.Patience):
		t.Error("the migration did not end after the backup")
	}
}

// A row that no version writes, but an operator may have written by hand, stops the migration and
// nothing else.
func TestMigrate_InvalidRowIsNamedAndCommandsStillWork(t *testing.T) {
	p := openAsOwner(t, storetest.NewEmptyDatabase(t))
	const before = 29 // the next migration adds constraints on commands
	require.NoError(t, p.MigrateTo(t.Context(), before))
	storetest.AddVehicle(t, p.DB, 1, telematics.Lock)
	write := func(role telematics.Role) error {
		_, err := p.Pool.Exec(`
			insert into commands (id, vehicle_id, agency_id, unit, action, lane, instance, actor_subject, actor_role, requested_at,
				deadline, completed_at, state)
			values (gen_random_uuid(), 1, 1, 'u', 'lock', 'access', 'i', 's', $1, now(), now(), now(), 'expired')`, string(role))
		return err
	}
	require.NoError(t, write("king"))
	_, err := p.Migrate(t.Context())
	if refusal := pq.As(err); refusal == nil || refusal.Constraint != "commands_actor_role_known" {
		t.Fatalf("Migrate: %v, want a violation of commands_actor_role_known", err)
	}
	assert.NoError(t, write(telematics.Admin), "a command after the failed migration")
	storetest.Exec(t, p.Pool, `update commands set actor_role = 'admin'`)
	if _, err := p.Migrate(t.Context()); err != nil {
		t.Errorf("Migrate after the repair: %v", err)
	}
}
