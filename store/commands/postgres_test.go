package commands

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker/brokertest"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
	"motorpool/store/pg"
	"motorpool/store/redis"
	"motorpool/store/rentals"
	"motorpool/store/storetest"
	"motorpool/store/twins"
	"motorpool/store/unavailable"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// ownServer starts a Postgres server that the test may kill or pause, with one vehicle.
func ownServer(t *testing.T, timeout time.Duration) (*devstack.Postgres, *instance) {
	t.Helper()
	server := storetest.StartPostgres(t, false)
	p := openWith(t, pg.Config{URL: server.Database(storetest.Template), Timeout: timeout})
	storetest.AddVehicle(t, p.DB, 1)
	return server.Postgres, p
}

// calls returns every call that the running service makes.
func calls(p *instance) map[string]func(context.Context) error {
	c := brokertest.NewCommand(1, telematics.Lock)
	return map[string]func(context.Context) error{
		"Ping":            p.Ping,
		"Time":            func(ctx context.Context) error { _, err := p.Time(ctx); return err },
		"Migrated":        p.Migrated,
		"Twin":            func(ctx context.Context) error { _, err := p.Twin(ctx, 1); return err },
		"Twins":           func(ctx context.Context) error { _, err := p.Twins(ctx, telematics.VehicleQuery{}); return err },
		"ListStations":    func(ctx context.Context) error { _, err := p.ListStations(ctx, telematics.AgencyQuery{}); return err },
		"Claim":           func(ctx context.Context) error { _, err := p.Claim(ctx, c); return err },
		"StoreProgress":   func(ctx context.Context) error { return p.StoreProgress(ctx, []delivery.Note{noteOf(c.ID)}) },
		"Updates":         func(ctx context.Context) error { _, err := p.Updates(ctx, []uuid.UUID{c.ID}, nil); return err },
		"Overdue":         func(ctx context.Context) error { _, err := p.Overdue(ctx, morning, 1); return err },
		"VehicleCommands": func(ctx context.Context) error { _, err := p.VehicleCommands(ctx, 1, 0, telematics.Page{}); return err },
		"Activities":      func(ctx context.Context) error { _, err := p.Activities(ctx, telematics.ActivityQuery{}); return err },
		"Client": func(ctx context.Context) error {
			_, err := rentals.Cards{DB: p.DB}.Client(ctx, 1, "client-1")
			return err
		},
		"Methods": func(ctx context.Context) error { _, err := rentals.Cards{DB: p.DB}.Methods(ctx, 1); return err },
		"DropCard": func(ctx context.Context) error {
			return rentals.Cards{DB: p.DB}.DropCard(ctx, "pm_1", telematics.Activity{})
		},
		"Settle": func(ctx context.Context) error {
			_, _, err := p.Settle(ctx, delivery.Settlement{Command: c.ID, State: telematics.Received, At: morning})
			return err
		},
		"Add": func(ctx context.Context) error {
			return p.Add(ctx, telematics.Activity{At: morning, Actor: c.Actor, Action: telematics.StatusRead})
		},
		"Observe": func(ctx context.Context) error {
			_, err := twins.Store(ctx, p.DB, []delivery.Observation{{Unit: "unit-1", At: morning}})
			return err
		},
	}
}

// noteOf is the progress of a command that was published once.
func noteOf(id telematics.CommandID) delivery.Note {
	return delivery.Note{Command: id, Progress: delivery.Progress{SentAt: morning, Attempts: 1}}
}

func wantUnavailable(t *testing.T, p *instance, within time.Duration) {
	t.Helper()
	var wg sync.WaitGroup
	for name, do := range calls(p) {
		wg.Go(func() {
			start := time.Now()
			if err := do(context.Background()); !unavailable.Is(err) {
				t.Errorf("%s = %v, want the error of a server that is unavailable", name, err)
			}
			if took := time.Since(start); took > within {
				t.Errorf("%s failed after %v, want within %v", name, took, within)
			}
		})
	}
	wg.Wait()
}

func wantServing(t *testing.T, p *instance) {
	t.Helper()
	for name, do := range calls(p) {
		storetest.Eventually(t, name+" works", func() bool { return do(context.Background()) == nil })
	}
}

