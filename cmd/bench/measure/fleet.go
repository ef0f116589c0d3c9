package measure

import (
	"context"
	"errors"
	"math/big"
	"time"

	"motorpool/cmd/bench/load"
	"motorpool/simulator/world"
)

// Fleet measures what a report costs where each vehicle reports once in a while, so that few
// reports are joined.
type Fleet struct {
	Vehicles      int           `default:"100000" placeholder:"N" help:"Of the fleet; they report in turn (default ${default})."`
	Rate          float64       `default:"2500" placeholder:"N" help:"Reports a second, of all (default ${default})."`
	Duration      time.Duration `default:"4m" placeholder:"DURATION" help:"Of one round, after each vehicle has reported twice (default ${default})."`
	Instances     int           `default:"2" placeholder:"N" help:"Of the service (default ${default})."`
	StateInterval time.Duration `default:"1m" placeholder:"DURATION" help:"The service's --state-interval (default ${default})."`
}

// FleetResult is what Fleet measured.
type FleetResult struct {
	Vehicles  int          `json:"vehicles"`
	Rate      float64      `json:"reports_per_second"`
	Bytes     int          `json:"report_bytes"`
	Duration  float64      `json:"seconds"`
	Instances int          `json:"instances"`
	Interval  float64      `json:"state_interval_seconds"`
	Rounds    []FleetRound `json:"rounds"`
}

// FleetRound is one load, from its first report until the last one of each vehicle is in Postgres.
type FleetRound struct {
	Messages int64 `json:"messages"`
	// From the last report to the last write, and the part of that beyond the state interval.
	Stored float64 `json:"seconds_until_stored"`
	Lag    float64 `json:"lag_seconds"`

	Lost      load.Counts `json:"lost"`
	Stale     int         `json:"stale_vehicles"` // whose last report is not in Postgres
	WAL       int64       `json:"wal_bytes"`
	FullPages int64       `json:"wal_full_page_images"`
	// Memory of an instance beyond that before the first report.
	Each float64          `json:"bytes_per_vehicle"`
	Used map[string]Usage `json:"used"`
}

// Cost is microseconds of CPU time per report, of all but the publisher.
func (r FleetRound) Cost() float64 {
	sum := 0.0
	for name, u := range r.Used {
		if name != publisherName {
			sum += u.CPU
		}
	}
	return sum / float64(max(r.Messages, 1)) * 1e6
}

// WALPerReport is bytes of Postgres's log.
func (r FleetRound) WALPerReport() float64 { return float64(r.WAL) / float64(max(r.Messages, 1)) }

// Check returns an error where a report was lost.
func (r FleetRound) Check() error {
	return IngestRound{Lost: r.Lost, Stale: r.Stale}.Check()
}

const (
	publisherName = "publisher"
	// warmReports of each vehicle come before a round, so that most instances have met most units.
	warmReports = 2
	// storedEvery is the interval between two checks of what is stored: each reads all snapshots.
	storedEvery   = 2 * time.Second
	storedTimeout = 3 * time.Minute // beyond the state interval
)

