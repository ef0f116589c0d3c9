package history

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/prometheus/client_golang/prometheus"

	"motorpool/guard"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/samples"
)

// Config configures a Recorder.
type Config struct {
	DB   *pg.DB
	Days int // 0: nothing is written, and stored samples are removed

	Logger  *slog.Logger          // Defaults to silence
	Metrics prometheus.Registerer // Defaults to nowhere
	Guard   *guard.Guard          // recovers panics. Nil: they are only logged
}

// Recorder stores samples of reports. It is safe for concurrent use.
type Recorder struct {
	db      *pg.DB
	days    int
	log     *slog.Logger
	guard   *guard.Guard
	sampler *samples.Sampler
	metrics *metrics
	outage  guard.Outage // of Flush
}

// NewRecorder assembles a recorder. Run writes the samples that Record collects.
func NewRecorder(c Config) *Recorder {
	r := &Recorder{db: c.DB, days: c.Days, log: cmp.Or(c.Logger, slog.New(slog.DiscardHandler)), guard: c.Guard}
	r.metrics = newMetrics(c.Metrics, func() int { return r.sampler.Waiting() })
	r.sampler = samples.New(time.Duration(c.Days)*day, r.metrics.drop)
	return r
}

const day = 24 * time.Hour

// Record samples a report of a vehicle. It does no I/O.
func (r *Recorder) Record(vehicle telematics.VehicleID, agency telematics.AgencyID, p telematics.Powertrain, report *telematics.Report) {
	if r.days > 0 {
		r.sampler.Add(vehicle, agency, p, report, time.Now())
	}
}

// Missed counts reports of units whose vehicles could not be looked up.
func (r *Recorder) Missed(reports int) {
	if r.days > 0 {
		r.metrics.drop(samples.NoVehicle, reports)
	}
}

// Moved counts reports that were made before their unit came to its vehicle, or the vehicle to its
// agency.
func (r *Recorder) Moved(reports int) {
	if r.days > 0 {
		r.metrics.drop(samples.Moved, reports)
	}
}

// Run adds and drops partitions, and writes samples. It blocks until the context ends, and then
// writes the rest, for no longer than one statement may take. It returns nil.
func (r *Recorder) Run(ctx context.Context) error {
	var partitions sync.WaitGroup
	defer partitions.Wait()
	ready := make(chan struct{})
	isReady := sync.OnceFunc(func() { close(ready) })
	partitions.Go(func() {
		_ = r.guard.Keep(ctx, "keep telemetry partitions", func(ctx context.Context) error { return r.keepPartitions(ctx, isReady) })
	})
	if r.days == 0 {
		return nil
	}
	select {
	case <-ready:
	case <-ctx.Done():
	}
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = r.guard.Do("write telemetry samples", func() { r.Flush(ctx) })
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.db.Timeout())
			defer cancel()
			_ = r.guard.Do("write telemetry samples", func() { r.Flush(last) })
			if left := r.sampler.Waiting(); left > 0 {
				r.log.Warn("telemetry samples lost at shutdown, postgres write failed", "samples", left)
			}
			return nil
		}
	}
}

// keepPartitions adds partitions before their days begin, and drops those that are too old, until
// the context ends. It calls ready when the first ones exist.
func (r *Recorder) keepPartitions(ctx context.Context, ready func()) error {
	var outage guard.Outage
	for {
		again := keepEvery
		added, dropped, err := r.Keep(ctx)
		if err == nil || errors.Is(err, errNotDropped) {
			ready()
		}
		if outage.Note(ctx, r.log, "telemetry partitions not updated", err); err != nil {
			again = keepAgain
		}
		if added+dropped > 0 {
			r.log.Info("telemetry partitions updated", "added", added, "dropped", dropped, "days", r.days)
		}
		if !guard.Pause(ctx, again) {
			return nil
		}
	}
}

var errNotDropped = errors.New("days that are too old could not be dropped: others, such as a backup, read the telemetry history")

// Keep adds the partitions of the days that are kept and of the next ones, and drops the others. It
// returns the numbers of added and dropped partitions. Those were added also where it returns
// errNotDropped.
func (r *Recorder) Keep(ctx context.Context) (added, dropped int, err error) {
	var all bool
	err = r.db.Pool.QueryRowContext(ctx, `
		select added, coalesce(dropped, 0), dropped is not null
		from keep_telemetry($1, $2)`, r.days, daysAhead).Scan(&added, &dropped, &all)
	if err == nil && !all {
		err = errNotDropped
	}
	return added, dropped, unavailable.Wrap("keep the partitions of the telemetry history", err)
}

