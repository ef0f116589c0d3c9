package app

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/broker"
	"motorpool/guard"
	"motorpool/rental"
	"motorpool/store/agencykeys"
	"motorpool/store/commands"
	"motorpool/store/idempotency"
	"motorpool/store/instances"
	"motorpool/store/pg"
	"motorpool/store/rentals"
	"motorpool/store/vehicles"
)

// The intervals of databaseWatch: after a failed check, and for the detection of a restart or
// failover; and after a successful check.
const (
	databaseRetry = time.Second
	databaseEvery = 30 * time.Second
)

// databaseWatch detects a database that must not be used, and one that may lose acknowledged
// commits.
type databaseWatch struct {
	*service
	unsafe   string      // settings, as they were logged last
	standbys pg.Standbys // likewise
	gauges   databaseGauges
}

// run returns pg.ErrUnsuitable where the database must not be used, and nil when the context ends.
func (w *databaseWatch) run(ctx context.Context) error {
	if err := w.awaitSuitable(ctx); err != nil {
		return err
	}
	lives, next := w.postgres.Lives(), time.Now()
	for {
		if now := w.postgres.Lives(); now != lives {
			lives, next = now, time.Now()
			w.log.Warn("postgres restarted or failed over: repeated answers of units are checked again")
			w.broker.ForgetSettled()
			w.money.reconciler.CommitsMayBeLost()
		}
		if !time.Now().Before(next) {
			if err := w.check(ctx); err == nil {
				next = time.Now().Add(databaseEvery)
			} else if ctx.Err() == nil {
				w.log.Debug("state of postgres not read", "err", err)
			}
		}
		if !guard.Pause(ctx, databaseRetry) {
			return nil
		}
	}
}

// awaitSuitable waits until Postgres answers. It returns pg.ErrUnsuitable if the database must not
// be used, and nil otherwise or when the context ends.
func (w *databaseWatch) awaitSuitable(ctx context.Context) error {
	for {
		err := w.postgres.Suitable(ctx)
		if err == nil || errors.Is(err, pg.ErrUnsuitable) {
			return err
		}
		if !guard.Pause(ctx, databaseRetry) {
			return nil
		}
	}
}

// checkClock notes Postgres's clock, and corrects what was written while it had leapt ahead.
func (w *databaseWatch) checkClock(ctx context.Context) error {
	leap, failed := w.postgres.ObserveClock(ctx)
	if leap != 0 {
		w.gauges.clockLeaps.Inc()
		w.log.Error("postgres clock leapt, or no instance was running: nothing is removed for six hours", "leap", leap)
	}
	corrected, err := rentals.CorrectTimes(ctx, w.postgres)
	if corrected > 0 {
		w.log.Error("charges and notices were due later than they can be, a clock had leapt ahead: due now", "corrected", corrected)
	}
	contacts, failedContacts := vehicles.CorrectTimes(ctx, w.postgres)
	if contacts > 0 {
		w.gauges.contactsCorrected.Add(float64(contacts))
		w.log.Error("contacts of units were dated farther ahead than they can be, a clock had leapt ahead: corrected", "units", contacts)
	}
	return errors.Join(failed, err, failedContacts)
}

// readPartitions reads how long the partitions of tables by time last.
func (w *databaseWatch) readPartitions(ctx context.Context) error {
	tables := []string{"activity"}
	if w.config.TelemetryRetention > 0 {
		tables = append(tables, "telemetry")
	}
	for _, table := range tables {
		ahead, err := w.postgres.Ahead(ctx, table)
		if err != nil {
			return err
		}
		w.gauges.partitionsAhead.WithLabelValues(table).Set(ahead.Seconds())
	}
	return nil
}

// check raises the numbers of commands first: they must not repeat. No step that fails skips
// another.
func (w *databaseWatch) check(ctx context.Context) error {
	return errors.Join(w.raiseNumbers(ctx), w.checkClock(ctx), w.readPartitions(ctx), w.checkSafety(ctx), w.readGauges(ctx))
}

// raiseNumbers raises the numbers of commands where the server was started or promoted.
func (w *databaseWatch) raiseNumbers(ctx context.Context) error {
	before, after, err := commands.Numbers{DB: w.postgres}.Raise(ctx, false)
	if after != 0 {
		w.log.Info("command numbers raised, since postgres was started or promoted", "from", before, "to", after)
	}
	return err
}

// checkSafety warns of settings and standbys that may lose commits.
func (w *databaseWatch) checkSafety(ctx context.Context) error {
	unsafe, err := w.postgres.Unsafe(ctx)
	if err != nil {
		return err
	}
	if unsafe != "" && unsafe != w.unsafe {
		w.log.Warn("postgres is unsafe: a crash of its machine loses commands that were executed", "settings", unsafe)
	}
	w.unsafe = unsafe
	standbys, err := w.postgres.Standbys(ctx)
	if err != nil {
		return err
	}
	w.gauges.asynchronous.Set(float64(standbys.Asynchronous))
	if standbys.Asynchronous > 0 && standbys != w.standbys {
		w.log.Warn("postgres has an asynchronous standby: a failover to it loses commands that were executed; see docs/backup.md",
			"asynchronous", standbys.Asynchronous, "synchronous_commits", standbys.Synchronous)
	}
	if standbys.Hidden > 0 && standbys != w.standbys {
		w.log.Warn(
			"postgres has standbys, but the database role may not see whether they are asynchronous: grant it pg_read_all_stats",
			"standbys", standbys.Hidden,
		)
	}
	w.standbys = standbys
	return nil
}

