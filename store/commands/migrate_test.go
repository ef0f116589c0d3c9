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

	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/migrations"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestMigrate_ManyInstancesConcurrently(t *testing.T) {
	address := storetest.NewEmptyDatabase(t)
	var wg sync.WaitGroup
	for range 2 {
		p := open(t, address)
		wg.Go(func() {
			version, err := p.Migrate(context.Background())
			if migrated := p.Migrated(context.Background()); err != nil || migrated != nil || version == 0 {
				t.Errorf("Migrate = %d, %v; Migrated = %v; want the newest version", version, err, migrated)
			}
		})
	}
	wg.Wait()
	p := open(t, address)
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
	for _, p := range []*instance{asRole(t, address, "app_without_schema"), open(t, address)} {
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

// The index is built for existing commands while commands are written, and also where an
// interrupted attempt has left an invalid one.
func TestMigrate_BuildsTheIndexOfNumbersConcurrentlyWithWrites(t *testing.T) {
	p := open(t, storetest.NewEmptyDatabase(t))
	const before = 17
	require.NoError(t, p.MigrateTo(t.Context(), before))
	for _, statement := range []string{
		`insert into agencies (id, code, name) values (1, 'MUC', 'Isar Mobility')`,
		`insert into vehicles (
				id, agency_id, status, powertrain, plate_number, brand, model, year, color, category, image, features, capabilities)
			values (1, 1, 'available', 'electric', 'M-IM 1', '', '', 2026, '', '', '', '{}', '{}')`,
		`insert into commands (id, vehicle_id, agency_id, unit, action, lane, instance, actor_subject, actor_role, requested_at,
			deadline, completed_at, state)
			select gen_random_uuid(), 1, 1, 'u', 'lock', 'access', 'i', 's', 'admin', now(), now(), now(), 'expired'
				from generate_series(1, 100)`,
		// Left by an interrupted attempt.
		`create index commands_vehicle_seq on commands (vehicle_id)`,
	} {
		storetest.Exec(t, p.Pool, statement)
	}
	reading := storetest.Begin(t, p.Pool)
	storetest.Exec(t, reading, `set transaction isolation level repeatable read`)
	storetest.Exec(t, reading, `select count(*) from agencies`)
	migrated := make(chan error, 1)
	go func() {
		_, err := p.Migrate(context.Background())
		migrated <- err
	}()
	storetest.WaitForLock(t, p.DB) // the migration waits for the reader
	if _, err := p.Pool.Exec(`update commands set attempts = attempts + 1`); err != nil {
		t.Errorf("a write while the index is built: %v", err)
	}
	require.NoError(t, reading.Commit())
	require.NoError(t, <-migrated)
	var valid bool
	if err := p.Pool.Get(&valid, `select indisvalid and indisunique from pg_index
		where indexrelid = 'commands_vehicle_seq'::regclass`); err != nil || !valid {
		t.Errorf("the index is valid and unique: %t, %v; want true", valid, err)
	}
}

// A backup reads every table for hours. A migration that waited for it in the queue of an exclusive
// lock would delay all later statements.
func TestMigrate_WaitingForABackupDelaysNoOtherStatement(t *testing.T) {
	p := open(t, storetest.NewEmptyDatabase(t))
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

// atVersion returns a database with the schema of an earlier version.
func atVersion(t *testing.T, version int64) *instance {
	t.Helper()
	p := open(t, storetest.NewEmptyDatabase(t))
	require.NoError(t, p.MigrateTo(t.Context(), version))
	return p
}

// beforeInvariants is the last version without the constraints on commands and activity.
const beforeInvariants = 29

func TestMigrate_ValidatesRowsOfThePreviousVersion(t *testing.T) {
	p := atVersion(t, beforeInvariants)
	id, unit := storetest.AddVehicle(t, p.DB, 1, telematics.Lock, telematics.Unlock)
	open := brokertest.NewCommand(id, telematics.Unlock)
	open.Unit = unit
	require.NoError(t, writeSettled(t, p, brokertest.NewCommand(id, telematics.Lock)))
	require.NoError(t, writeOpen(t, p, open))
	_, err := p.Migrate(t.Context())
	require.NoError(t, err)
	var unchecked []string
	if err := p.Pool.Select(&unchecked, `select conname from pg_constraint where not convalidated`); err != nil || len(unchecked) > 0 {
		t.Errorf("constraints not validated: %v, %v", unchecked, err)
	}
	// This version settles a command that the previous one claimed.
	c, ok, err := p.Settle(t.Context(), delivery.Settlement{Command: open.ID, Unit: unit, State: telematics.Succeeded, At: time.Now()})
	if want := brokertest.NewCommand(id, telematics.Lock).Assurance; err != nil || !ok || c.Assurance != want {
		t.Errorf("Settle = %+v, %t, %v; want the assurance of this version", c, ok, err)
	}
	if claim, err := p.Claim(t.Context(), brokertest.NewCommand(id, telematics.Lock)); err != nil || !claim.Taken() {
		t.Errorf("Claim = %+v, %v", claim, err)
	}
}

// A row that no version writes, but an operator may have written by hand, stops the migration and
// nothing else.
func TestMigrate_InvalidRowIsNamedAndCommandsStillWork(t *testing.T) {
	p := atVersion(t, beforeInvariants)
	id, _ := storetest.AddVehicle(t, p.DB, 1, telematics.Lock, telematics.Unlock)
	spoiled := brokertest.NewCommand(id, telematics.Lock)
	require.NoError(t, writeSettled(t, p, spoiled))
	storetest.Exec(t, p.Pool, `update commands set actor_role = 'king' where id = $1`, spoiled.ID)
	_, err := p.Migrate(t.Context())
	if refusal := pq.As(err); refusal == nil || refusal.Constraint != "commands_actor_role_known" {
		t.Fatalf("Migrate: %v, want a violation of commands_actor_role_known", err)
	}
	assert.NoError(t, writeSettled(t, p, brokertest.NewCommand(id, telematics.Lock)), "a command after the failed migration")
	storetest.Exec(t, p.Pool, `update commands set actor_role = 'admin' where id = $1`, spoiled.ID)
	if _, err := p.Migrate(t.Context()); err != nil {
		t.Errorf("Migrate after the repair: %v", err)
	}
}

// writeSettled writes a settled command and its audit log entry as an earlier version did.
func writeSettled(t *testing.T, p *instance, c telematics.Command) error {
	t.Helper()
	if err := writeOpen(t, p, c); err != nil {
		return err
	}
	_, err := p.Pool.Exec(`
		with settled as (
			update commands set state = 'succeeded', completed_at = requested_at + interval '1 second' where id = $1 returning *
		)
		insert into activity (at, actor_subject, actor_role, actor_agency_id, agency_id, vehicle_id, action, outcome, code,
			command_id, request_id, latency_us, late)
		select completed_at, actor_subject, actor_role, actor_agency_id, agency_id, vehicle_id, 'command.' || action, 'executed', '',
			id, request_id, 1000000, late
		from settled`, c.ID)
	return err
}

func writeOpen(t *testing.T, p *instance, c telematics.Command) error {
	t.Helper()
	_, err := p.Pool.Exec(`
		insert into commands (id, vehicle_id, agency_id, unit, action, lane, instance, actor_subject, actor_role, actor_agency_id,
			request_id, requested_at, deadline)
		values ($1, $2, $3, $4, $5, $6, 'a', $7, $8, $9, $10, $11, $12)`,
		c.ID, int64(c.Vehicle), int64(c.Agency), string(c.Unit), string(c.Action), string(c.Lane),
		c.Actor.Subject, string(c.Actor.Role), int64(c.Actor.Agency), c.RequestID, c.Requested, c.Deadline)
	return err
}