// Measure implements Experiment.
func (c *Fleet) Measure(ctx context.Context, s Setup, r *Results) error {
	r.Fleet = &FleetResult{
		Vehicles: c.Vehicles, Rate: c.Rate, Bytes: load.ReportSize, Duration: c.Duration.Seconds(), Instances: c.Instances, Interval: c.StateInterval.Seconds(),
	}
	if c.Instances < 1 || c.Vehicles < 1 || c.Rate <= 0 {
		return errors.New("--instances, --vehicles, --rate: at least one")
	}
	var failures []error
	for n := range s.Rounds {
		Say("%d vehicles: round %d of %d", c.Vehicles, n+1, s.Rounds)
		round, err := c.round(ctx, s, r)
		if err == nil {
			r.Fleet.Rounds = append(r.Fleet.Rounds, round)
			err = round.Check()
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// round has every vehicle report twice, waits until that is stored, and measures a load.
func (c *Fleet) round(ctx context.Context, s Setup, results *Results) (r FleetRound, err error) {
	w, err := s.newWorld(ctx, c.Vehicles, results)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := w.db.connectUnits(ctx); err != nil {
		return r, err
	}
	var instances []*world.Instance
	for range c.Instances {
		n, err := w.serve(ctx, "MOTORPOOL_STATE_INTERVAL="+c.StateInterval.String())
		if err != nil {
			return r, err
		}
		instances = append(instances, n)
	}
	l := &fleetLoad{reportLoad: reportLoad{testWorld: w, stride: strideFor(w.fleet)}, Fleet: c, instances: instances}
	idle, err := l.memory()
	if err != nil {
		return r, err
	}
	warm := time.Duration(warmReports * float64(c.Vehicles) / c.Rate * float64(time.Second))
	var p load.Published
	if _, err := l.publish(ctx, &p, metricsURL(instances[0]), warm, c.Rate); err != nil {
		return r, err
	}
	if _, _, err := l.awaitStored(ctx, w.db, p); err != nil {
		return r, err
	}
	if err := w.db.exec(ctx, `vacuum (analyze)`, `checkpoint`); err != nil { //nolint:misspell // as Postgres spells it
		return r, err
	}
	if r, err = l.measure(ctx); err != nil {
		return r, err
	}
	memory, err := l.memory()
	r.Each = float64(memory-idle) / float64(c.Vehicles*c.Instances)
	return r, err
}

// fleetLoad publishes reports to several instances.
type fleetLoad struct {
	reportLoad
	*Fleet
	instances []*world.Instance
}

func (l *fleetLoad) measure(ctx context.Context) (r FleetRound, err error) {
	before, err := load.ReadCounts(ctx, metricsURLs(l.instances)...)
	if err != nil {
		return r, err
	}
	checking, err := openReader(ctx, l.Postgres.URL())
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, checking.Close()) }()
	wal, err := checking.wal(ctx)
	if err != nil {
		return r, err
	}
	used, err := checking.start(l.processes(l.instances...))
	if err != nil {
		return r, err
	}
	var p load.Published
	publisher, err := l.publish(ctx, &p, metricsURL(l.instances[0]), l.Duration, l.Rate)
	if err != nil {
		return r, err
	}
	r.Messages = p.Messages
	at, left, err := l.awaitStored(ctx, checking.database, p)
	if err != nil {
		return r, err
	}
	r.Stale, r.Stored = left, max(at.Sub(p.End).Seconds(), 0)
	r.Lag = max(r.Stored-l.StateInterval.Seconds(), 0)
	if r.Used, err = used(); err != nil {
		return r, err
	}
	r.Used[publisherName] = publisher
	after, err := checking.wal(ctx)
	if err != nil {
		return r, err
	}
	r.WAL, r.FullPages = after.Bytes-wal.Bytes, after.FullPages-wal.FullPages
	counts, err := load.ReadCounts(ctx, metricsURLs(l.instances)...)
	r.Lost = counts.Since(before).Lost(p.Messages)
	return r, err
}

// strideFor returns a stride that spreads successive reports over the pages of Postgres, as those
// of vehicles are: it is coprime with the size of the fleet, so each vehicle has its turn.
func strideFor(vehicles int) int {
	stride := max(1, int(0.618*float64(vehicles)))
	for new(big.Int).GCD(nil, nil, big.NewInt(int64(stride)), big.NewInt(int64(vehicles))).Int64() != 1 {
		stride++
	}
	return stride
}

// awaitStored returns when the last report of each vehicle was stored, or how many are not in time.
func (l *fleetLoad) awaitStored(ctx context.Context, db database, p load.Published) (at time.Time, left int, err error) {
	world.Pause(ctx, time.Until(p.End.Add(l.StateInterval*4/5))) // before, there is little to see
	for ctx.Err() == nil {
		left, at, err = db.stored(ctx, p.Last)
		if err != nil || left == 0 || time.Since(p.End) > l.StateInterval+storedTimeout {
			return at, left, err
		}
		world.Pause(ctx, storedEvery)
	}
	return at, left, ctx.Err()
}

// memory returns the memory of all instances.
func (l *fleetLoad) memory() (sum int64, err error) {
	for _, n := range l.instances {
		u, err := usageOf(n.PID())
		if err != nil {
			return 0, err
		}
		sum += u.Memory
	}
	return sum, nil
}
