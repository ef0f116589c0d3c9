package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"motorpool/cmd/internal/app"
	"motorpool/cmd/internal/logger"
	"motorpool/cmd/internal/service"
	"motorpool/simulator/devstack"
	"motorpool/store"
	"motorpool/telematics"
)

const (
	servicePassword = "service-secret"
	gatewayPassword = "gateway-secret"
	tokenIssuer     = "bench"
	readyWithin     = time.Minute
	agency          = telematics.AgencyID(1) // of all vehicles, and of the administrator that locks them
)

// limits are counted as in production, and so high that the load passes.
var limits = []string{
	"MOTORPOOL_VEHICLE_RATE=1000000", "MOTORPOOL_REFRESH_RATE=1000000", "MOTORPOOL_ADMIN_RATE=1000000", "MOTORPOOL_BULK_RATE=1000000",
	"MOTORPOOL_ADMIN_STREAMS=10000",
}

// stage is what every measurement can be told of its world.
type stage struct {
	Binary   string `default:"" placeholder:"FILE" help:"The motorpool program to measure (default one that is built from here)."`
	JSON     bool   `name:"json" help:"Print what was measured as JSON, instead of a table."`
	Keep     bool   `help:"Keep the logs of the servers."`
	LogLevel string `default:"warn" placeholder:"LEVEL" help:"Of this program: debug, info, warn or error (default ${default})."`
}

// world is the real servers, and a record with a number of vehicles.
type world struct {
	stage
	dir      string
	log      *slog.Logger
	vehicles int

	mosquitto *devstack.Mosquitto
	redis     *devstack.Redis
	postgres  *devstack.Postgres
	admin     string // token of the callers
	undo      []func() error
}

// newWorld starts the servers. Whoever gets a world without an error tears it down.
func (s stage) newWorld(ctx context.Context, vehicles int) (*world, error) {
	dir, err := os.MkdirTemp("", "motorpool-bench-")
	if err != nil {
		return nil, err
	}
	w := &world{stage: s, dir: dir, vehicles: vehicles, log: logger.New(os.Stderr, s.LogLevel, "text")}
	w.later(func() error {
		if s.Keep {
			say("the logs are in %s", dir)
			return nil
		}
		return os.RemoveAll(dir)
	})
	for _, step := range []func(context.Context) error{w.findProgram, w.makeKeys, w.startServers, w.furnish, w.season} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("build the world: %w", err), w.tearDown())
		}
	}
	return w, nil
}

// say tells whoever waits what is going on; results alone go to the standard output.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...) }

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

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) findProgram(ctx context.Context) (err error) {
	w.Binary, err = service.Program(ctx, w.Binary, w.dir, false)
	return err
}

func (w *world) makeKeys(context.Context) error {
	signing, err := telematics.NewSigningKey()
	if err != nil {
		return err
	}
	tokens, err := telematics.NewSigningKey()
	if err != nil {
		return err
	}
	private, err := telematics.EncodeSigningKeys(signing)
	if err != nil {
		return err
	}
	public, err := telematics.EncodeKeyring(tokens.Keyring())
	if err != nil {
		return err
	}
	units, err := telematics.EncodeKeyring(signing.Keyring())
	if err != nil {
		return err
	}
	w.admin, err = app.Grant{
		Issuer: tokenIssuer, Audience: tokenIssuer, Lifetime: 24 * time.Hour,
		Actor: telematics.Actor{Subject: "bench", Role: telematics.Admin, Agency: agency},
	}.Mint(tokens)
	return errors.Join(err,
		os.WriteFile(w.path("signing.jwks"), private, 0o600),
		os.WriteFile(w.path("units.jwks"), units, 0o600),
		os.WriteFile(w.path("tokens.jwks"), public, 0o600))
}

func (w *world) startServers(ctx context.Context) error {
	for _, server := range []string{devstack.MosquittoServer, devstack.RedisServer} {
		if err := devstack.Available(server); err != nil {
			return err
		}
	}
	// Postgres runs as another user, and must reach its folder.
	if err := os.Chmod(w.dir, 0o711); err != nil {
		return err
	}
	var err error
	if w.mosquitto, err = devstack.StartMosquitto(devstack.MosquittoConfig{
		Dir: w.path("mosquitto"), ServicePassword: servicePassword, GatewayPassword: gatewayPassword, Logger: w.logFile("mosquitto"),
	}); err != nil {
		return err
	}
	w.later(w.mosquitto.Close)
	if w.redis, err = devstack.StartRedis(w.path("redis")); err != nil {
		return err
	}
	w.later(w.redis.Close)
	// What is measured includes the wait for the disk.
	if w.postgres, err = devstack.StartPostgres(ctx, devstack.PostgresConfig{Dir: w.path("postgres"), Fsync: true, Logger: w.logFile("postgres")}); err != nil {
		return err
	}
	w.later(w.postgres.Discard)
	return nil
}

func (w *world) furnish(ctx context.Context) error {
	return service.Furnish(ctx, w.postgres.URL(), fleetOf(w.vehicles))
}

func fleetOf(vehicles int) store.FleetFile {
	f := store.FleetFile{Agencies: []telematics.Agency{{ID: agency, Code: "BENCH", Name: "Bench"}}}
	for v := 1; v <= vehicles; v++ {
		f.Vehicles = append(f.Vehicles, telematics.Vehicle{
			ID: telematics.VehicleID(v), AgencyID: agency, Unit: unitOf(v), Status: telematics.Available,
			Powertrain: telematics.Combustion, Plate: fmt.Sprintf("B-EN %d", v), Actions: telematics.ControlActions,
		})
	}
	return f
}

// unitOf returns a serial as long as a real one.
func unitOf(vehicle int) telematics.Unit {
	return telematics.Unit(fmt.Sprintf("%s%09d", serialPrefix, vehicle))
}

// serve starts an instance of the service, and waits until it is ready.
func (w *world) serve(ctx context.Context) (*service.Instance, error) {
	n, err := w.start(ctx)
	if err != nil {
		return nil, err
	}
	if err := service.Eventually(ctx, readyWithin, "the service is ready", n.Ready); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// start starts an instance of the service, with further settings as MOTORPOOL_NAME=value.
func (w *world) start(ctx context.Context, settings ...string) (*service.Instance, error) {
	name := "motorpool-" + uuid.NewString()[:8]
	return service.Start(ctx, service.Config{
		Name: name, Binary: w.Binary, Dir: w.dir,
		MQTTURL: w.mosquitto.ServiceURL(), MQTTPassword: servicePassword, RedisURL: w.redis.URL(), DatabaseURL: w.postgres.URL(),
		SigningKeys: w.path("signing.jwks"), TokenKeys: w.path("tokens.jwks"), TokenIssuer: tokenIssuer,
		Settings: append(append(settings, limits...), "MOTORPOOL_ALLOW_UNSAFE_POSTGRES=false", "MOTORPOOL_PROFILES=true"), Logger: w.logFile(name),
	})
}

// logFile is the log of a process.
func (w *world) logFile(name string) *slog.Logger {
	file, err := os.OpenFile(w.path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.log.Warn("no log file", "of", name, "err", err)
		return slog.New(slog.DiscardHandler)
	}
	w.later(file.Close)
	return slog.New(slog.NewTextHandler(file, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
