package app

import (
	"cmp"
	"context"
	"time"

	"motorpool/broker"
	"motorpool/broker/besteffort/watch"
	"motorpool/broker/link"
	"motorpool/guard"
	"motorpool/httpapi"
	"motorpool/httpapi/auth"
	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/httpapi/stream"
	"motorpool/store/activity"
	"motorpool/store/agencykeys"
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
	"motorpool/telematics/dialects"
)

func (s *service) readKeys() (err error) {
	if s.signing, err = s.config.signingKeys(s.log); err != nil {
		return err
	}
	if s.secured, err = s.config.tls(s.log); err != nil {
		return err
	}
	s.registry = s.newRegistry()
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
	if s.money, err = s.newMoney(); err != nil {
		return err
	}
	s.closers = append(s.closers, s.money.Close)
	return nil
}

// lease returns a function that takes work which one instance at a time does, or renews that.
func (s *service) lease(work string, of time.Duration) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) { return s.cache.TryLease(ctx, work, s.instance, of) }
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
		Publisher: s.mqtt, Key: s.signing, Hanging: s.postgres.Hanging,
		Lives:  func(id string) bool { return s.present.lives(id) },
		Logger: s.log, Metrics: s.registry, Guard: s.panics, Tracer: s.tracer, Instance: s.instance,
	})
	s.present = s.newPresence()
	s.database = &databaseWatch{service: s, gauges: newDatabaseGauges(s.registry)}
	s.watches = watch.New(watch.Config{
		Dialects: dialects.Spoken, Publish: s.mqtt.Publish, Watcher: "motorpool-" + s.instance,
		Booked:   rentals.Bookings{DB: s.postgres}.Running,
		TryLease: s.lease("watch", watch.LeaseFor), Logger: s.log, Guard: s.panics,
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
	tokens, limits, agencyKeys := s.config.tokens(s.tokenKeys), redis.NewLimits(s.cache), agencykeys.New(s.postgres, s.sealer)
	if s.addresses, err = s.newAddresses(limits); err != nil {
		return err
	}
	signIn, err := s.signIn(limits, tokens)
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
		Fleet: s.reported, Map: s.cars, Units: s.cars, Agencies: s.cars, Editor: s.cars,
		Commands: s.record, Bulks: s.record, History: s.auditLog, Activities: s.auditLog, Halts: commands.HaltStore{DB: s.postgres},
		Places: s.addresses, Feed: s.feed, Watches: s.watches,
		Offers:    rentals.Bookings{DB: s.postgres},
		Telemetry: history.Reader{DB: s.postgres, Days: s.config.TelemetryRetention},
		Bookings:  rentals.Bookings{DB: s.postgres}, Rentals: rentalAPI{s.transitions, rentals.Transitions{DB: s.postgres}},
		Wallet: s.money.wallet, Payments: s.money, Webhooks: s.money,
		LiveMoney: s.money.Live(), Nudge: s.money.collector.Nudge, BookingChanged: s.publishBooking,
		AgencyKeys: agencyKeys, AgencyKeyRegistry: agencyKeys, Areas: s.places, AreasAt: s.places,
		HaltWithin: broker.HaltWithin, KeysWithin: agencykeys.Within, AreasWithin: areas.Within,
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
		Log: s.log, Tracer: s.tracer,
	})
	s.maxConnections, err = s.config.maxConnections()
	return err
}
