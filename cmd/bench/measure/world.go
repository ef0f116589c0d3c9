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
	"io"
	"net/http"
	"os"
	"time"

	"motorpool/cmd/bench/load"
	"motorpool/internal/logger"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
	"motorpool/simulator/world"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// Experiment measures one thing, and adds its measurements to the results, even if it returns an
// error.
type Experiment interface {
	Measure(ctx context.Context, s Setup, r *Results) error
}

// Setup has the settings that all experiments share.
type Setup struct {
	Binary string `placeholder:"FILE" help:"The motorpool program to measure (default one that is built from here)."`
	Rounds int    `default:"3" placeholder:"N" help:"Of each floor and of the service, in turn; growth has three times as many, short ones (default ${default})."`
	Keep   bool   `help:"Keep the logs of the servers."`
	// Tiny skips preparations and rests, for tests: the figures are meaningless.
	Tiny bool `kong:"-"`
}

// rest waits until processes are idle.
func (s Setup) rest(ctx context.Context, d time.Duration) {
	if !s.Tiny {
		world.Pause(ctx, d)
	}
}

// agency owns all vehicles; its administrator sends all requests.
const agency = telematics.AgencyID(1)

// settings of the service: limits are counted, and so high that the load passes; Postgres must wait
// for its disk; everything else is default.
var settings = []string{
	"MOTORPOOL_VEHICLE_RATE=1000000", "MOTORPOOL_REFRESH_RATE=1000000", "MOTORPOOL_ADMIN_RATE=1000000", "MOTORPOOL_BULK_RATE=1000000",
	"MOTORPOOL_ADMIN_STREAMS=10000", "MOTORPOOL_ALLOW_UNSAFE_POSTGRES=false", "MOTORPOOL_PROFILES=true",
}

// Say prints progress to standard error.
func Say(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }

// testWorld is a world with a fleet.
type testWorld struct {
	*world.World
	fleet int // vehicles
	token string
	db    database
}

// newWorld starts the servers and imports a fleet.
func (s Setup) newWorld(ctx context.Context, fleet int, r *Results) (w *testWorld, err error) {
	dir, err := world.TempDir("motorpool-bench-")
	if err != nil {
		return nil, err
	}
	w = &testWorld{fleet: fleet}
	if w.World, err = world.New(dir, logger.New(os.Stderr, "warn", "text")); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if s.Keep {
		Say("the logs are in %s", dir)
	} else {
		w.OnClose(func() error { return os.RemoveAll(dir) })
	}
	if err = w.start(ctx, s); err == nil {
		r.Machine.Postgres, err = w.db.durability(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("build the world: %w", err), w.Close())
	}
	return w, nil
}

func (w *testWorld) start(ctx context.Context, s Setup) (err error) {
	if _, err = openFiles(); err != nil {
		return err
	}
	if w.Binary, err = world.BuildProgram(ctx, s.Binary, w.Dir, false); err != nil {
		return err
	}
	if w.token, err = w.Token(telematics.Actor{Subject: "bench", Role: telematics.Admin, Agency: agency}); err != nil {
		return err
	}
	if err = w.StartServers(ctx, world.ServersConfig{Gateway: true, Fsync: !s.Tiny, PostgresSettings: devstack.RecommendedSettings}); err != nil {
		return err
	}
	if w.db, err = openDatabase(w.Postgres.URL()); err != nil {
		return err
	}
	w.OnClose(w.db.Close)
	if err = w.Migrate(ctx); err != nil {
		return err
	}
	if err = w.importFleet(ctx); err == nil && !s.Tiny {
		err = w.db.makeUsed(ctx)
	}
	return err
}

func (w *testWorld) importFleet(ctx context.Context) error {
	f := vehicles.FleetFile{Agencies: []telematics.Agency{{ID: agency, Code: "BENCH", Name: "Bench"}}}
	for v := 1; v <= w.fleet; v++ {
		f.Vehicles = append(f.Vehicles, world.Vehicle(v, agency, load.UnitOf(v)))
	}
	return w.Import(ctx, f)
}

// gateway is the account that may publish and receive for every unit, service that of the service.
func (w *testWorld) gateway() load.Broker {
	return load.Broker{URL: w.Mosquitto.ServiceURL(), User: devstack.GatewayUser, Password: w.ServicePassword}
}

func (w *testWorld) service() load.Broker {
	return load.Broker{URL: w.Mosquitto.ServiceURL(), User: mosquitto.ServiceUser, Password: w.ServicePassword}
}

// serve starts an instance of the service, with settings in addition to those of all, and returns
// when it is ready. Close closes it at the latest.
func (w *testWorld) serve(ctx context.Context, more ...string) (*world.Instance, error) {
	n, err := w.StartInstance(ctx, world.InstanceConfig{Settings: append(more, settings...)})
	if err != nil {
		return nil, err
	}
	return n, world.Eventually(ctx, time.Minute, "the service is ready", n.Ready)
}

// processes returns the servers and instances of the service.
func (w *testWorld) processes(instances ...*world.Instance) meters {
	m := meters{"postgres": w.Postgres.PID(), "redis": w.Redis.PID(), "mosquitto": w.Mosquitto.PID()}
	for i, n := range instances {
		name := "service"
		if i > 0 {
			name = fmt.Sprintf("service %d", i+1)
		}
		m[name] = n.PID()
	}
	return m
}

// startUnits starts the units of vehicles at the gateway.
func (w *testWorld) startUnits(ctx context.Context, units *load.Units) (*load.Process, error) {
	units.Broker = w.gateway()
	p, _, err := load.Serve(ctx, units)
	return p, err
}

// get requests a URL as the administrator.
func (w *testWorld) get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+w.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return body, err
}
