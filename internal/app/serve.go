// Package app assembles the service from its parts. Its settings are in config.go, its wiring is
// one straight function in serve.go.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"motorpool/broker"
	"motorpool/broker/besteffort/watch"
	"motorpool/broker/link"
	"motorpool/guard"
	"motorpool/httpapi"
	"motorpool/httpapi/auth"
	"motorpool/httpapi/connections"
	"motorpool/httpapi/health"
	"motorpool/httpapi/resource"
	"motorpool/httpapi/stream"
	"motorpool/rental/charging"
	"motorpool/store/activity"
	"motorpool/store/agencykeys"
	"motorpool/store/commands"
	"motorpool/store/events"
	"motorpool/store/history"
	"motorpool/store/pg"
	"motorpool/store/redis"
	"motorpool/store/rentals"
	"motorpool/store/settings"
	"motorpool/store/twins"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/dialects"
)

// answerSlack is how long a call may take in addition to the command's budget.
const answerSlack = 10 * time.Second

// Serve runs the service until the context ends. It continues for Config.Drain, so that load
// balancers take the instance out, and then stops its parts in reverse order: it accepts no new
// calls, settles and answers commands in flight, then closes MQTT, then the stores. An unavailable
// server does not end it: readiness reports what is missing.
func Serve(ctx context.Context, c Config, listeners Listeners, log *slog.Logger) (err error) {
	signing, err := c.signingKeys(log)
	if err != nil {
		return err
	}
	secured, err := c.tls(log)
	if err != nil {
		return err
	}
	registry := c.newRegistry(signing, secured.inUse)
	sealer, err := c.sealer()
	if err != nil {
		return err
	}
	if c.AgencySecretsKey == "" {
		log.Info("client requests are refused, secrets of agency keys cannot be decrypted", "missing", "--agency-secrets-key")
	}
	panics := guard.New(log, registry)
	secured.panics = panics
	cache, err := redis.New(redis.Config{URL: string(c.RedisURL), TLS: secured.redis, Logger: log, Guard: panics})
	if err != nil {
		return err
	}
	defer closeLogged(log, "redis", cache.Close)
	postgres, err := pg.New(pg.Config{
		URL: string(c.DatabaseURL), MaxConns: c.DatabaseConns, Durable: !c.AllowUnsafePostgres, Line: redis.Line{DB: cache}, Logger: log, Guard: panics,
	})
	if err != nil {
		return err
	}
	defer closeLogged(log, "postgres", postgres.Close)

	postgres.Register(registry)
	registry.MustRegister(cache)

	instance := uuid.NewString()
	tracer, flushTraces, err := c.newTracer(instance, log)
	if err != nil {
		return err
	}
	defer flushTraces()

	cars := vehicles.New(postgres)
	recorder := history.NewRecorder(history.Config{DB: postgres, Days: c.TelemetryRetention, Logger: log, Metrics: registry, Guard: panics})
	reported := twins.New(twins.Config{
		DB: postgres, Vehicles: cars, Redis: cache, StateInterval: c.StateInterval, History: recorder, Logger: log, Metrics: registry, Guard: panics,
	})
	record, auditLog := commands.New(postgres, reported), activity.New(postgres)

	money, err := c.newMoney(postgres, func(ctx context.Context) (bool, error) {
		return cache.TryLease(ctx, "payments", instance, charging.CompareLease)
	}, registry, panics, log)
	if err != nil {
		return err
	}
	defer money.Close()

	mqtt := link.NewShards(link.Config{
		Guard:    panics,
		Username: c.MQTTUsername, Password: string(c.MQTTPassword), TLS: secured.mqtt,
		Group:        func(ctx context.Context) (string, error) { return settings.SharedGroup(ctx, postgres) },
		Installation: func(ctx context.Context) (string, error) { return settings.Installation(ctx, postgres) },
		Units:        cars.Units,
		Holds:        newBrokerGauges(registry, link.ParseShards(c.MQTTURL)).set,
		Logger:       log, AwaitAdmission: true,
	}, link.ParseShards(c.MQTTURL)...)
	var present *presence
	commandBroker := broker.New(broker.Config{
		Vehicles: reported, Commands: record, Halts: commands.HaltStore{DB: postgres}, Clock: postgres, AuditLog: auditLog, Twins: reported, Pending: redis.NewPendingTable(cache),
		Contacts: cars, Events: events.New(cache), UnknownUnits: cars, Health: cars, Unrecorded: record, Bulks: record,
		Publisher: mqtt, Key: signing, Now: now, Hanging: postgres.Hanging, Lives: func(id string) bool { return present.lives(id) }, Logger: log, Metrics: registry, Guard: panics, Tracer: tracer, Instance: instance,
	})
	c.registerInstance(registry, commandBroker.Instance())
	present = newPresence(postgres, cars, cache, mqtt, signing, commandBroker.Instance(), panics, log)
	registry.MustRegister(present)
	database := &databaseWatch{postgres: postgres, changed: func() { commandBroker.ForgetSettled(); money.reconciler.CommitsMayBeLost() }, gauges: newDatabaseGauges(registry), log: log, history: c.TelemetryRetention > 0}
	agencyKeys := agencykeys.New(postgres, sealer)
	tokenKeys := auth.NewKeys(auth.KeysConfig{Source: c.TokenKeys, Log: log})
	feed := stream.New(stream.Config{Log: events.New(cache), Body: resource.NewEvent, PerActor: cmp.Or(c.AdminStreams, -1), Guard: panics, Logger: log, Metrics: registry})
	proxies, err := c.trustedProxies()
	if err != nil {
		return err
	}
	watches := watch.New(watch.Config{
		Dialects: dialects.Spoken, Publish: mqtt.Publish, Watcher: "motorpool-" + commandBroker.Instance(), Booked: rentals.Bookings{DB: postgres}.Running,
		TryLease: func(ctx context.Context) (bool, error) {
			return cache.TryLease(ctx, "watch", commandBroker.Instance(), watch.LeaseFor)
		},
		Logger: log, Guard: panics,
	})
	tokens := c.tokens(tokenKeys, now)
	limits := redis.NewLimits(cache)
	addresses, err := c.newAddresses(postgres, limits, registry, panics, log)
	if err != nil {
		return err
	}
	signIn, err := c.signIn(cache, limits, postgres, tokens, now, registry, log)
	if err != nil {
		return err
	}
	pages, err := c.console()
	if err != nil {
		return err
	}
	public := httpapi.New(httpapi.Config{
		Controller: commandBroker, Fleet: fleet{cars, record, auditLog, reported}, Bulks: record, History: auditLog, Refusals: commandBroker, Units: cars, SigningKey: signing.active, Agencies: cars, Editor: cars, Budget: c.Budget, Log: log, Now: now, Tracer: tracer,
		Places: addresses, Feed: feed, Watches: watches, Telemetry: history.Reader{DB: postgres, Days: c.TelemetryRetention}, Limiter: limits,
		Rates:    httpapi.Rates{Vehicle: c.VehicleRate, Refresh: c.RefreshRate, Admin: c.AdminRate, Bulk: c.BulkRate, Client: c.ClientRate, Card: c.CardRate},
		Bookings: rentals.Bookings{DB: postgres}, Wallet: money.wallet, Payments: money, Webhooks: money, LiveMoney: money.Live(), Nudge: money.collector.Nudge, CompareClock: commandBroker.CompareClock,
		AgencyKeys: agencyKeys, AgencyKeyRegistry: keyRegistry{agencyKeys}, Halts: waitingHalts{commands.HaltStore{DB: postgres}}, Signatures: agencykeys.NewSignatures(postgres, max(minSignatures, signatureMinutes*c.ClientRate)),
		Tokens: tokens, SignIn: signIn, Console: pages, CORSOrigins: list(c.CORSOrigins), TrustedProxies: proxies,
		HideDocs: !c.Docs, DocsScript: c.DocsScript, SignInHint: c.SignInHint,
	})
	maxConnections, err := c.maxConnections()
	if err != nil {
		return err
	}

	// An unsuitable database ends the service. The parts that calls use end after the calls.
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	defer log.Info("stopped")
	whileRight := func(part func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error { return commandBroker.WhileClockRight(ctx, part) }
	}
	withSchema := func(part func(context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			if !awaitSchema(ctx, postgres, log) {
				return nil
			}
			return part(ctx)
		}
	}
	// The recorder ends after the parts that receive and store the last reports.
	keep, stopKeeping := background(ctx, panics)
	defer join(&err, stopKeeping)
	keep("record telemetry", withSchema(whileRight(recorder.Run)))
	run, stop := background(ctx, panics)
	defer join(&err, stop)
	run("watch database", func(ctx context.Context) error {
		err := database.run(ctx)
		if err != nil {
			refuse(err)
		}
		return err
	})
	run("watch primaries", postgres.Watch)
	run("migrate", func(ctx context.Context) error { return migrate(ctx, postgres, c.Migrate, log) })
	run("run broker", commandBroker.Run)
	run("forget", whileRight(func(ctx context.Context) error { return forget(ctx, postgres, log) }))
	run("add partitions of the audit log", withSchema(whileRight(func(ctx context.Context) error { return activity.KeepPartitions(ctx, postgres, log) })))
	moved := newMovedGauge(registry)
	run("move settled commands", whileRight(func(ctx context.Context) error { return moveSettled(ctx, postgres, record, moved, log) }))
	run("be present", withSchema(present.Run))
	run("keep addresses", addresses.run)
	run("read token keys", tokenKeys.Run)
	run("follow events", feed.Run)
	run("watch signing keys", signing.Run)
	run("watch certificates", secured.watch)
	run("move money", withSchema(whileRight(money.run)))
	// Receives from vehicles; ends before what handles the messages.
	receive, stopReceiving := background(ctx, panics)
	defer join(&err, stopReceiving)
	receive("receive from vehicles", withSchema(whileRight(func(ctx context.Context) error { return mqtt.Run(ctx, commandBroker) })))
	receive("renew watches", withSchema(whileRight(watches.Run)))
	defer join(&err, func() error { return drain(commandBroker) })

	ready := health.New(panics, slices.Concat([]health.Check{
		{Name: "postgres", Ready: withSettings(postgresReady(postgres, commandBroker, present.Writes), "sslrootcert of --database-url", "sslcert of --database-url")},
		{Name: "redis", Ready: withSettings(cache.Ready, "--redis-ca", "--redis-cert")},
		{Name: "mqtt", Ready: mqttReady(mqtt.AllReady)},
		{Name: "tokens", Ready: tokenKeys.Ready},
		{Name: "signing_key", Ready: present.keyReady},
	}, shardChecks(mqtt))...)
	registry.MustRegister(ready)
	stopping := newStopping(c.Drain, panics, log)
	server := httpapi.NewServer("", stopping.closeConnections(public))
	server.RegisterOnShutdown(feed.End) // else no stream ends
	servers := []httpServer{
		{server, secured.listener(connections.Bound(listeners.Public, maxConnections, registry, log))},
		{httpapi.NewServer("", c.internalHandler(ready, registry, signing, log)), listeners.Internal},
	}
	healthAddress := "none"
	if listeners.Health != nil {
		healthAddress = listeners.Health.Addr().String()
		servers = append(servers, httpServer{httpapi.NewServer("", ready.Public()), connections.Bound(listeners.Health, healthConnections, nil, log)})
	}
	log.Info("serving", "http", listeners.Public.Addr().String(), "internal", listeners.Internal.Addr().String(), "health", healthAddress, "instance", commandBroker.Instance())
	serving, stopServing := stopping.after(ctx, ready)
	defer stopServing()
	return serveHTTP(serving, panics, log, telematics.MaxBudget+answerSlack, servers...)
}

