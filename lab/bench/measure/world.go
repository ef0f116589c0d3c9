// Package measure measures the service and its floors: what the same machine does in the same run,
// on the same servers, without the service.
//
// Each Experiment builds a world: Mosquitto, Redis and Postgres as in production, a fleet of one
// agency, and instances of the service with rate limits on. Floor and service take turns, round by
// round; load comes from the jobs of package load. An experiment returns an error where a command,
// an audit log entry or a report was lost.
package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/internal/logger"
	"motorpool/lab/bench/load"
	"motorpool/lab/bench/report"
	"motorpool/lab/world"
	"motorpool/simulator/devstack"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// Experiment measures one thing, and adds what it measured to the results, even if it returns an
// error.
type Experiment interface {
	Measure(ctx context.Context, s Setup, r *report.Results) error
}

// Setup has the settings that all experiments share.
type Setup struct {
	Binary string `placeholder:"FILE" help:"The motorpool program to measure (default one that is built from here)."`
	Rounds int    `default:"3" placeholder:"N" help:"Of each floor and of the service, in turn."`
	// Tiny skips preparations and rests, for tests: the figures are meaningless.
	Tiny bool `kong:"-"`

	connections int // that a process may have
}

// agency owns all vehicles; its administrator sends all requests.
const agency = telematics.AgencyID(1)

// side is the service or a floor: what measures one round.
type side struct {
	benchmark string
	measure   func() (report.Round, error)
}

// takeTurns measures the sides round by round, every other time in reverse order.
func takeTurns(ctx context.Context, r *report.Results, rounds int, sides ...side) error {
	var failures []error
	for range rounds {
		for _, side := range sides {
			round, err := side.measure()
			if err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", side.benchmark, err))
			}
			if round == nil || ctx.Err() != nil {
				return errors.Join(failures...)
			}
			r.Add(os.Stdout, side.benchmark, round)
		}
		slices.Reverse(sides)
	}
	return errors.Join(failures...)
}

// testWorld is a world with a fleet.
type testWorld struct {
	*world.World
	setup Setup
	fleet int // vehicles
	token string
	db    database
}

// newWorld starts the servers, and puts a fleet on record.
func (s Setup) newWorld(ctx context.Context, fleet int) (w *testWorld, err error) {
	dir, err := world.TempDir("motorpool-bench-")
	if err != nil {
		return nil, err
	}
	w = &testWorld{setup: s, fleet: fleet}
	if w.World, err = world.New(dir, logger.New(os.Stderr, "warn", "text")); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	w.OnClose(func() error { return os.RemoveAll(dir) })
	if err := w.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("build the world: %w", err), w.Close())
	}
	return w, nil
}

func (w *testWorld) open(ctx context.Context) (err error) {
	if w.Binary, err = world.BuildProgram(ctx, w.setup.Binary, w.Dir, false); err != nil {
		return err
	}
	if w.token, err = w.Token(telematics.Actor{Subject: "bench", Role: telematics.Admin, Agency: agency}); err != nil {
		return err
	}
	servers := world.ServersConfig{
		Units: []telematics.Unit{load.UnitOf(1)}, Fsync: !w.setup.Tiny,
		PostgresSettings: append([]string{"track_commit_timestamp=on"}, devstack.RecommendedSettings...),
	}
	if err = w.StartServers(ctx, servers); err != nil {
		return err
	}
	if err = w.Migrate(ctx); err != nil {
		return err
	}
	if w.db.DB, err = sqlx.Open("postgres", w.Postgres.URL()); err != nil {
		return err
	}
	w.OnClose(w.db.Close)
	w.db.SetMaxOpenConns(1)
	if err = w.Import(ctx, vehicles.FleetFile{
		Agencies: []telematics.Agency{{ID: agency, Code: "BENCH", Name: "Bench"}},
		Vehicles: []telematics.Vehicle{world.Vehicle(1, agency, load.UnitOf(1))},
	}); err != nil {
		return err
	}
	return w.db.fill(ctx, w.fleet, w.setup.Tiny)
}

// gateway is the account that may publish and receive for every unit.
func (w *testWorld) gateway() load.Broker {
	return load.Broker{URL: w.Mosquitto.ServiceURL(), User: devstack.GatewayUser, Password: w.ServicePassword}
}

// serve starts an instance of the service, and returns when it is ready. Limits are counted, and so
// high that the load passes; Postgres must wait for its disk; everything else is default, but what
// more says. Close closes it at the latest.
func (w *testWorld) serve(ctx context.Context, more ...string) (*world.Instance, error) {
	n, err := w.StartInstance(ctx, world.InstanceConfig{Settings: append(more,
		"MOTORPOOL_VEHICLE_RATE=1000000", "MOTORPOOL_REFRESH_RATE=1000000", "MOTORPOOL_ADMIN_RATE=1000000", "MOTORPOOL_BULK_RATE=1000000",
		"MOTORPOOL_ADMIN_STREAMS=10000", fmt.Sprintf("MOTORPOOL_ALLOW_UNSAFE_POSTGRES=%t", w.setup.Tiny))})
	if err != nil {
		return nil, err
	}
	return n, world.Eventually(ctx, time.Minute, "the service is ready", n.Ready)
}

// servers returns the servers, and instances of the service.
func (w *testWorld) servers(instances ...*world.Instance) processes {
	p := processes{"postgres": {w.Postgres.PID()}, "redis": {w.Redis.PID()}, "mosquitto": {w.Mosquitto.PID()}}
	for _, n := range instances {
		p["service"] = append(p["service"], n.PID())
	}
	return p
}

// bareServers returns the servers of floors that store nothing.
func (w *testWorld) bareServers() processes { return processes{"mosquitto": {w.Mosquitto.PID()}} }

// start begins to measure CPU time, without that of Postgres for this program's own queries, and
// returns a function that returns what was used since.
func (w *testWorld) start(ctx context.Context, p processes) (used func() (use, error), err error) {
	own, err := get[int](ctx, w.db, `select pg_backend_pid()`)
	if err != nil {
		return nil, err
	}
	before, err := p.use(own)
	return func() (use, error) {
		after, err := p.use(own)
		for name := range after {
			after[name] -= before[name]
		}
		return after, err
	}, err
}