// Flush writes the buffered samples. It puts them back where Postgres is unavailable, and drops and
// counts samples that Postgres refuses.
func (r *Recorder) Flush(ctx context.Context) {
	drained := r.sampler.Drain()
	// In one order, so that two instances do not wait for each other.
	slices.SortFunc(drained, func(a, b *samples.Sample) int {
		return cmp.Or(a.Begin.Compare(b.Begin), cmp.Compare(a.Vehicle, b.Vehicle))
	})
	for len(drained) > 0 {
		began, n := time.Now(), statementSize(drained)
		err := r.write(ctx, drained[:n])
		// This day may have no partition yet, where the clock has leapt ahead.
		if isRefused(err) && time.Since(drained[0].Begin) < day {
			if added, _, _ := r.Keep(ctx); added > 0 {
				err = r.write(ctx, drained[:n])
			}
		}
		if !isRefused(err) {
			r.outage.Note(ctx, r.log, "telemetry history not written to postgres", err)
		}
		switch {
		case err == nil:
			r.metrics.stored.Add(float64(n))
		case isRefused(err):
			r.metrics.drop(samples.Refused, n)
			r.log.Error("telemetry history refused by postgres", "samples", n, "err", err)
		default:
			r.sampler.PutBack(drained)
			return
		}
		if drained = drained[n:]; len(drained) > 0 {
			guard.Pause(ctx, (share-1)*time.Since(began))
		}
	}
}

// statementSize returns how many of the sorted samples to write in a statement: those of one day,
// so that a day without a partition fails no other.
func statementSize(sorted []*samples.Sample) int {
	n := min(batch, len(sorted))
	end := sorted[0].Begin.Truncate(day).Add(day)
	if after := slices.IndexFunc(sorted[:n], func(s *samples.Sample) bool { return !s.Begin.Before(end) }); after > 0 {
		return after
	}
	return n
}

// isRefused reports whether a statement would fail again, for example because there is no
// partition.
func isRefused(err error) bool {
	refusal := pq.As(err)
	return refusal != nil && (refusal.Code.Class() == "22" || refusal.Code.Class() == "23")
}

func (r *Recorder) write(ctx context.Context, list []*samples.Sample) error {
	values := make([][]any, len(list))
	for i, s := range list {
		values[i] = []any{
			int64(s.Vehicle), int64(s.Agency), s.Begin, int64(min(max(s.At.Sub(s.Begin), 0), samples.Resting) / time.Second),
			s.Value(samples.Energy), s.Value(samples.Voltage), s.Value(samples.Speed), s.Value(samples.Signal),
			s.Value(samples.Latitude), s.Value(samples.Longitude), flag(s.Value(samples.Locked)), flag(s.Value(samples.Ignition)),
		}
	}
	return unavailable.Wrap("write the telemetry history", r.db.Within(ctx, func(tx *sqlx.Tx) error {
		// No caller waits for the commit, and losing it does no harm.
		if _, err := tx.ExecContext(ctx, `set local synchronous_commit = off`); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, insert, pg.Arrays(values)...)
		return err
	}))
}

func flag(value any) any {
	if value == nil {
		return nil
	}
	return value != int64(0)
}

var rows = pg.RowSet{Name: "n", Columns: []string{
	"vehicle_id bigint", "agency_id bigint", "at timestamptz", "after smallint", "energy smallint", "voltage smallint", "speed smallint",
	"signal smallint", "latitude integer", "longitude integer", "locked boolean", "ignition boolean",
}}

// insert keeps the first stored value of each field, from any instance. It writes nothing for a
// sample that is stored already, or of an interval in which another agency has a sample.
var insert = `
	with ` + rows.Many() + `
	insert into telemetry as t (vehicle_id, agency_id, at, after, energy, voltage, speed, signal, latitude, longitude, locked, ignition)
	select vehicle_id, agency_id, at, after, energy, voltage, speed, signal, latitude, longitude, locked, ignition from n
	on conflict (vehicle_id, at) do update set
		energy = coalesce(t.energy, excluded.energy), voltage = coalesce(t.voltage, excluded.voltage), speed = coalesce(t.speed,
		excluded.speed),
		signal = coalesce(t.signal, excluded.signal), latitude = coalesce(t.latitude, excluded.latitude),
		longitude = coalesce(t.longitude, excluded.longitude), locked = coalesce(t.locked, excluded.locked),
		ignition = coalesce(t.ignition, excluded.ignition)
	where t.agency_id = excluded.agency_id and (t.energy is null and excluded.energy is not null or t.voltage is null
	and excluded.voltage is not null
		or t.speed is null and excluded.speed is not null or t.signal is null and excluded.signal is not null
		or t.latitude is null and excluded.latitude is not null or t.longitude is null and excluded.longitude is not null
		or t.locked is null and excluded.locked is not null or t.ignition is null and excluded.ignition is not null)`
