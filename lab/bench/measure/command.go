package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"motorpool/cmd/dev/folder"
	"motorpool/lab/bench/floor"
	"motorpool/lab/bench/load"
	"motorpool/lab/bench/report"
	"motorpool/telematics"
)

// Command measures what the service adds to the round trip of a command, and what a command costs
// whose car takes seconds.
type Command struct {
	Vehicles int           `default:"1000" placeholder:"N" help:"That are locked in turn."`
	InFlight []int         `default:"1,4,16,64,256" placeholder:"N,…" help:"Concurrent commands."`
	Duration time.Duration `default:"4s" placeholder:"DURATION" help:"Of one round."`
	SlowCars int           `default:"1000" placeholder:"N" help:"Cars that take seconds, a command in flight each."`
	Slow     time.Duration `default:"20s" placeholder:"DURATION" help:"Of one round with these."`
	Work     time.Duration `default:"5s" placeholder:"DURATION" help:"What they take, in the median."`
	Floors   bool          `default:"true" negatable:"" help:"Measure the floors."`
}

// messageSize is the length of the echo floor's messages, about that of a signed command.
const messageSize = 460

// Measure implements Experiment.
func (c *Command) Measure(ctx context.Context, s Setup, r *report.Results) (err error) {
	w, err := s.newWorld(ctx, c.Vehicles+c.SlowCars)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	n, err := w.serve(ctx)
	if err != nil {
		return err
	}
	fast, slow := load.Vehicles{First: 1, Count: c.Vehicles, Every: 1}, load.Vehicles{First: c.Vehicles + 1, Count: c.SlowCars, Every: 1}
	targets := map[string]*traffic{}
	units := &load.Units{Root: load.ServiceRoot, Vehicles: fast}
	if targets["service"], err = w.newTraffic(ctx, units, w.servers(n), n.Public); err != nil {
		return err
	}
	// The first command to a vehicle costs more.
	if _, err := targets["service"].lock(ctx, load.Calls{Workers: min(64, c.Vehicles), For: c.Duration}); err != nil {
		return err
	}
	if c.Floors {
		if targets["echo"], err = w.newTraffic(ctx, &load.Units{Root: load.EchoRoot, Vehicles: fast}, w.bareServers(), ""); err != nil {
			return err
		}
		fair := &floor.Handler{Root: load.FairRoot}
		if targets["fair"], err = w.newFloor(ctx, fair, &load.Units{Vehicles: fast}, w.bareServers()); err != nil {
			return err
		}
		durable := &floor.Handler{Root: load.DurableRoot, Postgres: w.Postgres.URL(), Redis: w.Redis.URL()}
		if targets["durable"], err = w.newFloor(ctx, durable, &load.Units{Vehicles: fast}, w.servers()); err != nil {
			return err
		}
	}
	var failures []error
	for _, inFlight := range c.InFlight {
		var sides []side
		for _, name := range slices.Sorted(maps.Keys(targets)) {
			sides = append(sides, side{fmt.Sprintf("Command/in-flight=%d/side=%s", inFlight, name), func() (report.Round, error) {
				return targets[name].measure(ctx, inFlight, c.Duration)
			}})
		}
		failures = append(failures, takeTurns(ctx, r, s.Rounds, sides...))
	}
	to, err := w.newTraffic(ctx, &load.Units{Root: load.ServiceRoot, Vehicles: slow, Work: load.Latency(c.Work)}, w.servers(n), n.Public)
	if err != nil {
		return err
	}
	to.wait = telematics.MaxBudget
	if _, err := to.lock(ctx, load.Calls{Workers: c.SlowCars}); err != nil {
		return err
	}
	failures = append(failures, takeTurns(ctx, r, s.Rounds, side{"Command/cars=slow/side=service", func() (report.Round, error) {
		return to.lock(ctx, load.Calls{Workers: c.SlowCars, For: c.Slow})
	}}))
	return errors.Join(failures...)
}