func TestCalls_FailWhilePostgresIsDownOrFrozenAndWorkAfterwards(t *testing.T) {
	t.Parallel()
	server, p := ownServer(t, 2*time.Second)
	wantServing(t, p)
	require.NoError(t, server.Kill())
	wantUnavailable(t, p, 10*time.Second)
	require.NoError(t, server.Restart())
	wantServing(t, p)
	// The row that Claim confirmed is still there, and its lane is taken.
	claim, err := p.Claim(t.Context(), brokertest.NewCommand(1, telematics.Unlock))
	if err != nil || claim.Occupant == nil {
		t.Errorf("Claim = %+v, %v; want the command from before", claim, err)
	}
	require.NoError(t, server.Pause())
	wantUnavailable(t, p, 20*time.Second)
	require.NoError(t, server.Resume())
	wantServing(t, p)
}

func TestMigrate_EndsWithItsContextWhilePostgresIsFrozen(t *testing.T) {
	t.Parallel()
	server, p := ownServer(t, storetest.Patience)
	file := vehicles.FleetFile{Agencies: []telematics.Agency{{ID: 1, Code: "one", Name: "One"}}}
	for name, do := range map[string]func(context.Context) error{
		"Migrate": func(ctx context.Context) error { _, err := p.owner().Migrate(ctx); return err },
		"Import":  func(ctx context.Context) error { _, err := p.Import(ctx, file); return err },
	} {
		held, err := p.Pool.BeginTxx(t.Context(), nil)
		require.NoError(t, err)
		storetest.Exec(t, held, `lock table goose_db_version, agencies in access exclusive mode`)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- do(ctx) }()
		storetest.WaitForLock(t, p.DB)
		require.NoError(t, server.Pause())
		cancel()
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("%s succeeded while Postgres was paused", name)
			}
		case <-time.After(storetest.Patience):
			t.Errorf("%s did not end with its context", name)
		}
		require.NoError(t, server.Resume())
		_ = held.Rollback()
	}
}

func TestTime_IsThatOfPostgres(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	before := time.Now()
	theirs, err := p.Time(t.Context())
	require.NoError(t, err)
	// Two readings of one clock may differ by this much.
	const reading = 10 * time.Millisecond
	if after := time.Now(); theirs.Before(before.Add(-reading)) || theirs.After(after.Add(reading)) {
		t.Errorf("Time = %s, queried from %s to %s on the same machine", theirs, before, after)
	}
}

func TestAddresses_DoNotLogTheirPasswords(t *testing.T) {
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("open",
		"postgres", pg.Config{URL: "postgres://motorpool:hunter2@db/motorpool"},
		"redis", redis.Config{URL: "redis://:hunter2@cache:6379"},
		"broken", redis.Config{URL: "redis://:hunter2@cache:port"})
	if strings.Contains(log.String(), "hunter2") || !strings.Contains(log.String(), "db/motorpool") {
		t.Errorf("the log has %s, want the address without its password", log.String())
	}
	_, err := pg.New(pg.Config{URL: "postgres://motorpool:hunter2@db:port/motorpool"})
	if err == nil || strings.Contains(err.Error(), "hunter2") || unavailable.Is(err) {
		t.Errorf("New = %v, want an error without the password", err)
	}
	_, err = redis.New(redis.Config{URL: "redis://:hunter2@cache:port"})
	if err == nil || strings.Contains(err.Error(), "hunter2") || unavailable.Is(err) {
		t.Errorf("redis.New = %v, want an error without the password", err)
	}
}

// All callers may read lists as often as their limit allows. A halt must still be read within its 3
// s.
func TestLists_DelayNeitherHaltsNorCommands(t *testing.T) {
	address := storetest.NewDatabase(t)
	p := open(t, address)
	vehicle, _ := storetest.Vehicles(t, p.DB)()
	locking := storetest.Begin(t, open(t, address).Pool)
	// Lists take long.
	storetest.Exec(t, locking, `lock table activity in access exclusive mode`)
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop()
	for range 40 {
		readers.Go(func() {
			for ctx.Err() == nil {
				_, _ = p.Activities(ctx, telematics.ActivityQuery{}) // ends at its time limit
			}
		})
	}
	storetest.Eventually(t, "the lists use all of their connections", func() bool { return p.Lists.Stats().WaitCount > 0 })
	if _, err := p.Halts(t.Context()); err != nil {
		t.Error(err)
	}
	if claim, err := p.Claim(t.Context(), brokertest.NewCommand(vehicle, telematics.Lock)); err != nil || !claim.Taken() {
		t.Errorf("Claim = %+v, %v", claim, err)
	}
	if waited := p.Pool.Stats().WaitDuration; waited > 0 {
		t.Errorf("calls waited %v for a connection, want 0", waited)
	}
}
