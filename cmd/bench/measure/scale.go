package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"motorpool/cmd/bench/load"
	"motorpool/simulator/world"
)

// Scale measures a very large fleet of units with a connection each, over several MQTT brokers,
// against a small world of the same kind: start-up, presence, memory, commands, reports, lists, and
// the sweep for silent units.
type Scale struct {
	Vehicles  int           `default:"1000000" placeholder:"N" help:"On record (default ${default})."`
	Connected int           `default:"100000" placeholder:"N" help:"Units with a connection each, as far as open files allow (default ${default})."`
	Small     int           `default:"1000" placeholder:"N" help:"Vehicles of the small world, all of them connected (default ${default})."`
	Shards    int           `default:"3" placeholder:"N" help:"MQTT brokers of each world (default ${default})."`
	InFlight  int           `default:"64" placeholder:"N" help:"Concurrent commands at each instance (default ${default})."`
	Duration  time.Duration `default:"3s" placeholder:"DURATION" help:"Of a round of commands (default ${default})."`
	Rate      float64       `default:"2500" placeholder:"N" help:"Reports a second, of all vehicles (default ${default})."`
	Reporting time.Duration `default:"40s" placeholder:"DURATION" help:"Of a load of reports (default ${default})."`
}

// ScaleResult is what Scale measured.
type ScaleResult struct {
	Wanted   int     `json:"connected_wanted"`
	Limit    string  `json:"limit"` // why fewer are connected; empty: all are
	Shards   int     `json:"shards"`
	InFlight int     `json:"in_flight"`
	Rate     float64 `json:"reports_per_second"`

	Small ScaleWorld `json:"small"`
	Large ScaleWorld `json:"large"`
	// Commands with one instance and with two in the large world. The small one has one.
	Commands []Variant `json:"commands"`
	Idle     float64   `json:"idle_seconds"`
}

// ScaleWorld is what was measured in a world.
type ScaleWorld struct {
	Vehicles   int     `json:"vehicles"`
	Connected  int     `json:"connected"`
	Lost       int64   `json:"lost_connections"`
	Seeding    float64 `json:"seeding_seconds"`
	Row        float64 `json:"record_bytes_per_vehicle"` // in Postgres
	Connecting float64 `json:"connecting_seconds"`

	Alone    ScaleStart   `json:"start_without_units"`
	Starts   []ScaleStart `json:"starts"`   // with all units connected, the first instance first
	Memory   []ScaleStage `json:"memory"`   // at each stage
	Idle     ScaleUse     `json:"idle"`     // with one instance
	Reports  []ScaleLoad  `json:"reports"`  // with one instance, and with two
	Lists    []ScaleList  `json:"lists"`    // of the fleet
	Sweep    ScaleSweep   `json:"sweep"`    // for silent units
	Failures []string     `json:"failures"` // what did not work
}

// ScaleUse is what processes used, by name.
type ScaleUse map[string]Usage

// ScaleStart is the start of an instance.
type ScaleStart struct {
	Ready float64 `json:"ready_ms"`
	// How many units are announced as online a minute after readiness, or when all are; and when
	// the last one was, after readiness.
	Online      int      `json:"online_after_a_minute"`
	OnlineAfter float64  `json:"all_online_seconds"` // 0: not within the time that was allowed
	Used        ScaleUse `json:"used"`               // from the start until settleTime after that
}

// ScaleStage is the memory of all processes at a stage.
type ScaleStage struct {
	Name     string           `json:"name"`
	Vehicles int              `json:"vehicles"` // on record, connected, or of which reports came
	Resident map[string]int64 `json:"resident_bytes"`
	Heap     int64            `json:"heap_bytes"` // of the first instance, after a collection
}

// ScaleLoad is a load of reports, until Postgres has all of it.
type ScaleLoad struct {
	Instances int         `json:"instances"`
	Messages  int64       `json:"messages"`
	Rate      float64     `json:"per_second"`
	Seconds   float64     `json:"seconds"`        // from the first report until Postgres has all
	Behind    float64     `json:"seconds_behind"` // from the last report until then
	WAL       int64       `json:"wal_bytes"`
	Lost      load.Counts `json:"lost"`
	Used      ScaleUse    `json:"used"`
}

// Cost is microseconds of CPU time per report, of all instances, Postgres, Redis and the MQTT
// brokers.
func (l ScaleLoad) Cost() float64 { return l.Used.cpu() / float64(max(l.Messages, 1)) * 1e6 }

func (u ScaleUse) cpu() (sum float64) {
	for _, used := range u {
		sum += used.CPU
	}
	return sum
}

