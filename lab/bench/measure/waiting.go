package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"motorpool/lab/bench/floor"
	"motorpool/lab/bench/load"
	"motorpool/lab/bench/report"
	"motorpool/lab/world"
	"motorpool/telematics"
)

// Waiting measures very many concurrent commands that wait for their vehicles: memory of each, and
// how long an answer takes to its caller. Its floor is the fair floor of commands. No vehicle
// answers until 2 s after the last command: with the default network a longer ramp is too long.
type Waiting struct {
	Vehicles int           `default:"20000" placeholder:"N" help:"That are locked, as far as open files allow."`
	Network  time.Duration `default:"5s" placeholder:"DURATION" help:"Median latency of the vehicles' network."`
	Ramp     time.Duration `default:"16s" placeholder:"DURATION" help:"From the first command to the last."`
}

const (
	connections = 20              // of the vehicles to the MQTT broker
	waitingWarm = 256             // commands before the measurement
	rampSlack   = 2 * time.Second // between the last command and the first answer
	restTime    = 3 * time.Second // before idle memory is read
)

// Measure implements Experiment.
func (c *Waiting) Measure(ctx context.Context, s Setup, r *report.Results) (err error) {
	w, err := s.newWorld(ctx, min(c.Vehicles, s.connections))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return takeTurns(ctx, r, s.Rounds,
		side{"Waiting/side=fair", func() (report.Round, error) {
			handler := &floor.Handler{Root: load.FairRoot, Budget: telematics.MaxBudget}
			to, err := w.newFloor(ctx, handler, c.units(w, load.FairRoot), w.bareServers())
			if err != nil {
				return nil, err
			}
			round, err := c.round(ctx, to, to.processes["handler"][0])
			return round, errors.Join(err, to.handler.Close())
		}},
		side{"Waiting/side=service", func() (report.Round, error) {
			if err := w.db.connectUnits(ctx); err != nil {
				return nil, err
			}
			n, err := w.serve(ctx)
			if err != nil {
				return nil, err
			}
			to, err := w.newTraffic(ctx, c.units(w, load.ServiceRoot), w.servers(n), n.Public)
			if err != nil {
				return nil, err
			}
			round, err := c.round(ctx, to, n.PID())
			return round, errors.Join(err, n.Close())
		}})
}

// units return the units of all vehicles, of which the first answers after the last command.
func (c *Waiting) units(w *testWorld, root string) *load.Units {
	network := load.Latency(c.Network)
	return &load.Units{
		Root: root, Vehicles: load.Spread(w.fleet, w.fleet), Connections: min(connections, w.fleet),
		Network: network, Hold: max(c.Ramp+rampSlack-network.Least(), 0),
	}
}

// round locks all vehicles concurrently, after a warm-up. The process is new: one that had this
// load before has memory left of it.
func (c *Waiting) round(ctx context.Context, to *traffic, process int) (report.Round, error) {
	all, warm := to.vehicles, load.Spread(to.fleet, waitingWarm)
	to.wait, to.vehicles = telematics.MaxBudget, warm
	if _, err := to.lock(ctx, load.Calls{Workers: warm.Count}); err != nil {
		return nil, err
	}
	if !to.setup.Tiny {
		world.Pause(ctx, restTime)
	}
	before, _, err := resident(process)
	if err != nil {
		return nil, err
	}
	to.vehicles, to.first = all, 0
	round, failure := to.lock(ctx, load.Calls{Workers: all.Count, Over: c.Ramp})
	_, most, err := resident(process)
	var heard load.Heard
	if err = errors.Join(failure, err, to.units.Finish(&heard)); round == nil {
		return nil, err
	}
	round["KiB-each"], round["MB-most"], round["repeated"] = (most-before)/1024/float64(all.Count), most/1e6, float64(heard.Repeated)
	if executed := heard.Executed - int64(warm.Count); executed != int64(all.Count) {
		err = errors.Join(err, fmt.Errorf("%d commands, %d executed", all.Count, executed))
	}
	return round, err
}
