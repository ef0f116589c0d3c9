package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/broker"
	"motorpool/broker/link"
	"motorpool/httpapi"
	"motorpool/httpapi/auth"
	"motorpool/httpapi/connections"
	"motorpool/httpapi/health"
	"motorpool/httpapi/stream"
	"motorpool/store"
	"motorpool/store/pg"
	"motorpool/store/redis"
	"motorpool/telematics"
)

// answerSlack is what a call may need in addition to the command's budget.
const answerSlack = 10 * time.Second

// Serve runs the service until the context ends, serves on until load balancers have
// noticed (Config.Drain), and then stops it in order: no new calls, commands in
// flight are settled and answered, then MQTT, then the stores. An unavailable server does not stop it: readiness says what is missing.
func Serve(ctx context.Context, c Config, listeners Listeners, log *slog.Logger) error {
	signing, err := c.signingKeys(log)
	if err != nil {
		return err
	}
	registry := newRegistry(signing)
	trusted, err := c.tls()
	if err != nil {
		return err
	}
	sealer, err := c.sealer()
	if err != nil {
		return err
	}
	if c.AgencySecretsKey == "" {
		log.Info("no client is let in: secrets of agency keys cannot be opened", "missing", "--agency-secrets-key")
	}
	postgres, err := store.New(pg.Config{URL: string(c.DatabaseURL), MaxConns: c.DatabaseConns, Durable: !c.AllowUnsafePostgres})
	if err != nil {
		return err
	}
	defer closeLogged(log, "postgres", postgres.Close)
	cache, err := redis.New(redis.Config{URL: string(c.RedisURL), Logger: log})
	if err != nil {
		return err
	}
	defer closeLogged(log, "redis", cache.Close)

	twins := store.NewTwins(store.TwinsConfig{Postgres: postgres, Redis: cache, Logger: log})
	addresses, err := c.newAddressing(postgres, registry, log)
	if err != nil {
		return err
	}

	money, err := c.newMoney(postgres, registry, log)
	if err != nil {
		return err
	}
	defer money.Close()

	mqtt := link.New(link.Config{
		URL: c.MQTTURL, Username: c.MQTTUsername, Password: string(c.MQTTPassword), TLS: trusted,
		Group: postgres.SharedGroup, Logger: log,
	})
	carrier := broker.New(broker.Config{
		Vehicles: twins, Commands: store.NewCommands(postgres, twins), Halts: postgres, Clock: postgres, History: postgres, Twins: twins, Pending: redis.NewPendingTable(cache),
		Contacts: postgres, Events: store.NewEvents(cache), UnknownUnits: postgres, Unrecorded: postgres,
		Air: mqtt, Key: signing, Now: now, Logger: log, Metrics: registry,
	})
	c.registerInstance(registry, carrier.Instance)
	database := &databaseWatch{postgres: postgres, changed: carrier.Recheck, asynchronous: newStandbysGauge(registry), log: log}
	agencyKeys := postgres.AgencyKeys(sealer)
	tokenKeys := auth.NewKeys(auth.KeysConfig{Source: c.TokenKeys, Log: log})
	feed := stream.New(stream.Config{Log: store.NewEvents(cache), Body: httpapi.EventBody, PerActor: cmp.Or(c.AdminStreams, -1), Logger: log, Metrics: registry})
	public := httpapi.New(httpapi.Config{
		Controller: carrier, Fleet: fleet{postgres, twins}, Bulks: postgres, History: postgres, Refusals: carrier, Units: postgres, Budget: c.Budget, Log: log, Now: now,
		Places: addresses.book, Feed: feed, Limiter: redis.NewLimits(cache),
		Rates:    httpapi.Rates{Vehicle: c.VehicleRate, Refresh: c.RefreshRate, Admin: c.AdminRate, Bulk: c.BulkRate, Client: c.ClientRate, Card: c.CardRate},
		Bookings: postgres, Wallet: money.wallet, Payments: money, Webhooks: money, LiveMoney: money.live, Nudge: money.collector.Nudge,
		AgencyKeys: agencyKeys, AgencyKeyRegistry: keyRegistry{agencyKeys}, Halts: killSwitch{postgres}, Signatures: postgres.Signatures(max(minSignatures, signatureMinutes*c.ClientRate)),
		Tokens: c.tokens(tokenKeys, now), CORSOrigins: list(c.CORSOrigins),
		HideDocs: !c.Docs, DocsScript: c.DocsScript,
	})
	stopping := newStopping(c.Drain, log)
	server := httpapi.NewServer("", stopping.closeConnections(public))
	server.RegisterOnShutdown(feed.End) // no stream ends by itself
	maxConnections, err := c.maxConnections()
	if err != nil {
		return err
	}
	bounded := connections.Bound(listeners.Public, maxConnections, registry, log)
	ready := health.New(
		health.Check{Name: "postgres", Ready: postgresReady(postgres, carrier)},
		health.Check{Name: "redis", Ready: cache.Ready},
		health.Check{Name: "mqtt", Ready: func(context.Context) error { return mqtt.AllReady() }},
		health.Check{Name: "tokens", Ready: tokenKeys.Ready})
	internal := c.internalHandler(ready, serveMetrics(registry, log), signing)

	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	// What serves the calls outlives them.
	below, stopBelow := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBelow()
	listening, stopListening := context.WithCancel(below)
	defer stopListening()
	var ears, parts errgroup.Group
	ears.Go(func() error {
		if !awaitSchema(listening, postgres, log) {
			return nil
		}
		return carrier.WhileClockRight(listening, func(ctx context.Context) error { return mqtt.Run(ctx, carrier) })
	})
	parts.Go(func() error {
		err := database.run(below)
		if err != nil {
			refuse(err)
		}
		return err
	})
	parts.Go(func() error { return prepare(below, postgres, c.Migrate, log) })
	parts.Go(func() error { return carrier.Run(below) })
	parts.Go(func() error {
		return carrier.WhileClockRight(below, func(ctx context.Context) error { return forget(ctx, postgres, log) })
	})
	parts.Go(func() error { return addresses.run(below) })
	parts.Go(func() error { return tokenKeys.Run(below) })
	parts.Go(func() error { return feed.Run(below) })
	parts.Go(func() error { return signing.Run(below) })
	parts.Go(func() error {
		if !awaitSchema(below, postgres, log) {
			return nil
		}
		return carrier.WhileClockRight(below, money.run)
	})

	faces := []face{{server, bounded}, {httpapi.NewServer("", internal), listeners.Internal}}
	if listeners.Health != nil {
		faces = append(faces, face{httpapi.NewServer("", ready.Public()), connections.Bound(listeners.Health, healthConnections, nil, log)})
	}
	health := "none"
	if listeners.Health != nil {
		health = listeners.Health.Addr().String()
	}
	log.Info("serving", "http", listeners.Public.Addr().String(), "internal", listeners.Internal.Addr().String(), "health", health, "instance", carrier.Instance)
	serving, stopServing := stopping.after(ctx, ready)
	defer stopServing()
	err = serveHTTP(serving, log, telematics.MaxBudget+answerSlack, faces...)
	err = errors.Join(err, drain(carrier))
	stopListening() // first: what was taken from the MQTT broker is handled below
	err = errors.Join(err, ears.Wait())
	stopBelow()
	err = errors.Join(err, parts.Wait())
	log.Info("stopped")
	return err
}

