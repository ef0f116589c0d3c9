package store

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"go.uber.org/goleak"

	"motorpool/simulator/devstack"
	"motorpool/store/pg"
	"motorpool/telematics"
)

func TestMain(m *testing.M) {
	code := m.Run()
	closeServer()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// patience bounds every wait of these tests.
const patience = 30 * time.Second

// server is the Postgres of all tests but those that kill theirs. It starts when the
// first test needs it.
var server struct {
	once     sync.Once
	dir      string
	postgres *devstack.Postgres
	err      error
	next     atomic.Int64 // number of a database
}

// template is a database with the schema, which others are copied from.
const template = "schema"

func sharedServer(tb testing.TB) *devstack.Postgres {
	tb.Helper()
	server.once.Do(func() { server.dir, server.postgres, server.err = startPostgres(false) })
	if server.err != nil {
		tb.Fatalf("start postgres: %v", server.err)
	}
	return server.postgres
}

// startPostgres starts one with the template. Where asked to, it waits for the disk at each commit.
func startPostgres(fsync bool) (string, *devstack.Postgres, error) {
	dir, err := os.MkdirTemp("", "store-test-")
	if err != nil {
		return "", nil, err
	}
	// Postgres may run as another user, who must reach its folder.
	if err := os.Chmod(dir, 0o711); err != nil {
		return dir, nil, err
	}
	p, err := devstack.StartPostgres(context.Background(), devstack.PostgresConfig{Dir: dir, Fsync: fsync})
	if err != nil {
		return dir, nil, err
	}
	admin, err := sqlx.Connect("postgres", p.URL())
	if err != nil {
		return dir, p, err
	}
	defer admin.Close()
	if _, err := admin.Exec(`create database ` + template); err != nil {
		return dir, p, err
	}
	db, err := New(pg.Config{URL: databaseURL(p, template)})
	if err != nil {
		return dir, p, err
	}
	defer db.Close()
	_, err = db.Migrate(context.Background())
	return dir, p, err
}

func closeServer() {
	if server.postgres != nil {
		if err := server.postgres.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if server.dir != "" {
		_ = os.RemoveAll(server.dir)
	}
}

func databaseURL(p *devstack.Postgres, database string) string {
	u, err := url.Parse(p.URL())
	if err != nil {
		panic(err)
	}
	u.Path = "/" + database
	return u.String()
}

// newDatabase returns the address of a database of the test's own, with the schema.
func newDatabase(tb testing.TB) string { return newDatabaseFrom(tb, template) }

func newDatabaseFrom(tb testing.TB, template string) string {
	tb.Helper()
	p := sharedServer(tb)
	admin, err := sqlx.Connect("postgres", p.URL())
	if err != nil {
		tb.Fatal(err)
	}
	defer admin.Close()
	name := fmt.Sprintf("test_%d", server.next.Add(1))
	if _, err := admin.Exec(fmt.Sprintf(`create database %s template %s`, name, template)); err != nil {
		tb.Fatal(err)
	}
	return databaseURL(p, name)
}

// open connects an instance of Motorpool to a database.
func open(tb testing.TB, address string) *Postgres {
	tb.Helper()
	p, err := New(pg.Config{URL: address, MaxConns: 8, Timeout: 10 * time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.Close(); err != nil {
			tb.Error(err)
		}
	})
	return p
}

// addVehicle puts a vehicle with a unit in, and the agency 1.
func addVehicle(tb testing.TB, p *Postgres, id telematics.VehicleID) (telematics.VehicleID, telematics.Unit) {
	tb.Helper()
	unit := telematics.Unit(fmt.Sprintf("unit-%d", id))
	_, err := p.Import(context.Background(), FleetFile{
		Agencies: []telematics.Agency{{ID: 1, Code: "MUC", Name: "Isar Mobility"}},
		Vehicles: []telematics.Vehicle{{
			ID: id, AgencyID: 1, Unit: unit, Status: telematics.Available, Powertrain: telematics.Electric,
			Plate: fmt.Sprintf("M-IM %d", id), Features: []string{}, Actions: telematics.ControlActions,
		}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return id, unit
}

// vehicles returns a function that adds vehicles, from 1.
func vehicles(tb testing.TB, p *Postgres) func() (telematics.VehicleID, telematics.Unit) {
	var last atomic.Int64
	return func() (telematics.VehicleID, telematics.Unit) {
		return addVehicle(tb, p, telematics.VehicleID(last.Add(1)))
	}
}

// waitForLock waits until a statement waits for a lock.
func waitForLock(t *testing.T, p *Postgres) {
	t.Helper()
	eventually(t, "a statement waits for a lock", func() bool {
		var waiting int
		err := p.Pool.Get(&waiting, `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
		if err != nil {
			t.Fatal(err)
		}
		return waiting > 0
	})
}

// forAtLeast returns a context that ends when so much time has passed and enough has happened. A busy machine takes longer for
// it, and patience is the end of that, too.
func forAtLeast(t *testing.T, length time.Duration, enough func() bool) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		for begin := time.Now(); ctx.Err() == nil && (time.Since(begin) < length || !enough()); {
			time.Sleep(20 * time.Millisecond)
		}
	})
	t.Cleanup(func() { cancel(); watching.Wait() })
	return ctx
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for: %s", patience, what)
		}
	}
}
