// Package storetest gives the tests of the store's packages their servers: one Postgres for all
// tests of a package, with a separate database for each, and servers that a test may kill.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"go.uber.org/goleak"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
	"motorpool/store/pg"
	"motorpool/telematics"
)

// shared is the Postgres of all tests but those that kill theirs. It starts when the first test
// needs it.
var shared struct {
	once   sync.Once
	server Postgres
	err    error
	next   atomic.Int64 // number of a database
}

// auth is the authentication of clients. With the race detector, scram-sha-256 took a quarter of
// the CPU time of the tests of internal/app, which connect often.
const auth = "md5"

// settings spare the server visits of each of its databases, which are small and many.
var settings = []string{"autovacuum=off"}

// Template is a database with the schema, which others are copied from.
const Template = "motorpool"

// Original is the variable with which .ci/test names a folder for all packages: the first one makes
// the data of a server with the schema there, and each server begins with a copy of them.
const Original = "TEST_POSTGRES"

// Service is the role of the instances: it has the rights of [pg.Rights], and no others.
const Service = "motorpool_service"

// ownFolder has the original of a package that is tested alone.
var ownFolder string

// Main runs the tests of a package, stops their server and looks for goroutines that did not end.
// It does not return.
func Main(m *testing.M) {
	code := m.Run()
	Stop()
	// After a failed dial go-redis looks once a second whether its pool was closed.
	dialling := goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial")
	if err := goleak.Find(dialling); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Stop stops the servers that the package's tests share, when no test runs any more.
func Stop() {
	shared.server.stop()
	stopRedis()
	if ownFolder != "" {
		_ = os.RemoveAll(ownFolder)
	}
}

// Postgres is a server for tests, with the database [Template].
type Postgres struct {
	*devstack.Postgres
	Dir      string   // its folder, which the server's user can reach
	admin    *sqlx.DB // creates and drops databases
	strategy string   // of copying a database, as SQL
}

// Server returns the Postgres that the package's tests share.
func Server(tb testing.TB) Postgres {
	tb.Helper()
	shared.once.Do(func() { shared.server, shared.err = start(false) })
	if shared.err != nil {
		tb.Fatalf("start postgres: %v", shared.err)
	}
	return shared.server
}

// StartPostgres starts a server for one test. With fsync each commit waits for the disk.
func StartPostgres(tb testing.TB, fsync bool) Postgres {
	tb.Helper()
	p, err := start(fsync)
	tb.Cleanup(p.stop)
	require.NoError(tb, err, "start postgres")
	return p
}

func start(fsync bool) (p Postgres, err error) {
	data, err := original()
	if err != nil {
		return p, err
	}
	if p.Dir, err = newFolder(); err != nil {
		return p, err
	}
	if said, err := exec.Command("cp", "-a", data+"/.", p.Dir).CombinedOutput(); err != nil {
		return p, fmt.Errorf("copy %s: %w: %s", data, err, said)
	}
	return p, p.serve(fsync)
}

// newFolder makes a folder. Postgres may run as another user, who must reach it.
func newFolder() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "store-test-"); err == nil {
		err = os.Chmod(dir, 0o711)
	}
	return dir, err
}

// original returns the folder of a server that is stopped. One package makes it, and others wait.
var original = sync.OnceValues(func() (string, error) {
	dir := os.Getenv(Original)
	if dir == "" {
		var err error
		if dir, err = newFolder(); err != nil {
			return "", err
		}
		ownFolder = dir
	}
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	whole, p := filepath.Join(dir, "whole"), Postgres{Dir: filepath.Join(dir, "unfinished")}
	if _, err := os.Stat(whole); err == nil {
		return whole, nil
	}
	if err := os.MkdirAll(p.Dir, 0o711); err != nil {
		return "", err
	}
	if err = p.serve(false); err == nil {
		err = migrate(p.URL())
	}
	if err := errors.Join(err, p.close()); err != nil {
		return "", err
	}
	return whole, os.Rename(p.Dir, whole)
})

func migrate(address string) error {
	db, err := pg.New(pg.Config{URL: address, Timeout: time.Minute})
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err = db.Migrate(context.Background()); err == nil {
		_, err = db.Pool.Exec(`create role ` + Service + `; grant pg_read_all_stats to ` + Service)
	}
	if err == nil {
		err = db.Grant(context.Background(), Service)
	}
	if err == nil {
		_, err = db.Pool.Exec(remember)
	}
	return err
}

func (p *Postgres) serve(fsync bool) (err error) {
	if p.Postgres, err = devstack.StartPostgres(context.Background(),
		devstack.PostgresConfig{Dir: p.Dir, Fsync: fsync, Auth: auth, Settings: settings}); err != nil {
		return err
	}
	if p.admin, err = sqlx.Open("postgres", p.Database("postgres")); err != nil {
		return err
	}
	// Without a write-ahead log of the copy, which no standby reads, it takes a quarter of the CPU.
	// Postgres before 15 knows no other way.
	return p.admin.Get(&p.strategy, `select case when current_setting('server_version_num')::int >= 150000
		then 'strategy file_copy' else '' end`)
}

// close stops the server, which may be one that a test has killed.
func (p Postgres) close() (err error) {
	if p.admin != nil {
		_ = p.admin.Close()
	}
	if p.Postgres != nil {
		err = p.Close()
	}
	return err
}

func (p Postgres) stop() {
	_ = p.close()
	if p.Dir != "" {
		_ = os.RemoveAll(p.Dir)
	}
}

// Database returns the address of a database of the server.
func (p Postgres) Database(name string) string {
	u, err := url.Parse(p.URL())
	if err != nil {
		panic(err)
	}
	u.Path = "/" + name
	return u.String()
}

