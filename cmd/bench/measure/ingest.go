package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"motorpool/cmd/bench/load"
	"motorpool/simulator/world"
)

// Ingest measures how many reports a second the service stores, against a subscriber that counts
// them.
type Ingest struct {
	Vehicles []int         `default:"1000,10000" placeholder:"N,…" help:"Sizes of the fleet (default ${default})."`
	Duration time.Duration `default:"30s" placeholder:"DURATION" help:"Of one round (default ${default})."`
	Soak     time.Duration `default:"2m" placeholder:"DURATION" help:"At 80 % of the limit, after the rounds; 0s: none (default ${default})."`
	Window   int64         `default:"5000" placeholder:"N" help:"Reports between publisher and end, at most, to find the limit; Mosquitto queues 10,000 (default ${default})."`
}

// IngestResult is what Ingest measured.
type IngestResult struct {
	Bytes  int           `json:"report_bytes"`
	Fleets []FleetIngest `json:"fleets"`
}

// FleetIngest is what was measured with one size of the fleet.
type FleetIngest struct {
	Vehicles int           `json:"vehicles"`
	Floor    []IngestRound `json:"floor"`
	Service  []IngestRound `json:"service"`
	Soak     *IngestRound  `json:"soak,omitempty"`
}

// IngestRound is one load, from the first report until the last one is stored, or counted.
type IngestRound struct {
	Messages  int64            `json:"messages"`
	Published float64          `json:"published_per_second"`
	Rate      float64          `json:"per_second"`
	Behind    float64          `json:"seconds_behind"` // from the last report to the end
	Lost      load.Counts      `json:"lost"`
	Stale     int              `json:"stale_vehicles"` // whose last report is not in Postgres
	Used      map[string]Usage `json:"used"`
}

// Check returns an error where a report was lost.
func (r IngestRound) Check() error {
	if len(r.Lost) > 0 || r.Stale > 0 {
		return fmt.Errorf("lost %v; the last report of %d vehicles is not in Postgres", r.Lost, r.Stale)
	}
	return nil
}

// soonStored is a state interval that is short, so that a measurement need not wait for what is
// stored. A vehicle that reports several times a second has many reports in it.
const soonStored = "MOTORPOOL_STATE_INTERVAL=2s"

const (
	soakShare   = 0.8 // of the limit
	warmUpTime  = 2 * time.Second
	endTimeout  = 30 * time.Second // without any report coming to its end
	endInterval = 200 * time.Millisecond
)

// Measure implements Experiment.
func (c *Ingest) Measure(ctx context.Context, s Setup, r *Results) error {
	r.Ingest = &IngestResult{Bytes: load.ReportSize}
	var failures []error
	for _, vehicles := range c.Vehicles {
		fleet := FleetIngest{Vehicles: vehicles}
		failures = append(failures, c.measure(ctx, s, r, &fleet))
		r.Ingest.Fleets = append(r.Ingest.Fleets, fleet)
	}
	return errors.Join(failures...)
}

