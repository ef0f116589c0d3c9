package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"motorpool/cmd/chaos/network"
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
	watcherPassword = "watcher-secret"
	unitSecret      = "unit-secret"
	tokenIssuer     = "chaos"

	// budget of a command that does not say how long its caller waits.
	budget = 6 * time.Second
)

// world is everything that runs: the servers, the lines between all, the instances of the service, and the cars.
type world struct {
	flags
	dir  string
	log  *slog.Logger
	fall func(error) // ends the round: the world itself broke

	foreign, tokens telematics.SigningKey
	keys            *fleetKeys
	admin           string // token of the callers
	app             clientApp

	mosquitto *devstack.Mosquitto
	redis     *devstack.Redis
	postgres  *devstack.Postgres
	disk      *disk // nil: none that can be filled
	lines     network.Network
	instances []*instance
	uptime    *uptime
	watch     *watch
	air       *air

	fleet     *simulator.Fleet
	recorder  *simulator.Recorder
	ailments  ailments
	fleetFile store.FleetFile

	load  *load
	halts haltLog
	undo  []func() error
}

// build starts everything, and returns when the service is ready and the cars are connected.
func (w *world) build(ctx context.Context) error {
	w.lines, w.uptime = network.Network{}, newUptime(w.Instances)
	w.later(w.lines.Close)
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"keys", w.makeKeys},
		{"servers", w.startServers},
		{"record", func(ctx context.Context) error { return service.Furnish(ctx, w.postgres.URL(), w.fleetFile) }},
		{"an agency's app", w.provideApp},
		{"instances", w.startInstances},
		{"watchers", w.startWatchers},
		{"cars", w.startCars},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("build the world: %s: %w", step.what, err)
		}
	}
	return nil
}

// tearDown ends everything in reverse.
func (w *world) tearDown() error {
	var failures []error
	for i := len(w.undo) - 1; i >= 0; i-- {
		failures = append(failures, w.undo[i]())
	}
	w.undo = nil
	return errors.Join(failures...)
}

func (w *world) later(undo func() error) { w.undo = append(w.undo, undo) }

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) makeKeys(context.Context) error {
	var first telematics.SigningKey
	for _, key := range []*telematics.SigningKey{&first, &w.foreign, &w.tokens} {
		made, err := telematics.NewSigningKey()
		if err != nil {
			return err
		}
		*key = made
	}
	w.keys, w.app.sealing = newFleetKeys(first), newSealing()
	signing, err := telematics.EncodeSigningKeys(first)
	if err != nil {
		return err
	}
	tokens, err := telematics.EncodeKeyring(w.tokens.Keyring())
	if err != nil {
		return err
	}
	w.admin, err = app.Grant{
		Issuer: tokenIssuer, Audience: tokenIssuer, Lifetime: 24 * time.Hour, Scope: app.AllAgencies,
		Actor: telematics.Actor{Subject: "chaos", Role: telematics.Admin},
	}.Mint(w.tokens)
	return errors.Join(err,
		os.WriteFile(w.path("signing.jwks"), signing, 0o600),
		os.WriteFile(w.path("tokens.jwks"), tokens, 0o600))
}

func (w *world) startServers(ctx context.Context) error {
	passwords := map[string]string{}
	w.fleetFile = fleetOf(w.Vehicles)
	w.fleetFile.Vehicles = append(w.fleetFile.Vehicles, telematics.Vehicle{
		ID: telematics.VehicleID(w.Vehicles + 1), AgencyID: agencyOf(1), Unit: floodUnit, Status: telematics.Available,
		Powertrain: telematics.Combustion, Plate: "C-HA FL", Actions: telematics.ControlActions,
	})
	for _, v := range w.fleetFile.Vehicles {
		passwords[string(v.Unit)] = mosquitto.UnitPassword(unitSecret, string(v.Unit))
	}
	var err error
	if w.mosquitto, err = devstack.StartMosquitto(devstack.MosquittoConfig{
		Dir: w.path("mosquitto"), Units: passwords, ServicePassword: servicePassword, WatcherPassword: watcherPassword,
		Logger: w.logFile("mosquitto"),
	}); err != nil {
		return err
	}
	w.later(w.mosquitto.Close)
	if w.redis, err = devstack.StartRedis(w.path("redis")); err != nil {
		return err
	}
	w.later(w.redis.Close)
	return w.startPostgres(ctx)
}

// startPostgres keeps its data on a small disk of its own, where there can be one.
func (w *world) startPostgres(ctx context.Context) error {
	dir := w.path("postgres")
	if err := os.Mkdir(dir, 0o711); err != nil {
		return err
	}
	var err error
	if w.disk, err = mountDisk(dir); err != nil {
		w.log.Warn("full disk: not available here", "err", err)
	} else {
		w.later(w.disk.unmount)
	}
	if w.postgres, err = devstack.StartPostgres(ctx, devstack.PostgresConfig{Dir: dir, Logger: w.logFile("postgres")}); err != nil {
		return err
	}
	w.later(w.postgres.Discard)
	return nil
}

func (w *world) startInstances(ctx context.Context) error {
	for i := range w.Instances {
		instance, err := w.startInstance(ctx, i)
		if err != nil {
			return err
		}
		w.instances = append(w.instances, instance)
	}
	return w.ready(ctx)
}

// ready waits until every instance says that it is.
func (w *world) ready(ctx context.Context) error {
	for _, instance := range w.instances {
		if err := service.Eventually(ctx, time.Minute, instance.Name+" ready", instance.Ready); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) startWatchers(ctx context.Context) error {
	var err error
	if w.watch, err = openWatch(w.postgres.URL(), w.log); err != nil {
		return err
	}
	w.later(w.watch.close)
	if w.air, err = w.listen(); err != nil {
		return err
	}
	w.later(w.air.close)

	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watching sync.WaitGroup
	watching.Go(func() { w.watch.run(ctx) })
	watching.Go(func() { w.air.watchRetained(ctx) })
	watching.Go(func() { w.uptime.watchStalls(ctx) })
	w.later(func() error { stop(); watching.Wait(); return nil })
	return nil
}

// logFile is the log of a process, kept where a round fails.
func (w *world) logFile(name string) *slog.Logger {
	log, file, err := service.Output(w.path(name + ".log"))
	if err != nil {
		w.log.Warn("no log file", "of", name, "err", err)
		return slog.New(slog.DiscardHandler)
	}
	w.later(file.Close)
	return log
}