func (p Postgres) create(name, template string) error {
	_, err := p.admin.Exec(fmt.Sprintf(`create database %s template %s %s`, name, template, p.strategy))
	return err
}

// Drop removes a database of [NewDatabase], for packages whose tests create many.
func Drop(tb testing.TB, address string) {
	tb.Helper()
	u, err := url.Parse(address)
	if err == nil {
		_, err = shared.server.admin.Exec(fmt.Sprintf(`drop database %s with (force)`, strings.TrimPrefix(u.Path, "/")))
	}
	assert.NoError(tb, err, "drop the test's database")
}

// NewDatabase returns the address of a separate database with the schema.
func NewDatabase(tb testing.TB) string {
	tb.Helper()
	p, name := Server(tb), takeUnused()
	if name == "" {
		name = p.newDatabase(tb, Template)
	}
	tb.Cleanup(func() { p.empty(name) })
	return p.Database(name)
}

// NewEmptyDatabase returns the address of a separate database without the schema.
func NewEmptyDatabase(tb testing.TB) string {
	tb.Helper()
	p := Server(tb)
	return p.Database(p.newDatabase(tb, "template0"))
}

func nextName() string { return fmt.Sprintf("test_%d", shared.next.Add(1)) }

func (p Postgres) newDatabase(tb testing.TB, template string) (name string) {
	tb.Helper()
	name = nextName()
	require.NoError(tb, p.create(name, template))
	return name
}

// Open connects an instance of Motorpool, with the rights of [Service], to a database of
// [NewDatabase], until the test ends. Its timeout is 10 s.
func Open(tb testing.TB, address string) *pg.DB {
	tb.Helper()
	return OpenWith(tb, pg.Config{URL: address, MaxConns: 8, Timeout: 10 * time.Second})
}

// OpenWith is Open with another configuration.
func OpenWith(tb testing.TB, config pg.Config) *pg.DB {
	tb.Helper()
	u, err := url.Parse(config.URL)
	require.NoError(tb, err)
	query := u.Query()
	query.Set("options", "-c role="+Service)
	u.RawQuery = query.Encode()
	config.URL = u.String()
	return OpenAs(tb, config)
}

// OpenAsOwner is Open with the rights of the owner of the tables, who migrates, imports and prunes.
func OpenAsOwner(tb testing.TB, address string) *pg.DB {
	tb.Helper()
	return OpenAs(tb, pg.Config{URL: address, MaxConns: 8, Timeout: 10 * time.Second})
}

// OpenAs is OpenWith as the role that the address names.
func OpenAs(tb testing.TB, config pg.Config) *pg.DB {
	tb.Helper()
	db, err := pg.New(config)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, db.Close()) })
	return db
}

// Exec executes a statement with the rights of the owner, which must succeed. What follows in a
// transaction has those of its connection.
func Exec(tb testing.TB, db sqlx.Execer, statement string, args ...any) {
	tb.Helper()
	const asOwner = `set local role none`
	if pool, ok := db.(*sqlx.DB); ok {
		if len(args) == 0 { // as one transaction, in one round trip
			_, err := pool.Exec(asOwner + `; ` + statement)
			require.NoError(tb, err)
			return
		}
		tx, err := pool.Beginx()
		require.NoError(tb, err)
		defer tx.Rollback() //nolint:errcheck // after a commit it has nothing to do
		Exec(tb, tx, statement, args...)
		require.NoError(tb, tx.Commit())
		return
	}
	_, err := db.Exec(asOwner)
	require.NoError(tb, err)
	_, err = db.Exec(statement, args...)
	require.NoError(tb, err)
	_, err = db.Exec(`reset role`) // to that of the connection
	require.NoError(tb, err)
}

// Begin begins a transaction, which ends with the test unless it ended before.
func Begin(tb testing.TB, db *sqlx.DB) *sqlx.Tx {
	tb.Helper()
	tx, err := db.Beginx()
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// AddVehicle adds the vehicle, its unit, and the agency 1, where they are not there yet. It has the
// actions: by default all, which a schema of an earlier version may not know.
func AddVehicle(tb testing.TB, db *pg.DB, id telematics.VehicleID, actions ...telematics.Action) (telematics.VehicleID, telematics.Unit) {
	tb.Helper()
	if actions == nil {
		actions = telematics.ControlActions
	}
	unit := telematics.Unit(fmt.Sprintf("unit-%d", id))
	Exec(tb, db.Pool, `
		with agency as (insert into agencies (id, code, name) values (1, 'MUC', 'Isar Mobility') on conflict do nothing),
		vehicle as (insert into vehicles (id, agency_id, status, powertrain, plate_number, brand, model, year, color, category, image,
		features, capabilities)
		values ($1, 1, 'available', 'electric', 'M-IM ' || $1::bigint, '', '', 0, '', '', '', '{}', $2)
		on conflict do nothing)
		insert into units (serial, vehicle_id) values ($3, $1) on conflict do nothing`, id, pq.Array(actions), unit)
	return id, unit
}

// Vehicles returns a function that adds vehicles, from 1.
func Vehicles(tb testing.TB, db *pg.DB) func() (telematics.VehicleID, telematics.Unit) {
	var last atomic.Int64
	return func() (telematics.VehicleID, telematics.Unit) {
		return AddVehicle(tb, db, telematics.VehicleID(last.Add(1)))
	}
}

// AddFleet adds the vehicles from 1 to n, with their units.
func AddFleet(tb testing.TB, db *pg.DB, n int) []telematics.Unit {
	tb.Helper()
	units := make([]telematics.Unit, n)
	for i := range units {
		_, units[i] = AddVehicle(tb, db, telematics.VehicleID(i+1))
	}
	return units
}
