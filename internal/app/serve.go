// Package app assembles the service from its parts. Its settings are in config.go, its wiring is
// in serve.go, step by step.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"motorpool/alerts/alertmanager"
	"motorpool/broker"
	"motorpool/broker/besteffort/watch"
	"motorpool/broker/link"
	"motorpool/guard"
	"motorpool/httpapi"
	"motorpool/httpapi/auth"
	"motorpool/httpapi/connections"
	"motorpool/httpapi/health"
	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/httpapi/stream"
	"motorpool/rental"
	"motorpool/rental/charging"
	"motorpool/rental/transitions"
	"motorpool/store/activity"
	"motorpool/store/agencykeys"
	"motorpool/store/alerts"
	"motorpool/store/areas"
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
	"motorpool/tracing"
)

// answerSlack is how long a call may take in addition to the command's budget.
const answerSlack = 10 * time.Second

// Serve runs the service until the context ends. It continues for Config.Drain, so that load
// balancers take the instance out, and then stops its parts in reverse order: it accepts no new
// calls, settles and answers commands in flight, then closes MQTT, then the stores. An unavailable
// server does not end it: readiness reports what is missing. It returns what is wrong with the
// configuration or the database.
func Serve(ctx context.Context, c Config, listeners Listeners, log *slog.Logger) error {
	s := &service{config: c, log: log, instance: uuid.NewString(), migrated: make(chan struct{})}
	defer s.close()
	for _, step := range []func() error{s.readKeys, s.openStores, s.assembleRecords, s.assembleBroker, s.assembleAPI} {
		if err := step(); err != nil {
			return err
		}
	}
	return s.serve(ctx, listeners)
}

// service has the parts of an instance, in the order of their assembly.
type service struct {
	config   Config
	log      *slog.Logger
	instance string
	closers  []func() // from the last one on

	signing  *signingKeys
	secured  secured
	sealer   *agencykeys.Sealer
	registry *prometheus.Registry
	panics   *guard.Guard
	tracer   *tracing.Tracer

	cache    *redis.DB
	postgres *pg.DB
	migrated chan struct{} // closed once the database has the schema

	cars     *vehicles.Fleet
	recorder *history.Recorder
	reported *twins.Twins
	record   *commands.Store
	auditLog *activity.Log
	money    *money

	mqtt     *link.Shards
	broker   *broker.Broker
	present  *presence
	database *databaseWatch
	watches  *watch.Watches

	transitions *transitions.Runner
	places      *areas.Areas
	alerts      *alerts.Store
	alertSender *alertmanager.Sender // nil: no Alertmanager is configured

	tokenKeys      *auth.Keys
	feed           *stream.Feed
	addresses      *addresses
	public         http.Handler
	maxConnections int
}

func (s *service) close() {
	for _, closer := range slices.Backward(s.closers) {
		closer()
	}
}

// onClose has close call a function, and log its error.
func (s *service) onClose(what string, closer func() error) {
	s.closers = append(s.closers, func() {
		if err := closer(); err != nil {
			s.log.Warn("close failed", "what", what, "err", err)
		}
	})
}

func (s *service) readKeys() (err error) {
	if s.signing, err = s.config.signingKeys(s.log); err != nil {
		return err
	}
	if s.secured, err = s.config.tls(s.log); err != nil {
		return err
	}
	s.registry = s.config.newRegistry(s.signing, s.secured.inUse)
	if s.sealer, err = s.config.sealer(); err != nil {
		return err
	}
	if s.config.AgencySecretsKey == "" {
		s.log.Info("client requests are refused, secrets of agency keys cannot be decrypted", "missing", "--agency-secrets-key")
	}
	s.panics = guard.New(s.log, s.registry)
	s.secured.panics = s.panics
	return nil
}

func (s *service) openStores() (err error) {
	s.cache, err = redis.New(redis.Config{URL: string(s.config.RedisURL), TLS: s.secured.redis, Logger: s.log, Guard: s.panics})
	if err != nil {
		return err
	}
	s.onClose("redis", s.cache.Close)
	s.postgres, err = pg.New(pg.Config{
		URL: string(s.config.DatabaseURL), MaxConns: s.config.DatabaseConns, Durable: !s.config.AllowUnsafePostgres,
		Line: redis.Line{DB: s.cache}, Logger: s.log, Guard: s.panics,
	})
	if err != nil {
		return err
	}
	s.onClose("postgres", s.postgres.Close)
	s.postgres.Register(s.registry)
	s.registry.MustRegister(s.cache)
	tracer, flushTraces, err := s.config.newTracer(s.instance, s.log)
	if err != nil {
		return err
	}
	s.tracer = tracer
	s.closers = append(s.closers, flushTraces)
	return nil
}