// traffic is commands to vehicles, through instances of the service or a floor.
type traffic struct {
	*testWorld
	units     *load.Process
	handler   *load.Process // of a floor
	processes processes
	vehicles  load.Vehicles
	url       string        // none: of the echo floor
	audited   bool          // each command has an entry in the audit log
	wait      time.Duration // for a vehicle
	first     int           // turn of the vehicles
}

// newTraffic starts units, each with an MQTT connection if nothing else is said. Close closes them
// at the latest.
func (w *testWorld) newTraffic(ctx context.Context, units *load.Units, to processes, url string) (t *traffic, err error) {
	units.Broker = w.gateway()
	units.Connections = cmp.Or(units.Connections, units.Vehicles.Count)
	if units.Root != load.EchoRoot {
		units.Keyring = w.Path(folder.KeyringFile)
	}
	t = &traffic{testWorld: w, vehicles: units.Vehicles, processes: to, url: url, audited: units.Root == load.ServiceRoot}
	if t.units, _, err = load.Serve(ctx, units); err != nil {
		return nil, err
	}
	w.OnClose(t.units.Close)
	to[cars] = []int{t.units.PID()}
	return t, nil
}

// newFloor starts a floor with a handler, and its units. Close closes them at the latest.
func (w *testWorld) newFloor(ctx context.Context, handler *floor.Handler, units *load.Units, to processes) (*traffic, error) {
	handler.Broker, handler.Dir, units.Root = w.gateway(), w.Dir, handler.Root
	handler.Budget = max(handler.Budget, telematics.DefaultBudget)
	p, url, err := load.Serve(ctx, handler)
	if err != nil {
		return nil, err
	}
	w.OnClose(p.Close)
	to["handler"] = []int{p.PID()}
	t, err := w.newTraffic(ctx, units, to, url)
	if err == nil {
		t.handler = p
	}
	return t, err
}

// measure locks the vehicles in turn, after a warm-up.
func (t *traffic) measure(ctx context.Context, inFlight int, d time.Duration) (report.Round, error) {
	if _, err := t.lock(ctx, load.Calls{Workers: inFlight, For: d / 8}); err != nil {
		return nil, err
	}
	return t.lock(ctx, load.Calls{Workers: inFlight, For: d})
}

// lock locks vehicles. It returns an error where the service has refused a call, or has no entry of
// it in the audit log; what a floor has refused is a figure.
func (t *traffic) lock(ctx context.Context, calls load.Calls) (report.Round, error) {
	last, err := get[int64](ctx, t.db, `select coalesce(max(id), 0) from activity`)
	if err != nil {
		return nil, err
	}
	used, err := t.start(ctx, t.processes)
	if err != nil {
		return nil, err
	}
	var job load.Job = &floor.Echo{Calls: calls, Broker: t.gateway(), Vehicles: t.vehicles, Bytes: messageSize}
	if t.url != "" {
		job = &load.Requests{Calls: calls, URL: t.url, Token: t.token, Vehicles: t.vehicles, First: t.first, Wait: t.wait}
	}
	var called load.Called
	cpu, err := load.Do(ctx, job, &called)
	if err != nil {
		return nil, err
	}
	use, err := used()
	if err != nil {
		return nil, err
	}
	use[caller] = cpu.Seconds()
	t.first += int(called.Answered)/calls.Workers + 1
	round := report.Round{"ops/s": called.Rate, "p50-ms": called.P50, "p99-ms": called.P99, "refused": float64(called.Refused)}
	if calls.For == 0 {
		round["settled-p99-ms"] = called.Settled
	}
	use.per(float64(max(called.Answered, 1))/1e6, "µs", round)
	if !t.audited {
		return round, nil
	}
	entries, err := get[int64](ctx, t.db, `
		select count(*) from activity where id > $1 and action = 'command.lock' and outcome = 'executed'`, last)
	if err == nil && (called.Refused > 0 || entries != called.Answered) {
		err = fmt.Errorf("%d answered, %d refused (%s), %d audit log entries", called.Answered, called.Refused, called.Why, entries)
	}
	return round, err
}
