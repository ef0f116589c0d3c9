package measure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"motorpool/cmd/bench/load"
	"motorpool/simulator/world"
)

// Command measures what the service adds to the round trip of a command.
type Command struct {
	Vehicles int           `default:"1000" placeholder:"N" help:"That are locked in turn, each with an MQTT connection (default ${default})."`
	InFlight []int         `default:"1,4,16,64,256" placeholder:"N,…" help:"Concurrent commands (default ${default})."`
	Duration time.Duration `default:"4s" placeholder:"DURATION" help:"Of one round (default ${default})."`
	Floors   bool          `default:"true" negatable:"" help:"Measure the floors."`
	Against  string        `placeholder:"FILE" help:"Another build of the service, measured in turns with that of --binary."`
}

// CommandResult is what Command measured.
type CommandResult struct {
	Vehicles int         `json:"vehicles"`
	Bytes    int         `json:"message_bytes"`
	At       []CommandAt `json:"at"`
}

// CommandAt is what was measured with a number of commands in flight.
type CommandAt struct {
	InFlight int     `json:"in_flight"`
	Floor    []Round `json:"floor"`
	Fair     []Round `json:"fair_floor"`
	Service  []Round `json:"service"`
	Against  []Round `json:"against,omitempty"`
}

// messageSize is the length of the floor's messages, about that of a signed command.
const messageSize = 460

// Measure implements Experiment.
func (c *Command) Measure(ctx context.Context, s Setup, r *Results) (err error) {
	r.Command = &CommandResult{Vehicles: c.Vehicles, Bytes: messageSize}
	t, err := s.newTraffic(ctx, c.Vehicles, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.world.Close()) }()
	var floors *commandFloors
	if c.Floors {
		if floors, err = t.world.newCommandFloors(ctx); err != nil {
			return err
		}
	}
	var other *traffic
	if c.Against != "" {
		s := s
		s.Binary = c.Against
		if other, err = s.newTraffic(ctx, c.Vehicles, r); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, other.world.Close()) }()
	}
	for _, inFlight := range c.InFlight {
		at := CommandAt{InFlight: inFlight}
		of := func(rounds *[]Round, measure func(context.Context, int, time.Duration) (Round, error)) side[Round] {
			return side[Round]{rounds, func() (Round, error) { return measure(ctx, inFlight, c.Duration) }}
		}
		sides := []side[Round]{of(&at.Service, t.lock)}
		if floors != nil {
			sides = append(sides, of(&at.Floor, floors.echo), of(&at.Fair, floors.handler))
		}
		if other != nil {
			sides = append(sides, of(&at.Against, other.lock))
		}
		if err := takeTurns(s.Rounds, fmt.Sprintf("%d commands in flight", inFlight), sides...); err != nil {
			return err
		}
		r.Command.At = append(r.Command.At, at)
	}
	return r.Command.check()
}

// check returns the errors of the service only: the tables show what a floor has refused.
func (r *CommandResult) check() error {
	var failures []error
	for _, at := range r.At {
		for _, round := range append(at.Service, at.Against...) {
			if err := round.check(); err != nil {
				failures = append(failures, fmt.Errorf("%d in flight: %w", at.InFlight, err))
			}
		}
	}
	return errors.Join(failures...)
}

// traffic is vehicles that are locked through instances of the service.
type traffic struct {
	world     *testWorld
	vehicles  load.Vehicles
	instances []*world.Instance
	units     *load.Process
	processes meters
}

// newTraffic returns traffic in a new world, whose vehicles have been locked before: the first
// command to a vehicle costs more.
func (s Setup) newTraffic(ctx context.Context, vehicles int, r *Results) (*traffic, error) {
	w, err := s.newWorld(ctx, vehicles, r)
	if err != nil {
		return nil, err
	}
	t, err := w.startTraffic(ctx, load.Spread(vehicles, vehicles), 1)
	if err == nil {
		w.OnClose(t.close)
		_, err = t.lock(ctx, min(64, vehicles), 2*time.Second)
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return t, nil
}

// startTraffic starts instances of the service, and the units of vehicles, each with an MQTT
// connection.
func (w *testWorld) startTraffic(ctx context.Context, vehicles load.Vehicles, instances int) (*traffic, error) {
	t := &traffic{world: w, vehicles: vehicles}
	for range instances {
		n, err := w.serve(ctx)
		if err != nil {
			return nil, err
		}
		t.instances = append(t.instances, n)
	}
	t.processes = w.processes(t.instances...)
	var err error
	if t.units, err = w.startUnits(ctx, &load.Units{Root: load.ServiceRoot, Vehicles: vehicles, Connections: vehicles.Count, Keyring: w.Path(world.KeyringFile)}); err != nil {
		return nil, err
	}
	t.processes["cars"] = t.units.PID()
	return t, nil
}

// close ends the units and the instances.
func (t *traffic) close() error {
	err := t.units.Close()
	for _, n := range t.instances {
		err = errors.Join(err, n.Close())
	}
	return err
}

// lock locks the vehicles in turn, with a number of commands in flight at each instance.
func (t *traffic) lock(ctx context.Context, inFlight int, d time.Duration) (Round, error) {
	var urls []string
	for _, n := range t.instances {
		urls = append(urls, n.Public)
	}
	requests := t.world.requests(http.MethodPost, load.LockPath, t.vehicles, inFlight*len(urls), urls...)
	return t.world.measure(ctx, requests, d, t.processes, lockAction)
}

// commandFloors are the floors of commands, with their units.
type commandFloors struct {
	world    *testWorld
	vehicles load.Vehicles
	cars     map[string]int // process ids of the units by root
}

func (w *testWorld) newCommandFloors(ctx context.Context) (*commandFloors, error) {
	f := &commandFloors{w, load.Spread(w.fleet, w.fleet), map[string]int{}}
	for root, keyring := range map[string]string{load.FloorRoot: "", load.FairRoot: w.Path(world.KeyringFile)} {
		units, err := w.startUnits(ctx, &load.Units{Root: root, Vehicles: f.vehicles, Connections: w.fleet, Keyring: keyring})
		if err != nil {
			return nil, err
		}
		w.OnClose(units.Close)
		f.cars[root] = units.PID()
	}
	return f, nil
}

func (f *commandFloors) echo(ctx context.Context, inFlight int, d time.Duration) (Round, error) {
	return f.world.measure(ctx, func(d time.Duration) load.Job {
		return &EchoFloor{Broker: f.world.gateway(), Vehicles: f.vehicles, InFlight: inFlight, Bytes: messageSize, For: d}
	}, d, meters{"mosquitto": f.world.Mosquitto.PID(), "cars": f.cars[load.FloorRoot]}, "")
}

func (f *commandFloors) handler(ctx context.Context, inFlight int, d time.Duration) (r Round, err error) {
	bare, url, err := load.Serve(ctx, &FairFloor{Broker: f.world.gateway(), Dir: f.world.Dir, Budget: 10 * time.Second})
	if err != nil {
		return r, err
	}
	r, err = f.world.measure(ctx, f.world.requests(http.MethodPost, load.LockPath, f.vehicles, inFlight, url), d,
		meters{"bare": bare.PID(), "mosquitto": f.world.Mosquitto.PID(), "cars": f.cars[load.FairRoot]}, "")
	return r, errors.Join(err, bare.Close())
}
