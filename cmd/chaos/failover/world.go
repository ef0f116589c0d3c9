package failover

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "github.com/lib/pq" // the audit reads past the store under test

	"motorpool/cmd/internal/app"
	"motorpool/cmd/internal/service"
	"motorpool/mosquitto"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/store"
	"motorpool/telematics"
)

const (
	servicePassword = "service-secret"
	unitSecret      = "unit-secret"
	tokenIssuer     = "chaos"
	// reportEvery is how often a car reports, with its last eight results.
	reportEvery = time.Second
)

// world is everything that runs.
type world struct {
	Config
	signing, tokens telematics.SigningKey
	token           string

	primary, standby      *devstack.Postgres
	database, replication *proxy // between instances and the primary, and between primary and standby
	redis                 *devstack.Redis
	mosquitto             *devstack.Mosquitto
	instances             []*service.Instance
	fleet                 *simulator.Fleet
	recorder              *simulator.Recorder
	undo                  []func() error
}

func (w *world) later(undo func() error) { w.undo = append(w.undo, undo) }

// tearDown ends everything in reverse.
func (w *world) tearDown() error {
	var failures []error
	for i := len(w.undo) - 1; i >= 0; i-- {
		failures = append(failures, w.undo[i]())
	}
	w.undo = nil
	return errors.Join(failures...)
}

func (w *world) path(name string) string { return filepath.Join(w.Dir, name) }

func (w *world) build(ctx context.Context) error {
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"keys", w.makeKeys},
		{"servers", w.startServers},
		{"instances", w.startInstances},
		{"vehicles", w.furnish},
		{"standby", w.startStandby},
		{"cars", w.startCars},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("build the world: %s: %w", step.what, err)
		}
	}
	return nil
}

func (w *world) makeKeys(context.Context) error {
	var err error
	if w.signing, err = telematics.NewSigningKey(); err != nil {
		return err
	}
	if w.tokens, err = telematics.NewSigningKey(); err != nil {
		return err
	}
	private, errPrivate := telematics.EncodeSigningKeys(w.signing)
	public, errPublic := telematics.EncodeKeyring(w.tokens.Keyring())
	w.token, err = app.Grant{
		Issuer: tokenIssuer, Audience: tokenIssuer, Actor: telematics.Actor{Subject: "chaos", Role: telematics.Admin}, Lifetime: time.Hour,
		Scope: app.AllAgencies,
	}.Mint(w.tokens)
	return errors.Join(err, errPrivate, errPublic,
		os.WriteFile(w.path("signing.jwks"), private, 0o600), os.WriteFile(w.path("tokens.jwks"), public, 0o600))
}

func unitOf(vehicle int) telematics.Unit { return telematics.Unit(fmt.Sprintf("car-%d", vehicle)) }

func passwordOf(vehicle int) string {
	return mosquitto.UnitPassword(unitSecret, string(unitOf(vehicle)))
}

func (w *world) startServers(ctx context.Context) error {
	units := map[string]string{}
	for vehicle := 1; vehicle <= w.Vehicles; vehicle++ {
		units[string(unitOf(vehicle))] = passwordOf(vehicle)
	}
	var err error
	if w.mosquitto, err = devstack.StartMosquitto(devstack.MosquittoConfig{Dir: w.path("mosquitto"), Units: units, ServicePassword: servicePassword}); err != nil {
		return err
	}
	w.later(w.mosquitto.Close)
	if w.redis, err = devstack.StartRedis(w.path("redis")); err != nil {
		return err
	}
	w.later(w.redis.Close)
	if w.primary, err = devstack.StartPostgres(ctx, devstack.PostgresConfig{Dir: w.path("postgres"), Logger: w.logFile("postgres")}); err != nil {
		return err
	}
	w.later(w.primary.Discard)
	if w.database, err = startProxy(hostOf(w.primary)); err != nil {
		return err
	}
	w.later(w.database.close)
	if w.replication, err = startProxy(hostOf(w.primary)); err != nil {
		return err
	}
	w.later(w.replication.close)
	return nil
}