// readGauges reads what the gauges show of rows.
func (w *databaseWatch) readGauges(ctx context.Context) error {
	charges := rentals.Charges{DB: w.postgres}
	for _, g := range []struct {
		gauge prometheus.Gauge
		read  func(context.Context) (int, error)
	}{
		{w.gauges.stuckCharges, charges.Stuck}, {w.gauges.chargesForOperator, charges.ForOperator},
		{w.gauges.unrecorded, rentals.Payments{DB: w.postgres}.Unrecorded},
	} {
		n, err := g.read(ctx)
		if err != nil {
			return err
		}
		g.gauge.Set(float64(n))
	}
	expiry, err := agencykeys.FirstExpiry(ctx, w.postgres)
	if err == nil {
		w.gauges.setExpiry(expiry)
	}
	return err
}

// schemaEvery is the interval between two checks of a schema that is not ready.
const schemaEvery = 250 * time.Millisecond

// postgresReady compares the clocks [LAW-11], checks the connections and the schema, and looks
// whether a write was committed lately.
func postgresReady(p *pg.DB, commandBroker *broker.Broker, writes func() error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := commandBroker.CompareClock(ctx); err != nil {
			return err
		}
		if err := pg.Connects(ctx, p); err != nil {
			return err
		}
		if err := schemaReady(ctx, p); err != nil {
			return err
		}
		return writes()
	}
}

func schemaReady(ctx context.Context, p *pg.DB) error {
	if err := p.Suitable(ctx); err != nil {
		return err
	}
	if err := p.Migrated(ctx); err != nil {
		return err
	}
	return p.Allowed(ctx)
}

// awaitSchema closes s.migrated once the schema is ready. The MQTT broker shares answers and
// reports out among all subscribed instances: one that cannot store them would take them from those
// that can.
func (s *service) awaitSchema(ctx context.Context) error {
	for said := false; ; said = true {
		err := schemaReady(ctx, s.postgres)
		if err == nil {
			close(s.migrated)
			return nil
		}
		if !said && ctx.Err() == nil {
			s.log.Warn("database schema not ready, not subscribed to answers and reports yet", "err", err)
		}
		if !guard.Pause(ctx, schemaEvery) {
			return nil
		}
	}
}

// migrate brings the schema up to date, if that is wanted. It retries until the context ends.
func (s *service) migrate(ctx context.Context) error {
	if !s.config.Migrate {
		return nil
	}
	var outage guard.Outage
	for {
		if err := pg.Migrating(ctx, s.postgres); err != nil {
			s.log.Warn("schema migration waits for another one", "err", err)
		}
		version, err := s.postgres.Migrate(ctx)
		if outage.Note(ctx, s.log, "schema migration failed", err); err == nil {
			s.log.Info("schema is up to date", "version", version)
			return nil
		}
		if !guard.Pause(ctx, 2*time.Second) {
			return nil
		}
	}
}

const (
	// lapseEvery is the interval of searches for bookings that lapse, pauses of vehicles that are
	// driven, and maintenance that is over. Half: more queries; double: a vehicle is free again
	// later.
	lapseEvery = 5 * time.Second
	lapseBatch = 100
)

// lapse cancels bookings that were not started in time, and ends pauses and maintenance,
// repeatedly, until the context ends.
func (s *service) lapse(ctx context.Context) error {
	note := func(activity string, changed []rental.Booking) {
		for _, b := range changed {
			s.log.Info("booking was due to change", "activity", activity, "booking", int64(b.ID), "vehicle", int64(b.VehicleID))
			s.publishBooking(b)
		}
	}
	var outage guard.Outage
	for guard.Pause(ctx, lapseEvery) {
		lapsed, notLapsed := rentals.Lapse(ctx, s.postgres, lapseBatch)
		note(rental.BookingLapse, lapsed)
		driven, notDriven := rentals.EndPauses(ctx, s.postgres, lapseBatch)
		note(rental.PauseEnd, driven)
		var err error
		for more := true; more && ctx.Err() == nil; {
			more, err = rentals.EndMaintenance(ctx, s.postgres, lapseBatch)
		}
		outage.Note(ctx, s.log, "bookings and maintenance not changed that are due", errors.Join(notLapsed, notDriven, err))
	}
	return nil
}

const (
	forgetEvery = 10 * time.Minute
	forgetBatch = 1000
)

// forget removes outdated rows, repeatedly, until the context ends.
func (s *service) forget(ctx context.Context) error {
	outdated := []struct {
		what   string
		forget func(ctx context.Context, db *pg.DB, limit int) (more bool, err error)
	}{
		{"idempotency keys", idempotency.Forget},
		{"notices of the payment processor", rentals.ForgetNotices},
		{"quotes", rentals.ForgetQuotes},
		{"used signatures", agencykeys.ForgetSignatures},
		{"unknown units", vehicles.ForgetUnknownUnits},
		{"health of units", vehicles.ForgetHealth},
		{"instances", instances.Forget},
	}
	outages := make([]guard.Outage, len(outdated))
	for guard.Pause(ctx, forgetEvery) {
		for i, rows := range outdated {
			for more := true; more && ctx.Err() == nil; {
				var err error
				if more, err = rows.forget(ctx, s.postgres, forgetBatch); errors.Is(err, pg.ErrClockLeapt) {
					s.log.Debug("outdated rows not removed yet", "what", rows.what, "err", err)
				} else {
					outages[i].Note(ctx, s.log, "outdated "+rows.what+" not removed", err)
				}
			}
		}
	}
	return nil
}
