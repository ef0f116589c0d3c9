package measure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"motorpool/internal/metricstest"
	"motorpool/lab/bench/floor"
	"motorpool/lab/bench/load"
	"motorpool/lab/bench/report"
	"motorpool/lab/world"
	"motorpool/mosquitto"
)

// Ingest measures how many reports a second the service stores, against a subscriber that counts
// them.
type Ingest struct {
	Vehicles int           `default:"1000" placeholder:"N" help:"That report in turn."`
	Duration time.Duration `default:"30s" placeholder:"DURATION" help:"Of one round."`
}

// Fleet measures what a report costs where each vehicle reports once in a while, so that few
// reports are joined. Its floor is the same subscriber, at the same rate.
type Fleet struct {
	Vehicles      int           `default:"100000" placeholder:"N" help:"That report in turn."`
	Rate          float64       `default:"2500" placeholder:"N" help:"Reports a second, of all."`
	Duration      time.Duration `default:"4m" placeholder:"DURATION" help:"Of one round; of the floor a quarter."`
	Instances     int           `default:"2" placeholder:"N" help:"Of the service."`
	StateInterval time.Duration `default:"1m" placeholder:"DURATION" help:"The service's --state-interval."`
}

// Measure implements Experiment. The state interval is short, so that the end of the measurement
// need not wait for what is stored. A vehicle that reports several times a second has many reports
// in it.
func (c *Ingest) Measure(ctx context.Context, s Setup, r *report.Results) error {
	all := &Fleet{Vehicles: c.Vehicles, Duration: c.Duration, Instances: 1, StateInterval: 2 * time.Second}
	return all.measure(ctx, s, r, "Ingest", 2*time.Second, c.Duration)
}

// Measure implements Experiment. Two reports of each vehicle come first, so that most instances
// have met most units.
func (c *Fleet) Measure(ctx context.Context, s Setup, r *report.Results) error {
	twice := time.Duration(2 * float64(c.Vehicles) / c.Rate * float64(time.Second))
	return c.measure(ctx, s, r, "Fleet", twice, c.Duration/4)
}

// measure measures the rounds, each in a new world, whose tables have grown as little.
func (c *Fleet) measure(ctx context.Context, s Setup, r *report.Results, name string, warm, floor time.Duration) error {
	var failures []error
	for range s.Rounds {
		w, err := s.newWorld(ctx, c.Vehicles)
		if err != nil {
			return errors.Join(append(failures, err)...)
		}
		failures = append(failures, takeTurns(ctx, r, 1,
			side{name + "/side=subscriber", func() (report.Round, error) { return c.floor(ctx, w, floor) }},
			side{name + "/side=service", func() (report.Round, error) { return c.service(ctx, w, warm) }}), w.Close())
	}
	return errors.Join(failures...)
}

// receiver is the service or a floor.
type receiver struct {
	*testWorld
	processes processes
	metrics   []string      // URLs
	interval  time.Duration // in which states are stored
	from      int           // last sequence number of reports
	// stored returns how many vehicles are stale, and when the latest report was stored.
	stored func(ctx context.Context, last []int) (stale int, at time.Time, err error)
}

func (c *Fleet) floor(ctx context.Context, w *testWorld, d time.Duration) (report.Round, error) {
	broker := w.gateway()
	broker.User = mosquitto.ServiceUser
	p, address, err := load.Serve(ctx, &floor.Subscriber{Broker: broker})
	if err != nil {
		return nil, err
	}
	to := &receiver{testWorld: w, processes: w.bareServers(), metrics: []string{address}}
	to.processes["subscriber"] = []int{p.PID()}
	to.stored = func(ctx context.Context, _ []int) (int, time.Time, error) {
		values, err := metricstest.Read(ctx, http.DefaultClient, address)
		return 0, time.UnixMicro(int64(values[floor.LastReport])), err
	}
	if _, err = to.receive(ctx, c.Rate, d/8); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	round, err := to.receive(ctx, c.Rate, d)
	return round, errors.Join(err, p.Close())
}

