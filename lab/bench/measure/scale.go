package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"motorpool/lab/bench/load"
	"motorpool/lab/bench/report"
	"motorpool/lab/world"
)

// Scale measures a large fleet: the start of an instance with the presence of all units, memory,
// and what a command costs. Its floor is a small world of the same kind.
type Scale struct {
	Vehicles  int           `default:"1000000" placeholder:"N" help:"On record."`
	Connected int           `default:"100000" placeholder:"N" help:"Units, as far as open files allow."`
	Small     int           `default:"1000" placeholder:"N" help:"Vehicles of the small world, all of them connected."`
	History   int           `default:"0" placeholder:"N" help:"Entries of the audit log in the large world."`
	InFlight  int           `default:"64" placeholder:"N" help:"Concurrent commands."`
	Duration  time.Duration `default:"1s" placeholder:"DURATION" help:"Of a round of commands."`
}

// Measure implements Experiment.
func (c *Scale) Measure(ctx context.Context, s Setup, r *report.Results) (err error) {
	var sides []side
	for _, size := range []struct {
		name                      string
		fleet, connected, history int
	}{{"small", c.Small, min(c.Small, s.connections), 0}, {"large", c.Vehicles, min(c.Connected, c.Vehicles, s.connections), c.History}} {
		w, err := s.newWorld(ctx, size.fleet)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.Close()) }()
		if err := w.db.addHistory(ctx, size.history, size.fleet); err != nil {
			return err
		}
		to, start, err := w.startLarge(ctx, load.Spread(size.fleet, size.connected))
		if err != nil {
			return err
		}
		r.Add(os.Stdout, "Scale/start/side="+size.name, start)
		sides = append(sides, side{"Scale/commands/side=" + size.name, func() (report.Round, error) {
			return to.measure(ctx, c.InFlight, c.Duration)
		}})
	}
	// Short rounds: the speed of a virtual machine changes within seconds.
	return takeTurns(ctx, r, 3*s.Rounds, sides...)
}

// onlineWithin is how soon all units must be announced as online after the start of an instance.
const onlineWithin = 4 * time.Minute

// startLarge connects units, then starts an instance, and waits until it has announced all units as
// online.
func (w *testWorld) startLarge(ctx context.Context, connected load.Vehicles) (*traffic, report.Round, error) {
	begin := time.Now()
	to, err := w.newTraffic(ctx, &load.Units{Root: load.ServiceRoot, Vehicles: connected, Presence: true}, w.servers(), "")
	if err != nil {
		return nil, nil, err
	}
	round := report.Round{"vehicles": float64(w.fleet), "connected": float64(connected.Count), "s-connecting": time.Since(begin).Seconds()}
	used, err := w.start(ctx, to.processes)
	if err != nil {
		return nil, nil, err
	}
	begin = time.Now()
	n, err := w.serve(ctx)
	if err != nil {
		return nil, nil, err
	}
	round["s-until-ready"] = time.Since(begin).Seconds()
	to.url, to.processes["service"] = n.Public, []int{n.PID()}
	if err := world.Eventually(ctx, onlineWithin, fmt.Sprintf("%d units are online", connected.Count), func(ctx context.Context) bool {
		online, err := get[int](ctx, w.db, `select count(*) from units where announced = 'online'`)
		world.Pause(ctx, 200*time.Millisecond)
		return err == nil && online >= connected.Count
	}); err != nil {
		return nil, nil, err
	}
	round["s-until-online"] = time.Since(begin).Seconds()
	use, err := used()
	if err != nil {
		return nil, nil, err
	}
	use.per(1, "s", round)
	for _, name := range []string{"service", "redis", "mosquitto"} {
		bytes, _, err := resident(to.processes[name]...)
		if err != nil {
			return nil, nil, err
		}
		round["MB-"+name] = bytes / 1e6
	}
	return to, round, nil
}
