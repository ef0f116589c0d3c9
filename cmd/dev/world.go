package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/cmd/internal/app"
	"motorpool/mosquitto"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/simulator/sandbox"
	"motorpool/store"
	"motorpool/telematics"
)

// world is everything that runs.
type world struct {
	flags
	fleet   fleet
	log     *slog.Logger
	out     io.Writer
	secrets secrets
	started time.Time
}

// servers are what the service stands on.
type servers struct {
	mqtt        *devstack.MQTT
	redis       *devstack.Miniredis
	processor   *sandbox.Server
	databaseURL string
}

// run builds the world, lets it live until the context ends, and takes it down in reverse.
func (w *world) run(ctx context.Context) (err error) {
	w.started = time.Now()
	var undo []func() error
	defer func() {
		for i := len(undo) - 1; i >= 0; i-- {
			if failure := undo[i](); failure != nil {
				w.log.Error("not taken down", "err", failure)
				err = errors.Join(err, failure)
			}
		}
	}()

	if err := os.MkdirAll(w.Dir, 0o711); err != nil { // passable, so that Postgres as another user keeps its data inside
		return fmt.Errorf("--dir: %w", err)
	}
	unlock, err := devstack.LockFolder(w.Dir)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("--dir: another world runs in %s; stop it, or name another folder", w.Dir)
	}
	if err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	undo = append(undo, func() error { unlock(); return nil })
	if err := removeFiles(w.Dir); err != nil { // of a world that was killed
		return err
	}
	undo = append(undo, func() error { return removeFiles(w.Dir) })
	listeners, err := w.listen()
	if err != nil {
		return err
	}
	undo = append(undo, func() error { return closeListeners(listeners) })
	s, err := w.startServers(ctx, &undo)
	if err != nil {
		return err
	}
	postgres, err := store.New(store.Config{URL: s.databaseURL})
	if err != nil {
		return err
	}
	undo = append(undo, postgres.Close)
	if err := w.furnish(ctx, postgres); err != nil {
		return err
	}
	key, err := w.agencyKey(ctx, postgres)
	if err != nil {
		return err
	}
	config := w.config(s)
	config.DocsScript = docsScript(key)
	if err := config.Check(); err != nil {
		return err
	}

	// The cars and the servers outlive the service, so that its last calls end well.
	below, stopBelow := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBelow()
	var cars errgroup.Group
	undo = append(undo, func() error { stopBelow(); return cars.Wait() })

	service, ctx := errgroup.WithContext(ctx)
	service.Go(func() error { return app.Serve(ctx, config, listeners, w.log) })
	service.Go(func() error {
		here, err := w.place(s, listeners)
		if err != nil {
			return err
		}
		if err := here.await(ctx, "the service is ready", here.serviceReady); err != nil {
			return err
		}
		s.processor.SetWebhook(here.base + "/webhooks/stripe")
		if err := w.rent(ctx, &here, postgres, key, s.processor.URL()); err != nil {
			return err
		}
		// Only now: what a car reports before the service listens is lost.
		demo := w.demo(s.mqtt.UnitsURL())
		cars.Go(func() error { return demo.Run(below) })
		cars.Go(func() error { return w.provision(below, demo) })
		if err := here.await(ctx, "the cars report", func(ctx context.Context) bool { return reporting(ctx, postgres, w.prompt()) }); err != nil {
			return err
		}
		return w.announce(here)
	})
	return service.Wait()
}

func (w *world) listen() (app.Listeners, error) {
	public, err := open(w.log, "http", w.HTTP, defaultHTTP, listenTCP)
	if err != nil {
		return app.Listeners{}, err
	}
	internal, err := open(w.log, "internal", w.Internal, defaultInternal, listenTCP)
	if err != nil {
		return app.Listeners{}, errors.Join(err, public.Close())
	}
	return app.Listeners{Public: public, Internal: internal}, nil
}

// closeListeners closes what the service has not closed already.
func closeListeners(l app.Listeners) error {
	for _, listener := range []net.Listener{l.Public, l.Internal} {
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
	}
	return nil
}

