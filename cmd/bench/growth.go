package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// filesBeside are open in a process beside its connections to vehicles.
const filesBeside = 500

// growth measures whether a command costs more where the fleet is large, the history long, the vehicles' connections many, or two
// instances share the work. Beside the world that grows stands one that does not, and each round has a round of that beside it.
type growth struct {
	stage
	Vehicles  []int         `default:"1000,10000,100000" placeholder:"N,…" help:"On record: in the world that stays as it is, and first in the other one, and then there (default ${default})."`
	History   int           `default:"5000000" placeholder:"N" help:"Lines of the history, in the largest fleet (default ${default})."`
	Listening int           `default:"1000" placeholder:"N" help:"Vehicles that are connected and locked in turn (default ${default})."`
	Connected int           `default:"10000" placeholder:"N" help:"Vehicles that are connected in the last variant, as far as open files allow; 0: there is none (default ${default})."`
	InFlight  int           `default:"64" placeholder:"N" help:"Commands that wait at once at each instance (default ${default})."`
	Duration  time.Duration `default:"1s" placeholder:"DURATION" help:"Of one round: short, since what a machine is capable of changes within seconds (default ${default})."`
	Rounds    int           `default:"9" placeholder:"N" help:"Of each variant, and of the small world beside it (default ${default})."`
}

type growthResult struct {
	Machine  machine   `json:"machine"`
	InFlight int       `json:"in_flight"`
	Postgres string    `json:"postgres"`
	Variants []variant `json:"variants"`
	Growth   float64   `json:"growth"` // the largest median, of those with a history and one instance
}

// variant is what has grown, and what was measured of it.
type variant struct {
	Vehicles  int       `json:"vehicles"`
	History   int       `json:"history_lines"`
	Instances int       `json:"instances"`
	Listening int       `json:"listening"` // vehicles, each on a connection of its own
	Small     underLoad `json:"small"`
	Grown     underLoad `json:"grown"`
	Cost      spread    `json:"cost_ratio"` // of what a command takes of the service, Postgres and Redis, round by round
}

// underLoad is what was measured in one world.
type underLoad struct {
	Rounds    []callRound `json:"rounds"`
	Rest      []float64   `json:"at_rest"`   // milliseconds of CPU a second that its servers take while the load is on the other world
	Warmed    int64       `json:"warmed"`    // commands beside the rounds
	Done      int64       `json:"done"`      // commands, by the vehicles
	Repeated  int64       `json:"repeated"`  // messages to vehicles that had done them: an answer was late
	Connected int         `json:"connected"` // vehicles, still at the end
}

func (g growth) Run(ctx context.Context) error {
	result := growthResult{Machine: thisMachine(), InFlight: g.InFlight}
	err := g.measure(ctx, &result)
	return errors.Join(err, g.print(os.Stdout, result))
}

func (g growth) measure(ctx context.Context, result *growthResult) (err error) {
	if g.InFlight > min(g.Listening, g.Vehicles[0]) {
		return errors.New("a vehicle does one command at a time: there are more in flight than vehicles listen")
	}
	connected := 0
	if g.Connected > 0 {
		files, err := mayOpen(uint64(g.Connected) + filesBeside)
		if err != nil {
			return err
		}
		connected = max(0, min(g.Connected, int(files)-filesBeside))
	}
	small, err := g.newWorld(ctx, g.Vehicles[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, small.tearDown()) }()
	g.Binary = small.Binary
	large, err := g.newWorld(ctx, g.Vehicles[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, large.tearDown()) }()
	if result.Postgres, err = small.durable(ctx); err != nil {
		return err
	}
	return errors.Join(g.grow(ctx, small, large, connected, result), result.sound())
}

// grow lets one world grow step by step, and measures after each.
func (g growth) grow(ctx context.Context, small, large *world, connected int, result *growthResult) error {
	step := func(v variant) error {
		say("%s", v.name())
		err := g.compare(ctx, small, large, &v)
		result.add(v)
		return err
	}
	few := min(g.Listening, g.Vehicles[0])
	v := variant{Instances: 1, Listening: few}
	for _, v.Vehicles = range g.Vehicles {
		if err := large.enlarge(ctx, v.Vehicles); err != nil {
			return err
		}
		if err := step(v); err != nil {
			return err
		}
	}
	if v.History = g.History; v.History > 0 {
		if err := large.remember(ctx, v.History); err != nil {
			return err
		}
		if err := step(v); err != nil {
			return err
		}
	}
	v.Instances = 2
	if err := step(v); err != nil {
		return err
	}
	v.Instances, v.Listening = 1, min(connected, v.Vehicles)
	if v.Listening > few {
		return step(v)
	}
	if g.Connected > 0 {
		say("no more than %d vehicles can be connected: that was measured", v.Listening)
	}
	return nil
}