func (c *Fleet) service(ctx context.Context, w *testWorld, warm time.Duration) (round report.Round, err error) {
	if err := w.db.connectUnits(ctx); err != nil {
		return nil, err
	}
	// They drive: without a booking each would be an alert.
	if err := w.db.exec(ctx, `update vehicles set status = 'in_use'`); err != nil {
		return nil, err
	}
	to := &receiver{testWorld: w, interval: c.StateInterval, stored: w.db.stored}
	var instances []*world.Instance
	for range c.Instances {
		n, err := w.serve(ctx, "MOTORPOOL_STATE_INTERVAL="+c.StateInterval.String())
		if err != nil {
			return nil, err
		}
		instances, to.metrics = append(instances, n), append(to.metrics, n.Internal+"/metrics")
	}
	to.processes = w.servers(instances...)
	idle, _, err := resident(to.processes["service"]...)
	if err != nil {
		return nil, err
	}
	if _, err = to.receive(ctx, c.Rate, warm); err != nil {
		return nil, err
	}
	if err := w.db.settle(ctx); err != nil {
		return nil, err
	}
	round, failure := to.receive(ctx, c.Rate, c.Duration)
	grown, _, err := resident(to.processes["service"]...)
	if round != nil {
		round["KiB-each"] = (grown - idle) / 1024 / float64(c.Vehicles*c.Instances)
	}
	return round, errors.Join(failure, err)
}

// receive publishes reports, and waits until every one is handled and no vehicle is stale. It
// returns an error where a report was lost.
func (to *receiver) receive(ctx context.Context, rate float64, d time.Duration) (report.Round, error) {
	before, err := load.Merged(ctx, to.metrics...)
	if err != nil {
		return nil, err
	}
	wal, err := get[float64](ctx, to.db, walSQL)
	if err != nil {
		return nil, err
	}
	used, err := to.start(ctx, to.processes)
	if err != nil {
		return nil, err
	}
	var p load.Published
	reports := &load.Reports{Broker: to.gateway(), Counts: to.metrics[0], Vehicles: to.fleet, From: to.from, For: d, Rate: rate}
	cpu, err := load.Do(ctx, reports, &p)
	if err != nil {
		return nil, err
	}
	to.from = max(to.from, slices.Max(p.Last))
	at, failure := to.awaitStored(ctx, before, p)
	use, err := used()
	if err != nil {
		return nil, errors.Join(failure, err)
	}
	use[publisher] = cpu.Seconds()
	after, err := get[float64](ctx, to.db, walSQL)
	behind, number := max(at.Sub(p.End).Seconds(), 0), float64(max(p.Messages, 1))
	round := report.Round{
		"reports/s": number / at.Sub(p.Begin).Seconds(), "WAL-bytes": (after - wal) / number,
		"s-behind": behind, "s-late": max(behind-to.interval.Seconds(), 0),
	}
	use.per(number/1e6, "µs", round)
	return round, errors.Join(failure, err)
}

// awaitStored returns when the last report was stored, as soon as every report was handled and no
// vehicle is stale; it gives up two minutes after the state interval. Each look reads all vehicles.
func (to *receiver) awaitStored(ctx context.Context, before int64, p load.Published) (at time.Time, err error) {
	world.Pause(ctx, time.Until(p.End.Add(to.interval*4/5)))
	for ctx.Err() == nil {
		merged, err := load.Merged(ctx, to.metrics...)
		if err != nil {
			return time.Now(), err
		}
		stale, at, err := to.stored(ctx, p.Last)
		if err != nil || stale == 0 && merged-before == p.Messages {
			return at, err
		}
		if time.Since(p.End) > to.interval+2*time.Minute {
			return time.Now(), fmt.Errorf("%d reports, %d handled; the last of %d vehicles is not stored", p.Messages, merged-before, stale)
		}
		world.Pause(ctx, max(to.interval/30, 200*time.Millisecond))
	}
	return time.Now(), ctx.Err()
}