func mqttReady(ready func() error) func(context.Context) error {
	return withSettings(func(context.Context) error { return ready() }, "--mqtt-ca", "--mqtt-cert")
}

// shardChecks report which of several shards are connected. The instance works without some.
func shardChecks(mqtt *link.Shards) []health.Check {
	links := mqtt.Links()
	if len(links) == 1 {
		return nil
	}
	checks := make([]health.Check, len(links))
	for i, l := range links {
		checks[i] = health.Check{Name: fmt.Sprintf("mqtt_shard_%d", i+1), Optional: true, Ready: mqttReady(l.AllReady)}
	}
	return checks
}

// background returns a function that starts parts of the service, and one that stops them and waits
// for their end. They outlive ctx. A part that panics runs again.
func background(ctx context.Context, panics *guard.Guard) (run func(doing string, part func(context.Context) error), stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var parts errgroup.Group
	run = func(doing string, part func(context.Context) error) {
		parts.Go(func() error { return panics.Keep(ctx, doing, part) })
	}
	stop = func() error {
		cancel()
		return parts.Wait()
	}
	return run, stop
}

// join calls end and adds its error to err.
func join(err *error, end func() error) { *err = errors.Join(*err, end()) }

// All signatures of a client within ten minutes may be fresh. Its rate limit bounds their number
// while Redis is available; these bound it always.
const (
	minSignatures    = 2000
	signatureMinutes = 12
)