func (c *Ingest) measure(ctx context.Context, s Setup, r *Results, fleet *FleetIngest) (err error) {
	w, err := s.newWorld(ctx, fleet.Vehicles, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	reports := &reportLoad{testWorld: w, window: c.Window}
	if err := takeTurns(s.Rounds, fmt.Sprintf("%d vehicles", fleet.Vehicles),
		side[IngestRound]{&fleet.Floor, func() (IngestRound, error) { return reports.floor(ctx, c.Duration) }},
		side[IngestRound]{&fleet.Service, func() (IngestRound, error) { return reports.service(ctx, c.Duration, 0) }}); err != nil {
		return err
	}
	var failures []error
	for _, served := range fleet.Service {
		failures = append(failures, served.Check())
	}
	if c.Soak > 0 {
		rate := soakShare * Median(Of(fleet.Service, func(r IngestRound) float64 { return r.Rate }))
		Say("%d vehicles: %v at %.0f reports a second", fleet.Vehicles, c.Soak, rate)
		soak, err := reports.service(ctx, c.Soak, rate)
		if err != nil {
			return err
		}
		fleet.Soak = &soak
		failures = append(failures, soak.Check())
	}
	return errors.Join(failures...)
}

func metricsURL(n *world.Instance) string { return n.Internal + "/metrics" }

func metricsURLs(instances []*world.Instance) (urls []string) {
	for _, n := range instances {
		urls = append(urls, metricsURL(n))
	}
	return urls
}

// reportLoad publishes reports of all vehicles, with growing sequence numbers.
type reportLoad struct {
	*testWorld
	window int64
	stride int // see load.Reports
	from   int // last sequence number
}

// stored returns how many vehicles are stale, and when the latest report was stored.
type stored func(ctx context.Context, last []int) (stale int, at time.Time, err error)

func (l *reportLoad) floor(ctx context.Context, d time.Duration) (IngestRound, error) {
	subscriber, address, err := load.Serve(ctx, &SubscriberFloor{l.testWorld.service()})
	if err != nil {
		return IngestRound{}, err
	}
	received := func(ctx context.Context, _ []int) (int, time.Time, error) {
		counts, err := load.ReadCounts(ctx, address)
		return 0, time.UnixMicro(int64(counts[load.LastReport])), err
	}
	r, err := l.measure(ctx, address, meters{"subscriber": subscriber.PID(), "mosquitto": l.Mosquitto.PID()}, d, 0, received)
	return r, errors.Join(err, subscriber.Close())
}

// service measures a new instance, at a rate, or at the fastest without loss.
func (l *reportLoad) service(ctx context.Context, d time.Duration, rate float64) (r IngestRound, err error) {
	n, err := l.serve(ctx, soonStored)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	return l.measure(ctx, metricsURL(n), l.processes(n), d, rate, l.db.stored)
}

// measure warms up, publishes, and waits until every report is counted and no vehicle is stale.
func (l *reportLoad) measure(ctx context.Context, counts string, m meters, d time.Duration, rate float64, s stored) (r IngestRound, err error) {
	var p load.Published
	if _, err := l.publish(ctx, &p, counts, warmUpTime, rate); err != nil {
		return r, err
	}
	if _, _, _, err := awaitEnd(ctx, counts, load.Counts{}, p, s); err != nil {
		return r, err
	}
	before, err := load.ReadCounts(ctx, counts)
	if err != nil {
		return r, err
	}
	used, err := m.start()
	if err != nil {
		return r, err
	}
	p = load.Published{}
	publisher, err := l.publish(ctx, &p, counts, d, rate)
	if err != nil {
		return r, err
	}
	added, left, end, err := awaitEnd(ctx, counts, before, p, s)
	if err != nil {
		return r, err
	}
	r = IngestRound{
		Messages: p.Messages, Published: float64(p.Messages) / p.End.Sub(p.Begin).Seconds(), Rate: float64(p.Messages) / end.Sub(p.Begin).Seconds(),
		Behind: max(end.Sub(p.End).Seconds(), 0), Stale: left, Lost: added.Lost(p.Messages),
	}
	r.Used, err = used()
	r.Used["publisher"] = publisher
	return r, err
}

func (l *reportLoad) publish(ctx context.Context, p *load.Published, counts string, d time.Duration, rate float64) (Usage, error) {
	state, err := load.Do(ctx, &load.Reports{
		Broker: l.gateway(), Counts: counts, Vehicles: l.fleet, Stride: l.stride, From: l.from, For: d, Rate: rate, Window: l.window,
	}, p)
	if err != nil {
		return Usage{}, err
	}
	l.from = max(l.from, slices.Max(p.Last))
	return usageAtEnd(state), nil
}

// awaitEnd returns the counts that were added, how many vehicles are stale, and when the last
// report was stored, when every report has ended and no vehicle is stale, or when nothing has
// changed for endTimeout.
func awaitEnd(ctx context.Context, url string, before load.Counts, p load.Published, s stored) (added load.Counts, left int, at time.Time, err error) {
	changed, progress := time.Now(), ""
	for ctx.Err() == nil {
		now, err := load.ReadCounts(ctx, url)
		if err != nil {
			return nil, 0, at, err
		}
		added = now.Since(before)
		timedOut := time.Since(changed) > endTimeout
		if added.Ended() >= p.Messages || timedOut {
			if left, at, err = s(ctx, p.Last); err != nil || left == 0 || timedOut {
				return added, left, at, err
			}
		}
		if now := fmt.Sprint(added.Ended(), left); now != progress {
			changed, progress = time.Now(), now
		}
		world.Pause(ctx, endInterval)
	}
	return nil, 0, at, ctx.Err()
}
