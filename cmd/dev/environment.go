package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/cmd/dev/folder"
	"motorpool/internal/app"
	"motorpool/mosquitto"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/simulator/sandbox"
	"motorpool/store/pg"
	"motorpool/store/twins"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// environment is the development environment: servers, service and simulated fleet.
type environment struct {
	flags
	*folder.Folder
	fleet   fleet
	log     *slog.Logger
	out     io.Writer
	started time.Time
}

// servers are the servers that the service uses.
type servers struct {
	mqtt        *devstack.MQTT
	redis       *devstack.Miniredis
	processor   *sandbox.Server
	databaseURL string
}

// run starts everything, and ends it in reverse order when the context ends.
func (e *environment) run(ctx context.Context) (err error) {
	e.started = time.Now()
	dir := e.flags.Dir
	// 0711, so that Postgres, which may run as another user, can have its data inside.
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	unlock, err := devstack.LockFolder(dir)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("--dir: another environment runs in %s; stop it, or name another folder", dir)
	}
	if err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	defer unlock()
	if err := removeFiles(dir); err != nil { // of an earlier run that was killed
		return err
	}
	if e.Folder, err = folder.New(dir, e.log); err != nil {
		return err
	}
	defer func() {
		if failure := e.Close(); failure != nil {
			e.log.Error("environment not closed", "err", failure)
			err = errors.Join(err, failure)
		}
	}()
	e.OnClose(func() error { return removeFiles(dir) })
	listeners, err := e.listen()
	if err != nil {
		return err
	}
	e.OnClose(func() error { return closeListeners(listeners) })
	s, err := e.startServers(ctx)
	if err != nil {
		return err
	}
	postgres, err := pg.New(pg.Config{URL: s.databaseURL})
	if err != nil {
		return err
	}
	e.OnClose(postgres.Close)
	if err := e.importFleet(ctx, postgres); err != nil {
		return err
	}
	if err := e.addOperators(ctx, postgres); err != nil {
		return err
	}
	key, err := e.agencyKey(ctx, postgres)
	if err != nil {
		return err
	}
	config := e.config(s)
	config.ConsoleURL = reachable(listeners.Public.Addr())
	config.DocsScript, config.SignInHint = docsScript(key), signInHint
	if err := config.Check(); err != nil {
		return err
	}

	service, ctx := errgroup.WithContext(ctx)
	service.Go(func() error { return app.Serve(ctx, config, listeners, e.log) })
	service.Go(func() error {
		here, err := e.endpoints(s, listeners)
		if err != nil {
			return err
		}
		if err := here.await(ctx, "the service is ready", here.serviceReady); err != nil {
			return err
		}
		s.processor.SetWebhook(here.base + "/webhooks/stripe")
		if err := e.createDemo(ctx, &here, postgres, key, s.processor.URL()); err != nil {
			return err
		}
		// Only now: reports that come before the service subscribes are lost.
		if err := e.startCars(ctx, s.mqtt.UnitsURL(), &here); err != nil {
			return err
		}
		e.startUnits(ctx, s.mqtt.UnitsURL())
		if err := here.await(ctx, "the cars report",
			func(ctx context.Context) bool { return reporting(ctx, postgres, e.reportingFirst()) }); err != nil {
			return err
		}
		if err := here.signInLinks(ctx, s.redis.URL()); err != nil {
			return err
		}
		return e.announce(here)
	})
	return service.Wait()
}

// startCars starts the cars, and a server that changes them. They outlive the service, so that its
// last commands are answered.
func (e *environment) startCars(ctx context.Context, unitsURL string, here *endpoints) error {
	latency := simulator.Fast
	if e.Latency == "cellular" {
		latency = simulator.Cellular
	}
	cars := e.StartCars(ctx, func(err error) { e.log.Error("cars ended", "err", err) }, simulator.FleetConfig{
		Broker: unitsURL, Keyring: e.Signing.Keyring(), Logger: e.log,
	}, e.fleet.cars(e.UnitPassword, latency)...)
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var provisioning errgroup.Group
	provisioning.Go(func() error { return e.provision(ctx, cars) })
	e.OnClose(func() error { stop(); return provisioning.Wait() })
	listener, err := net.Listen("tcp", freePort)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: e.fleet.carsHandler(cars), ReadHeaderTimeout: 10 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // until Close
	e.OnClose(func() error { defer serving.Wait(); return server.Close() })
	here.env = append(here.env, variable{"CARS_URL", reachable(listener.Addr())})
	return nil
}

func (e *environment) startServers(ctx context.Context) (s servers, err error) {
	if s.redis, err = devstack.StartMiniredis(freePort); err != nil {
		return s, err
	}
	e.OnClose(s.redis.Close)
	if s.processor, err = sandbox.Start(sandbox.Config{
		Addr: freePort, File: e.Path("payments.json"), Key: e.PaymentsKey, WebhookSecret: e.WebhookSecret, Logger: e.log,
	}); err != nil {
		return s, err
	}
	e.OnClose(s.processor.Close)
	if s.mqtt, err = e.startMQTT(); err != nil {
		return s, err
	}
	e.OnClose(s.mqtt.Close)
	s.databaseURL, err = e.startPostgres(ctx)
	return s, err
}