// ScaleList is a page of the list of vehicles.
type ScaleList struct {
	Name         string  `json:"name"`
	Milliseconds float64 `json:"ms"` // median
	Bytes        int     `json:"bytes"`
	Failure      string  `json:"failure,omitempty"`
}

// ScaleSweep is the search for units that have become silent, without any other load.
type ScaleSweep struct {
	Nothing float64 `json:"nothing_due_ms"` // median
	Silent  int     `json:"silent"`         // units that become silent at the same time
	All     float64 `json:"silent_ms"`
}

// Measure implements Experiment.
func (c *Scale) Measure(ctx context.Context, s Setup, r *Results) (err error) {
	files, err := openFiles()
	if err != nil {
		return err
	}
	if c.Shards < 1 || c.Small < c.InFlight || c.Vehicles < c.Small {
		return errors.New("--shards: at least 1; --small: at least --in-flight, since a vehicle executes one command at a time; --vehicles: at least --small")
	}
	result := &ScaleResult{Wanted: c.Connected, Shards: c.Shards, InFlight: c.InFlight, Rate: c.Rate, Idle: c.idleTime().Seconds()}
	r.Scale = result
	connected := min(c.Connected, c.Vehicles)
	if most := c.Shards * (files - reservedFiles); connected > most {
		connected = most
		result.Limit = fmt.Sprintf("a process may open %d files, so an MQTT broker bears %d units: more with --shards", files, files-reservedFiles)
		Say("%d units: %s", connected, result.Limit)
	}
	small, err := c.newScaleWorld(ctx, s, r, c.Small, c.Small, &result.Small)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, small.Close()) }()
	s.Binary = small.Binary
	large, err := c.newScaleWorld(ctx, s, r, c.Vehicles, connected, &result.Large)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, large.Close()) }()
	for _, w := range []*scaleWorld{small, large} {
		if err := w.startAll(ctx); err != nil {
			return err
		}
	}
	if err := c.idle(ctx, small, large); err != nil {
		return err
	}
	for instances := 1; instances <= 2; instances++ {
		if instances == 2 {
			if err := large.startInstance(ctx); err != nil {
				return err
			}
		}
		if err := c.compare(ctx, s.Rounds, small, large, result); err != nil {
			return err
		}
		if instances == 1 {
			if err := small.measureReports(ctx, c.Rate, c.Reporting); err != nil {
				return err
			}
		}
		if err := large.measureReports(ctx, c.Rate, c.Reporting); err != nil {
			return err
		}
	}
	for _, w := range []*scaleWorld{small, large} {
		if err := errors.Join(w.measureLists(ctx), w.countConnections(ctx), w.stop()); err != nil {
			return err
		}
	}
	for _, w := range []*scaleWorld{small, large} {
		if err := w.measureSweep(ctx); err != nil {
			return err
		}
	}
	return result.check()
}

// idleTime is twice the interval of the sweep, in the usual form of the measurement.
func (c *Scale) idleTime() time.Duration { return min(10*time.Second, c.Reporting) }

// idle measures both worlds concurrently.
func (c *Scale) idle(ctx context.Context, worlds ...*scaleWorld) error {
	Say("idle for %v", c.idleTime())
	var ends []func() (map[string]Usage, error)
	for _, w := range worlds {
		used, err := w.reader.start(w.meters())
		if err != nil {
			return err
		}
		ends = append(ends, used)
	}
	world.Pause(ctx, c.idleTime())
	for i, w := range worlds {
		used, err := ends[i]()
		if err != nil {
			return err
		}
		w.result.Idle = used
	}
	return ctx.Err()
}

// compare has both worlds execute commands in turn.
func (c *Scale) compare(ctx context.Context, rounds int, small, large *scaleWorld, result *ScaleResult) error {
	v := Variant{Vehicles: large.vehicles, Listening: large.connected, Instances: len(large.instances)}
	if err := v.measure(rounds, fmt.Sprintf("of commands, %d instances", v.Instances),
		func() (Round, error) { return small.lock(ctx, c.InFlight, c.Duration) },
		func() (Round, error) { return large.lock(ctx, c.InFlight, c.Duration) }); err != nil {
		return err
	}
	result.Commands = append(result.Commands, v)
	return ctx.Err()
}

// check returns an error where commands, reports or presence were lost.
func (r *ScaleResult) check() error {
	failures := []error{(&GrowthResult{Variants: r.Commands}).check()}
	for _, w := range []ScaleWorld{r.Small, r.Large} {
		for _, failure := range w.Failures {
			failures = append(failures, fmt.Errorf("%d vehicles, %d connected: %s", w.Vehicles, w.Connected, failure))
		}
	}
	return errors.Join(failures...)
}
