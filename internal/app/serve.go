// Package app assembles the service from its parts. Its settings are in config.go, its wiring is
// in serve.go, step by step.
package app

import (
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
	"motorpool/httpapi/stream"
	"motorpool/rental/transitions"
	"motorpool/store/activity"
	"motorpool/store/agencykeys"
	"motorpool/store/alerts"
	"motorpool/store/areas"
	"motorpool/store/commands"
	"motorpool/store/history"
	"motorpool/store/pg"
	"motorpool/store/redis"
	"motorpool/store/twins"
	"motorpool/store/vehicles"
	"motorpool/telematics"
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
	run("migrate", s.migrate)
	run("await schema", s.awaitSchema)
	run("run broker", s.broker.Run)
	run("forget", s.whileRight(s.forget))
	run("cancel reservations that lapse", s.withSchema(s.whileRight(s.lapse)))
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
	stopping := &stopping{service: s}
	server := httpapi.NewServer("", stopping.closeConnections(s.public))
	server.RegisterOnShutdown(s.feed.End) // else no stream ends
	servers := []httpServer{
		{server, s.secured.listener(connections.Bound(listeners.Public, s.maxConnections, s.registry, s.log))},
		{httpapi.NewServer("", s.internalHandler(ready)), listeners.Internal},
	}
	healthAddress := "none"
	if listeners.Health != nil {
		healthAddress = listeners.Health.Addr().String()
		servers = append(servers, httpServer{
			httpapi.NewServer("", ready.Public()), connections.Bound(listeners.Health, healthConnections, nil, s.log),
		})
	}
	s.log.Info("serving", "http", listeners.Public.Addr().String(), "internal", listeners.Internal.Addr().String(),
		"health", healthAddress, "instance", s.instance)
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