// A client's signatures of ten minutes can be fresh together. Its limit of requests bounds them while Redis counts; these bound them always.
const (
	minSignatures    = 2000
	signatureMinutes = 12
)

// fleet reads vehicles as they are now, and all else from the record.
type fleet struct {
	*store.Postgres
	twins *store.Twins
}

// Twin returns a vehicle with what is known of it now, as a read returns it.
func (f fleet) Twin(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	return f.twins.Told(ctx, id)
}

// Belongs reports whether a vehicle is an agency's, by a record that may be older than an order: see store.Twins.
func (f fleet) Belongs(ctx context.Context, id telematics.VehicleID, agency telematics.AgencyID) (bool, error) {
	return f.twins.Belongs(ctx, id, agency)
}

// Twins returns vehicles with what is known of them now.
func (f fleet) Twins(ctx context.Context, q telematics.VehicleQuery) ([]telematics.Twin, error) {
	return f.twins.Twins(ctx, q)
}

// drain waits for the commands in flight for which no call waits.
func drain(b *broker.Broker) error {
	ctx, cancel := context.WithTimeout(context.Background(), telematics.MaxBudget+answerSlack)
	defer cancel()
	return b.Drain(ctx)
}

// face is a server and where it listens.
type face struct {
	*http.Server
	listener net.Listener
}