func hostOf(p *devstack.Postgres) string {
	u, err := url.Parse(p.URL())
	if err != nil {
		panic(err) // we made it
	}
	return u.Host
}

// startInstances lets the program under test make the schema, so that an older one can be tested.
func (w *world) startInstances(ctx context.Context) error {
	address, err := url.Parse(w.primary.URL())
	if err != nil {
		return err
	}
	address.Host = w.database.address()
	for i := range w.Instances {
		started, err := service.Start(ctx, service.Config{
			Name: fmt.Sprintf("instance %d", i), Binary: w.Binary, Dir: w.Dir,
			MQTTURL: w.mosquitto.ServiceURL(), MQTTPassword: servicePassword, RedisURL: w.redis.URL(), DatabaseURL: address.String(),
			SigningKeys: w.path("signing.jwks"), TokenKeys: w.path("tokens.jwks"), TokenIssuer: tokenIssuer,
			Logger: w.logFile(fmt.Sprintf("instance-%d", i)),
		})
		if err != nil {
			return err
		}
		w.later(started.Close)
		w.instances = append(w.instances, started)
	}
	return w.ready(ctx)
}

func (w *world) ready(ctx context.Context) error {
	for _, n := range w.instances {
		if err := service.Eventually(ctx, time.Minute, n.Name+" ready", n.Ready); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) furnish(ctx context.Context) error {
	postgres, err := store.New(store.Config{URL: w.primary.URL()})
	if err != nil {
		return err
	}
	defer postgres.Close()
	f := store.FleetFile{Agencies: []telematics.Agency{{ID: 1, Code: "CHAOS", Name: "Chaos"}}}
	for vehicle := 1; vehicle <= w.Vehicles; vehicle++ {
		f.Vehicles = append(f.Vehicles, telematics.Vehicle{
			ID: telematics.VehicleID(vehicle), AgencyID: 1, Unit: unitOf(vehicle), Status: telematics.Available,
			Powertrain: telematics.Combustion, Plate: fmt.Sprintf("C-HA %d", vehicle), Actions: telematics.ControlActions,
		})
	}
	_, err = postgres.Import(ctx, f)
	return err
}

func (w *world) startStandby(ctx context.Context) error {
	var err error
	w.standby, err = w.primary.StartStandby(ctx, devstack.StandbyConfig{
		Dir: w.path("standby"), Primary: w.replication.address(), Logger: w.logFile("standby"),
	})
	if err != nil {
		return err
	}
	w.later(w.standby.Discard)
	return nil
}

func (w *world) startCars(ctx context.Context) error {
	var cars []simulator.Config
	for vehicle := 1; vehicle <= w.Vehicles; vehicle++ {
		cars = append(cars, simulator.Config{
			Unit: unitOf(vehicle), Password: passwordOf(vehicle), Broker: w.mosquitto.UnitsURL(),
			Profile: simulator.Profile{Actions: simulator.AllActions, Latency: simulator.Between(10*time.Millisecond, 100*time.Millisecond)},
		})
	}
	w.recorder = &simulator.Recorder{}
	w.fleet = simulator.NewFleet(simulator.FleetConfig{
		Keyring: w.signing.Keyring(), Recorder: w.recorder, Seed: w.Seed, Interval: reportEvery,
	}, cars...)
	living, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	var ended error
	running.Go(func() { ended = w.fleet.Run(living) })
	w.later(func() error { stop(); running.Wait(); return ended })
	return service.Eventually(ctx, time.Minute, "all cars connected", func(context.Context) bool { return w.fleet.Connected() == w.Vehicles })
}

// logFile is the log of a process.
func (w *world) logFile(name string) *slog.Logger {
	log, file, err := service.Output(w.path(name + ".log"))
	if err != nil {
		w.Logger.Warn("no log file", "of", name, "err", err)
		return slog.New(slog.DiscardHandler)
	}
	w.later(file.Close)
	return log
}

// openDatabase opens the promoted standby for the audit.
func (w *world) openDatabase() (*sql.DB, error) {
	return sql.Open("postgres", w.standby.URL()+"&connect_timeout=2")
}
