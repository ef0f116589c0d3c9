package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"motorpool/cmd/bench/load"
	"motorpool/cmd/internal/world"
)

// Events measures the live events: vehicles report, and many subscribers receive what has changed.
type Events struct {
	Subscribers int           `default:"500" placeholder:"N" help:"Divided among the instances (default ${default})."`
	Instances   int           `default:"2" placeholder:"N" help:"Of the service (default ${default})."`
	Vehicles    int           `default:"1000" placeholder:"N" help:"That report in turn (default ${default})."`
	Rate        float64       `default:"1000" placeholder:"N" help:"Reports a second, each of which changes something (default ${default})."`
	Duration    time.Duration `default:"30s" placeholder:"DURATION" help:"Of the load (default ${default})."`
}

// EventsResult is what Events measured.
type EventsResult struct {
	Subscribers int     `json:"readers"`
	Instances   int     `json:"instances"`
	Published   int64   `json:"published"`
	Rate        float64 `json:"published_per_second"`
	Events      int64   `json:"events"` // of the first subscriber
	// Subscribers that received other events, or in another order.
	Uneven int              `json:"uneven"`
	Fewest int64            `json:"fewest_events"` // of one subscriber
	Resets int              `json:"resets"`
	Late   load.Quantiles   `json:"late"` // from the vehicle's time to the subscriber
	Used   map[string]Usage `json:"used"`
}

// lull is the pause after which all events have arrived.
const lull = 3 * time.Second

// Measure implements Experiment.
func (c *Events) Measure(ctx context.Context, s Setup, r *Results) (err error) {
	result := &EventsResult{Subscribers: c.Subscribers, Instances: c.Instances}
	r.Events = result
	w, err := s.newWorld(ctx, c.Vehicles, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	job := &load.Subscribers{Token: w.token, Number: c.Subscribers}
	reports := &reportLoad{testWorld: w}
	var instances []*world.Instance
	for i := range c.Instances {
		n, err := w.serve(ctx)
		if err != nil {
			return err
		}
		instances, job.URLs = append(instances, n), append(job.URLs, n.Public)
		if i == 0 {
			// Before others receive a part: the first report of a vehicle changes everything.
			if err := reports.reportOnce(ctx, n); err != nil {
				return err
			}
		}
	}
	world.Pause(ctx, lull) // until the events of those reports are published
	subscribers, _, err := load.Serve(ctx, job)
	if err != nil {
		return err
	}
	w.OnClose(subscribers.Close)
	used, err := w.processes(instances...).start()
	if err != nil {
		return err
	}
	Say("%v of %.0f reports a second, %d subscribers", c.Duration, c.Rate, c.Subscribers)
	var p load.Published
	publisher, err := reports.publish(ctx, &p, metricsURL(instances[0]), c.Duration, c.Rate)
	if err != nil {
		return err
	}
	result.Published, result.Rate = p.Messages, float64(p.Messages)/p.End.Sub(p.Begin).Seconds()
	world.Pause(ctx, lull)
	var delivered load.Delivered
	state, err := subscribers.Finish(&delivered)
	if err != nil {
		return err
	}
	if result.Used, err = used(); err != nil {
		return err
	}
	result.Used["publisher"], result.Used["subscribers"] = publisher, usageAtEnd(state)
	result.compare(delivered)
	return result.check()
}

// compare compares the subscribers with the first one.
func (r *EventsResult) compare(delivered load.Delivered) {
	reference := delivered.Subscribers[0]
	late := load.NewLatencies()
	late.AddAll(delivered.Late)
	r.Events, r.Late, r.Fewest, r.Resets = reference.Events, late.Quantiles(), reference.Events, 0
	for _, s := range delivered.Subscribers {
		if s.Events != reference.Events || s.Checksum != reference.Checksum {
			r.Uneven++
		}
		r.Fewest = min(r.Fewest, s.Events)
		r.Resets += s.Resets
	}
}

// check returns an error where a subscriber missed an event.
func (r *EventsResult) check() error {
	if r.Events != r.Published || r.Uneven > 0 || r.Resets > 0 {
		return fmt.Errorf("%d reports changed something, %d events; %d subscribers received others than the first; %d resets", r.Published, r.Events, r.Uneven, r.Resets)
	}
	return nil
}