// startPostgres returns the URL of the flag's Postgres; without one it starts a Postgres with its
// data in the folder.
func (e *environment) startPostgres(ctx context.Context) (string, error) {
	if e.DatabaseURL != "" {
		e.log.Info("using an existing postgres", "named_by", "--database-url or DATABASE_URL")
		return string(e.DatabaseURL), nil
	}
	postgres, err := devstack.StartPostgres(ctx, devstack.PostgresConfig{Dir: e.Path("postgres"), Logger: e.log})
	if err != nil {
		return "", err
	}
	e.OnClose(postgres.Close)
	return postgres.URL(), nil
}

func (e *environment) startMQTT() (*devstack.MQTT, error) {
	return listenOn(e.log, "mqtt", e.MQTT, defaultMQTT, func(units string) (*devstack.MQTT, error) {
		return listenOn(e.log, "mqtt-service", e.MQTTService, defaultMQTTService, func(service string) (*devstack.MQTT, error) {
			return devstack.StartMQTT(devstack.MQTTConfig{
				UnitsAddr: units, ServiceAddr: service, ServicePassword: e.ServicePassword, Logger: e.log,
				UnitPassword: func(user string) (string, bool) {
					return e.UnitPassword(telematics.Unit(user)), e.fleet.has(telematics.Unit(user))
				},
			})
		})
	})
}

// importFleet stores the demo fleet.
func (e *environment) importFleet(ctx context.Context, postgres *pg.DB) error {
	if _, err := postgres.Migrate(ctx); err != nil {
		return err
	}
	if err := e.importRecord(ctx, vehicles.New(postgres)); err != nil {
		return err
	}
	// The embedded MQTT broker has no retained messages of the last run.
	if err := vehicles.New(postgres).ForgetContacts(ctx); err != nil {
		return err
	}
	_, err := twins.Store(ctx, postgres, e.fleet.lastReports())
	return err
}

// importRecord stores the record of the demo fleet. What the developer has changed so that it is
// refused stays as it is, such as a vehicle that is booked at another agency.
func (e *environment) importRecord(ctx context.Context, fleet *vehicles.Fleet) error {
	var refusal *telematics.Error
	_, err := fleet.Import(ctx, e.fleet.record)
	if !errors.As(err, &refusal) {
		return err
	}
	agencies := e.fleet.record
	agencies.Vehicles = nil
	parts := []vehicles.FleetFile{agencies}
	for _, v := range e.fleet.record.Vehicles {
		parts = append(parts, vehicles.FleetFile{Vehicles: []telematics.Vehicle{v}, Rates: e.fleet.record.Rates})
	}
	for _, part := range parts {
		if _, err := fleet.Import(ctx, part); errors.As(err, &refusal) {
			e.log.Warn("left as it is on record; start with an empty data folder to have it as in the demo", "err", err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// demoRetention is for how many days the history of the demo fleet is kept, as by default.
const demoRetention = 7

func (e *environment) config(s servers) app.Config {
	return app.Config{
		HTTP:        defaultHTTP,
		Internal:    defaultInternal, // opened already
		DatabaseURL: app.Secret(s.databaseURL), DatabaseConns: 20, RedisURL: app.Secret(s.redis.URL()),
		MQTTURL: []string{s.mqtt.ServiceURL()}, MQTTUsername: mosquitto.ServiceUser,
		MQTTPassword: app.Secret(e.ServicePassword), SigningKeys: e.Path(folder.SigningFile),
		TokenKeys: e.Path(folder.TokenKeysFile), TokenIssuer: folder.TokenIssuer, TokenAudience: folder.TokenAudience,
		StripeKey: app.Secret(e.PaymentsKey), StripeURL: s.processor.URL(),
		StripeWebhookSecret: app.Secret(e.WebhookSecret), AgencySecretsKey: app.Secret(e.AgencySecrets),
		ClientRate: e.ClientRate, CardRate: e.CardRate, VehicleRate: e.VehicleRate, RefreshRate: e.RefreshRate,
		AdminRate: e.AdminRate, AdminStreams: e.Streams, MapStyle: e.MapStyle, CORSOrigins: e.CORSOrigins, StateInterval: 2 * time.Second,
		TelemetryRetention: demoRetention, GeocoderURL: e.GeocoderURL, GeocoderContact: e.Contact, Docs: true,
		Profiles: true, Budget: telematics.DefaultBudget, LogLevel: e.LogLevel, LogFormat: "text",
		AllowUnsafePostgres: true, // the Postgres in the folder runs without fsync
	}
}