// serveHTTP serves until the context ends, and then waits for open calls.
func serveHTTP(ctx context.Context, log *slog.Logger, patience time.Duration, faces ...face) error {
	serving, ctx := errgroup.WithContext(ctx)
	for _, f := range faces {
		f.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
		serving.Go(func() error {
			if err := f.Serve(f.listener); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve http: %w", err)
			}
			return nil
		})
		serving.Go(func() error {
			<-ctx.Done()
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
			defer cancel()
			if err := f.Shutdown(ending); err != nil {
				return fmt.Errorf("calls cut off at the end: %w", err)
			}
			return nil
		})
	}
	return serving.Wait()
}

// schemaEvery is between two looks whether the schema is there.
const schemaEvery = 250 * time.Millisecond

// postgresReady also compares the clocks [LAW-11].
func postgresReady(p *store.Postgres, carrier *broker.Broker) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := carrier.CompareClock(ctx); err != nil {
			return err
		}
		return schemaReady(ctx, p)
	}
}

func schemaReady(ctx context.Context, p *store.Postgres) error {
	if err := p.Suitable(ctx); err != nil {
		return err
	}
	has, needs, err := p.Version(ctx)
	if err == nil && has < needs {
		err = fmt.Errorf("schema has version %d, version %d is needed (motorpool migrate)", has, needs)
	}
	if err != nil {
		return err
	}
	return p.Allowed(ctx)
}

// awaitSchema waits until what arrives can be written down, and reports false where the
// context ended before. Answers and reports are shared out among all instances: one that
// cannot write them takes them from those that can.
func awaitSchema(ctx context.Context, p *store.Postgres, log *slog.Logger) bool {
	for said := false; ; said = true {
		err := schemaReady(ctx, p)
		if err == nil {
			return true
		}
		if !said && ctx.Err() == nil {
			log.Warn("answers and reports of vehicles not received yet", "err", err)
		}
		select {
		case <-time.After(schemaEvery):
		case <-ctx.Done():
			return false
		}
	}
}

// prepare brings the schema up to date, as soon as Postgres lets it.
func prepare(ctx context.Context, p *store.Postgres, migrate bool, log *slog.Logger) error {
	if !migrate {
		return nil
	}
	for {
		version, err := p.Migrate(ctx)
		if err == nil {
			log.Info("schema is up to date", "version", version)
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		log.Warn("schema not brought up to date", "err", err, "again_in", "2s")
		select {
		case <-time.After(2 * time.Second):
		case <-ctx.Done():
			return nil
		}
	}
}

func (c Config) internalHandler(ready *health.Readiness, metrics http.Handler, signing *signingKeys) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", ready.Internal())
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /units.jwks", signing.serveUnits)
	if c.Profiles {
		serveProfiles(mux)
	}
	return mux
}

func closeLogged(log *slog.Logger, what string, closer func() error) {
	if err := closer(); err != nil {
		log.Warn("not closed", "what", what, "err", err)
	}
}