func (s *service) assembleRecords() (err error) {
	s.cars = vehicles.New(s.postgres)
	s.recorder = history.NewRecorder(history.Config{
		DB: s.postgres, Days: s.config.TelemetryRetention, Logger: s.log, Metrics: s.registry, Guard: s.panics,
	})
	s.reported = twins.New(twins.Config{
		DB: s.postgres, Vehicles: s.cars, Redis: s.cache, StateInterval: s.config.StateInterval, History: s.recorder,
		Logger: s.log, Metrics: s.registry, Guard: s.panics,
	})
	s.record, s.auditLog = commands.New(s.postgres, s.reported), activity.New(s.postgres)
	s.money, err = s.config.newMoney(s.postgres, func(ctx context.Context) (bool, error) {
		return s.cache.TryLease(ctx, "payments", s.instance, charging.CompareLease)
	}, func(b rental.BookingID) { s.transitions.Settled(b) }, s.registry, s.panics, s.log)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, s.money.Close)
	return nil
}

func (s *service) assembleBroker() (err error) {
	shards := link.ParseShards(s.config.MQTTURL)
	s.mqtt = link.NewShards(link.Config{
		Guard:    s.panics,
		Username: s.config.MQTTUsername, Password: string(s.config.MQTTPassword), TLS: s.secured.mqtt,
		Group:        func(ctx context.Context) (string, error) { return settings.SharedGroup(ctx, s.postgres) },
		Installation: func(ctx context.Context) (string, error) { return settings.Installation(ctx, s.postgres) },
		Units:        s.cars.Units,
		Holds:        newBrokerGauges(s.registry, shards).set,
		Logger:       s.log, AwaitAdmission: true,
	}, shards...)
	s.places = areas.New(s.postgres)
	s.alerts = s.newAlerts()
	if s.alertSender, err = s.newAlertSender(); err != nil {
		return err
	}
	s.broker = broker.New(broker.Config{
		Vehicles: s.reported, Commands: s.record, Halts: commands.HaltStore{DB: s.postgres}, Clock: s.postgres,
		AuditLog: s.auditLog, Twins: alarmingTwins{s.reported, s.alerts}, Pending: redis.NewPendingTable(s.cache), Contacts: s.cars,
		Events: events.New(s.cache), UnknownUnits: s.cars, Health: s.cars, Unrecorded: s.record, Bulks: s.record,
		Publisher: s.mqtt, Key: s.signing, Now: now, Hanging: s.postgres.Hanging,
		Lives:  func(id string) bool { return s.present.lives(id) },
		Logger: s.log, Metrics: s.registry, Guard: s.panics, Tracer: s.tracer, Instance: s.instance,
	})
	s.config.registerInstance(s.registry, s.broker.Instance())
	s.present = newPresence(s.postgres, s.cars, s.cache, s.mqtt, s.signing, s.broker.Instance(), s.panics, s.log)
	s.registry.MustRegister(s.present)
	s.database = &databaseWatch{
		postgres: s.postgres, gauges: newDatabaseGauges(s.registry), log: s.log, history: s.config.TelemetryRetention > 0,
		changed: func() {
			s.broker.ForgetSettled()
			s.money.reconciler.CommitsMayBeLost()
		},
	}
	s.watches = watch.New(watch.Config{
		Dialects: dialects.Spoken, Publish: s.mqtt.Publish, Watcher: "motorpool-" + s.broker.Instance(),
		Booked: rentals.Bookings{DB: s.postgres}.Running,
		TryLease: func(ctx context.Context) (bool, error) {
			return s.cache.TryLease(ctx, "watch", s.broker.Instance(), watch.LeaseFor)
		},
		Logger: s.log, Guard: s.panics,
	})
	s.transitions = s.newTransitions()
	return nil
}