// fleet reads vehicles with their present reported state, and everything else from Postgres.
type fleet struct {
	*vehicles.Fleet
	*commands.Store
	*activity.Log
	twins *twins.Twins
}

// Twin returns a vehicle with its present reported state. No later read returns less.
func (f fleet) Twin(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	return f.twins.DurableTwin(ctx, id)
}

// Record returns a vehicle without its reported state.
func (f fleet) Record(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	return f.twins.Record(ctx, id)
}

// Belongs reports whether a vehicle is an agency's, by a record that may be older than an order:
// see twins.Twins.
func (f fleet) Belongs(ctx context.Context, id telematics.VehicleID, agency telematics.AgencyID) (bool, error) {
	return f.twins.Belongs(ctx, id, agency)
}

// Twins returns vehicles with their present reported states.
func (f fleet) Twins(ctx context.Context, q telematics.VehicleQuery) ([]telematics.Twin, error) {
	return f.twins.Twins(ctx, q)
}

// drain waits for the commands in flight for which no call waits.
func drain(b *broker.Broker) error {
	ctx, cancel := context.WithTimeout(context.Background(), telematics.MaxBudget+answerSlack)
	defer cancel()
	return b.Drain(ctx)
}

func closeLogged(log *slog.Logger, what string, closer func() error) {
	if err := closer(); err != nil {
		log.Warn("close failed", "what", what, "err", err)
	}
}