func (w *world) startServers(ctx context.Context, undo *[]func() error) (servers, error) {
	var s servers
	var err error
	if w.secrets, err = openSecrets(w.Dir); err != nil {
		return s, err
	}
	if s.redis, err = devstack.StartMiniredis(freePort); err != nil {
		return s, err
	}
	*undo = append(*undo, s.redis.Close)
	if s.processor, err = w.startProcessor(); err != nil {
		return s, err
	}
	*undo = append(*undo, s.processor.Close)
	if s.mqtt, err = w.startMQTT(); err != nil {
		return s, err
	}
	*undo = append(*undo, s.mqtt.Close)
	if s.databaseURL, err = w.startPostgres(ctx, undo); err != nil {
		return s, err
	}
	return s, nil
}

// startProcessor starts the payment processor's stand-in, which remembers cards and payments between runs.
func (w *world) startProcessor() (*sandbox.Server, error) {
	return sandbox.Start(sandbox.Config{
		Addr: freePort, File: filepath.Join(w.Dir, "payments.json"),
		Key: w.secrets.payments, WebhookSecret: w.secrets.webhooks, Logger: w.log,
	})
}

// startPostgres returns the address of the Postgres that was asked for, else of one
// that keeps its data in the folder.
func (w *world) startPostgres(ctx context.Context, undo *[]func() error) (string, error) {
	if w.DatabaseURL != "" {
		w.log.Info("using a Postgres of yours", "named_by", "--database-url or DATABASE_URL")
		return string(w.DatabaseURL), nil
	}
	postgres, err := devstack.StartPostgres(ctx, devstack.PostgresConfig{Dir: filepath.Join(w.Dir, "postgres"), Logger: w.log})
	if err != nil {
		return "", err
	}
	*undo = append(*undo, postgres.Close)
	return postgres.URL(), nil
}

func (w *world) startMQTT() (*devstack.MQTT, error) {
	return open(w.log, "mqtt", w.MQTT, defaultMQTT, func(units string) (*devstack.MQTT, error) {
		return open(w.log, "mqtt-service", w.MQTTService, defaultMQTTService, func(service string) (*devstack.MQTT, error) {
			return devstack.StartMQTT(devstack.MQTTConfig{
				UnitsAddr: units, ServiceAddr: service,
				UnitPassword:    w.fleet.passwords(w.secrets.units),
				ServicePassword: w.secrets.service, Logger: w.log,
			})
		})
	})
}

// furnish puts the demo fleet on record.
func (w *world) furnish(ctx context.Context, postgres *store.Postgres) error {
	if _, err := postgres.Migrate(ctx); err != nil {
		return err
	}
	if _, err := postgres.Import(ctx, w.fleet.record); err != nil {
		return err
	}
	// The MQTT broker of this world remembers nothing of the last one.
	if err := postgres.ForgetContacts(ctx); err != nil {
		return err
	}
	_, err := postgres.Observe(ctx, w.fleet.past())
	return err
}

func (w *world) config(s servers) app.Config {
	return app.Config{
		HTTP: defaultHTTP, Internal: defaultInternal, // opened already
		DatabaseURL: app.Secret(s.databaseURL), DatabaseConns: 20,
		RedisURL: app.Secret(s.redis.URL()),
		MQTTURL:  s.mqtt.ServiceURL(), MQTTUsername: mosquitto.ServiceUser, MQTTPassword: app.Secret(w.secrets.service),
		SigningKeys: filepath.Join(w.Dir, signingFile), TokenKeys: filepath.Join(w.Dir, tokenKeysFile),
		TokenIssuer: tokenIssuer, TokenAudience: tokenAudience,
		StripeKey: app.Secret(w.secrets.payments), StripeURL: s.processor.URL(), StripeWebhookSecret: app.Secret(w.secrets.webhooks),
		AgencySecretsKey: app.Secret(w.secrets.agencies), ClientRate: w.ClientRate, CardRate: w.CardRate,
		VehicleRate: w.VehicleRate, RefreshRate: w.RefreshRate, AdminRate: w.AdminRate,
		AdminStreams: w.Streams, GeocoderURL: w.GeocoderURL, GeocoderContact: w.Contact,
		Docs: true, Profiles: true, Budget: telematics.DefaultBudget, LogLevel: w.LogLevel, LogFormat: "text",
		AllowUnsafePostgres: true, // the one in the folder waits for no disk
	}
}

func (w *world) demo(unitsURL string) *simulator.Fleet {
	latency := simulator.Fast
	if w.Latency == "cellular" {
		latency = simulator.Cellular
	}
	return simulator.NewFleet(simulator.FleetConfig{
		Broker: unitsURL, Keyring: w.secrets.signing.Keyring(), Logger: w.log,
	}, w.fleet.cars(w.secrets.units, latency)...)
}