func (s *service) assembleAPI() error {
	s.tokenKeys = auth.NewKeys(auth.KeysConfig{Source: s.config.TokenKeys, Log: s.log})
	s.feed = stream.New(stream.Config{
		Log: events.New(s.cache), Body: resource.NewEvent, PerActor: cmp.Or(s.config.AdminStreams, -1),
		Guard: s.panics, Logger: s.log, Metrics: s.registry,
	})
	proxies, err := s.config.trustedProxies()
	if err != nil {
		return err
	}
	tokens, limits, agencyKeys := s.config.tokens(s.tokenKeys, now), redis.NewLimits(s.cache), agencykeys.New(s.postgres, s.sealer)
	if s.addresses, err = s.config.newAddresses(s.postgres, limits, s.registry, s.panics, s.log); err != nil {
		return err
	}
	signIn, err := s.config.signIn(s.cache, limits, s.postgres, tokens, now, s.registry, s.log)
	if err != nil {
		return err
	}
	pages, err := s.config.console()
	if err != nil {
		return err
	}
	s.public = httpapi.New(httpapi.Config{
		Controller: s.broker, Refusals: s.broker, CompareClock: s.broker.CompareClock,
		SigningKey: s.signing.active, Budget: s.config.Budget,
		Fleet: fleet{s.cars, s.record, s.auditLog, s.reported}, Units: s.cars, Agencies: s.cars, Editor: s.cars,
		Bulks: s.record, History: s.auditLog, Halts: waitingHalts{commands.HaltStore{DB: s.postgres}},
		Places: s.addresses, Feed: s.feed, Watches: s.watches,
		Offers:    rentals.Bookings{DB: s.postgres},
		Telemetry: history.Reader{DB: s.postgres, Days: s.config.TelemetryRetention},
		Bookings:  rentals.Bookings{DB: s.postgres}, Rentals: rentalAPI{s.transitions, rentals.Transitions{DB: s.postgres}},
		Wallet: s.money.wallet, Payments: s.money, Webhooks: s.money,
		LiveMoney: s.money.Live(), Nudge: s.money.collector.Nudge, BookingChanged: s.publishBooking,
		AgencyKeys: agencyKeys, AgencyKeyRegistry: keyRegistry{agencyKeys}, Areas: areaRegistry{s.places}, AreasAt: s.places,
		Alerts:     s.alerts,
		Signatures: agencykeys.NewSignatures(s.postgres, max(minSignatures, signatureMinutes*s.config.ClientRate)),
		Limiter:    limits,
		Rates: request.Rates{
			Vehicle: s.config.VehicleRate, Refresh: s.config.RefreshRate, Admin: s.config.AdminRate, Bulk: s.config.BulkRate,
			Client: s.config.ClientRate, Card: s.config.CardRate,
		},
		Tokens: tokens, SignIn: signIn, SignInHint: s.config.SignInHint,
		Console: pages, CORSOrigins: list(s.config.CORSOrigins), TrustedProxies: proxies,
		HideDocs: !s.config.Docs, DocsScript: s.config.DocsScript,
		Log: s.log, Now: now, Tracer: s.tracer,
	})
	s.maxConnections, err = s.config.maxConnections()
	return err
}

// serve runs the parts. Those that calls use end after the calls.
func (s *service) serve(ctx context.Context, listeners Listeners) (err error) {
	// An unsuitable database ends the service.
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	defer s.log.Info("stopped")
	// The recorder ends after the parts that receive and store the last reports.
	keep, stopKeeping := background(ctx, s.panics)
	defer join(&err, stopKeeping)
	keep("record telemetry", s.withSchema(s.whileRight(s.recorder.Run)))
	if s.alertSender != nil { // It ends after what opens and clears alerts.
		keep("send alerts", s.withSchema(s.alertSender.Run))
	}
	run, stop := background(ctx, s.panics)
	defer join(&err, stop)
	run("watch database", func(ctx context.Context) error {
		err := s.database.run(ctx)
		if err != nil {
			refuse(err)
		}
		return err
	})
	s.runParts(run)
	// Receives from vehicles; ends before what handles the messages.
	receive, stopReceiving := background(ctx, s.panics)
	defer join(&err, stopReceiving)
	receive("receive from vehicles", s.withSchema(s.whileRight(func(ctx context.Context) error { return s.mqtt.Run(ctx, s.broker) })))
	receive("renew watches", s.withSchema(s.whileRight(s.watches.Run)))
	defer join(&err, func() error { return drain(s.broker) })
	// Orders commands: ends before the broker takes none any more.
	transit, stopTransitions := background(ctx, s.panics)
	defer join(&err, stopTransitions)
	transit("take steps of transitions", s.withSchema(s.whileRight(s.transitions.Run)))
	return s.serveHTTP(ctx, listeners)
}