// enlarge brings the fleet on record to so many vehicles.
func (w *world) enlarge(ctx context.Context, vehicles int) error {
	if w.vehicles == vehicles {
		return nil
	}
	say("%d vehicles are put on record", vehicles)
	w.vehicles = vehicles
	return w.furnish(ctx)
}

// compare loads both worlds in turn, the other one first each time.
func (g growth) compare(ctx context.Context, small, large *world, v *variant) (err error) {
	s, err := small.inhabit(ctx, 1, g.Listening)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.leave(&v.Small)) }()
	l, err := large.inhabit(ctx, v.Instances, v.Listening)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.leave(&v.Grown)) }()
	for round := range g.Rounds {
		turns := []func() error{
			func() error { return g.load(ctx, s, l, &v.Small, &v.Grown) },
			func() error { return g.load(ctx, l, s, &v.Grown, &v.Small) },
		}
		if round%2 == 1 {
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			if err := turn(); err != nil {
				return err
			}
		}
	}
	return nil
}

// load runs a round in one world, and looks what the other one takes meanwhile.
func (g growth) load(ctx context.Context, in, other *inhabited, into, beside *underLoad) error {
	began := time.Now()
	before, err := other.meters.read()
	if err != nil {
		return err
	}
	r, err := in.order(ctx, g.InFlight, g.Duration)
	if err != nil {
		return err
	}
	after, err := other.meters.read()
	if err != nil {
		return err
	}
	rest := 0.0
	for _, u := range used(before, after) {
		rest += u.CPU * 1000 / time.Since(began).Seconds()
	}
	into.Rounds, into.Warmed = append(into.Rounds, r), into.Warmed+r.warmed
	beside.Rest = append(beside.Rest, rest)
	return nil
}

// add takes what was measured of a variant into the result.
func (r *growthResult) add(v variant) {
	if v.sound() == nil {
		v.Cost = spreadOf(pairs(v.Grown.Rounds, v.Small.Rounds, servingRatio))
	}
	r.Variants = append(r.Variants, v)
	if v.History > 0 && v.Instances == 1 {
		r.Growth = max(r.Growth, v.Cost.Median)
	}
}

// serving is microseconds of CPU a command, of what decides and remembers: of the service, all instances of it, Postgres and Redis.
func (r callRound) serving() float64 {
	return r.cost("service") + r.cost("service 2") + r.cost("postgres") + r.cost("redis")
}

func servingRatio(grown, small callRound) float64 { return grown.serving() / small.serving() }

// sound returns an error where a command was lost, was done twice, or is not in the history once.
func (r growthResult) sound() error {
	var failures []error
	for _, v := range r.Variants {
		if err := v.sound(); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", v.name(), err))
		}
	}
	return errors.Join(failures...)
}

func (v variant) sound() error {
	var failures []error
	if err := v.Small.sound(); err != nil {
		failures = append(failures, fmt.Errorf("the small world beside it: %w", err))
	}
	if err := v.Grown.sound(); err != nil {
		failures = append(failures, fmt.Errorf("the world that grew: %w", err))
	}
	if v.Grown.Connected < v.Listening {
		failures = append(failures, fmt.Errorf("%d vehicles were connected at the end", v.Grown.Connected))
	}
	return errors.Join(failures...)
}

func (u underLoad) sound() error {
	var failures []error
	answered := u.Warmed
	for _, round := range u.Rounds {
		answered += round.Answered
		if round.Refused > 0 {
			failures = append(failures, fmt.Errorf("%d not answered: %s", round.Refused, round.Why))
		}
		if round.Lines != round.Answered {
			failures = append(failures, fmt.Errorf("%d answered, %d lines in the history", round.Answered, round.Lines))
		}
	}
	if u.Done != answered {
		failures = append(failures, fmt.Errorf("%d answered, the vehicles did %d", answered, u.Done))
	}
	return errors.Join(failures...)
}