// runParts starts the parts that calls use.
func (s *service) runParts(run func(doing string, part func(context.Context) error)) {
	run("watch primaries", s.postgres.Watch)
	run("migrate", func(ctx context.Context) error { return migrate(ctx, s.postgres, s.config.Migrate, s.log) })
	run("await schema", s.awaitSchema)
	run("run broker", s.broker.Run)
	run("forget", s.whileRight(func(ctx context.Context) error { return forget(ctx, s.postgres, s.log) }))
	run("cancel reservations that lapse", s.withSchema(s.whileRight(func(ctx context.Context) error {
		return lapse(ctx, s.postgres, s.publishBooking, s.log)
	})))
	run("add partitions of the audit log", s.withSchema(s.whileRight(func(ctx context.Context) error {
		return activity.KeepPartitions(ctx, s.postgres, s.log)
	})))
	moved := newMovedGauge(s.registry)
	run("move settled commands", s.withSchema(s.whileRight(func(ctx context.Context) error {
		return moveSettled(ctx, s.record, moved, s.log)
	})))
	run("be present", s.withSchema(s.present.Run))
	run("keep addresses", s.withSchema(s.addresses.run))
	run("read token keys", s.tokenKeys.Run)
	run("follow events", s.feed.Run)
	run("watch signing keys", s.signing.Run)
	run("watch certificates", s.secured.watch)
	run("open and clear alerts", s.withSchema(s.whileRight(s.alerts.Run)))
	run("move money", s.withSchema(s.whileRight(s.money.run)))
}

// whileRight runs a part while the clock is right.
func (s *service) whileRight(part func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return s.broker.WhileClockRight(ctx, part) }
}

// withSchema runs a part once the database has the schema.
func (s *service) withSchema(part func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-s.migrated:
			return part(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// readiness checks what the instance needs to serve.
func (s *service) readiness() *health.Readiness {
	database := postgresReady(s.postgres, s.broker, s.present.Writes)
	return health.New(s.panics, slices.Concat([]health.Check{
		{Name: "postgres", Ready: withSettings(database, "sslrootcert of --database-url", "sslcert of --database-url")},
		{Name: "redis", Ready: withSettings(s.cache.Ready, "--redis-ca", "--redis-cert")},
		{Name: "mqtt", Ready: mqttReady(s.mqtt.AllReady)},
		{Name: "tokens", Ready: s.tokenKeys.Ready},
		{Name: "signing_key", Ready: s.present.keyReady},
	}, shardChecks(s.mqtt))...)
}

// serveHTTP serves the listeners until the context ends.
func (s *service) serveHTTP(ctx context.Context, listeners Listeners) error {
	ready := s.readiness()
	s.registry.MustRegister(ready)
	stopping := newStopping(s.config.Drain, s.panics, s.log)
	server := httpapi.NewServer("", stopping.closeConnections(s.public))
	server.RegisterOnShutdown(s.feed.End) // else no stream ends
	servers := []httpServer{
		{server, s.secured.listener(connections.Bound(listeners.Public, s.maxConnections, s.registry, s.log))},
		{httpapi.NewServer("", s.config.internalHandler(ready, s.registry, s.signing, s.log)), listeners.Internal},
	}
	healthAddress := "none"
	if listeners.Health != nil {
		healthAddress = listeners.Health.Addr().String()
		servers = append(servers, httpServer{
			httpapi.NewServer("", ready.Public()), connections.Bound(listeners.Health, healthConnections, nil, s.log),
		})
	}
	s.log.Info("serving", "http", listeners.Public.Addr().String(), "internal", listeners.Internal.Addr().String(),
		"health", healthAddress, "instance", s.broker.Instance())
	serving, stopServing := stopping.after(ctx, ready)
	defer stopServing()
	return serveHTTP(serving, s.panics, s.log, telematics.MaxBudget+answerSlack, servers...)
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

// drain waits for the commands in flight for which no call waits.
func drain(b *broker.Broker) error {
	ctx, cancel := context.WithTimeout(context.Background(), telematics.MaxBudget+answerSlack)
	defer cancel()
	return b.Drain(ctx)
}
