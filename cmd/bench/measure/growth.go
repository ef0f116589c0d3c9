package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"motorpool/cmd/bench/load"
)

// Growth measures whether a command costs more with a large fleet, a long history, many connected
// vehicles, or two instances. Each round has a round of a small world, which stays as it is.
type Growth struct {
	Vehicles  []int         `default:"1000,10000,100000" placeholder:"N,…" help:"Sizes of the fleet; the first one is also that of the small world (default ${default})."`
	History   int           `default:"5000000" placeholder:"N" help:"Entries of the audit log, with the largest fleet (default ${default})."`
	Listening int           `default:"1000" placeholder:"N" help:"Vehicles that are connected and locked in turn (default ${default})."`
	Connected int           `default:"10000" placeholder:"N" help:"Vehicles that are connected in the last variant, as far as open files allow; 0: leave it out (default ${default})."`
	InFlight  int           `default:"64" placeholder:"N" help:"Concurrent commands at each instance (default ${default})."`
	Duration  time.Duration `default:"1s" placeholder:"DURATION" help:"Of one round: short, since the speed of a virtual machine changes within seconds (default ${default})."`
}

// growthRounds is how many short rounds replace one round of the setup.
const growthRounds = 3

// GrowthResult is what Growth measured.
type GrowthResult struct {
	InFlight int       `json:"in_flight"`
	Variants []Variant `json:"variants"`
}

// Variant is a world that has grown, and what was measured of it and of the small world.
type Variant struct {
	Vehicles  int     `json:"vehicles"`
	History   int     `json:"history_lines"`
	Instances int     `json:"instances"`
	Listening int     `json:"listening"`
	Small     []Round `json:"small"`
	Grown     []Round `json:"grown"`
	Cost      Spread  `json:"cost_ratio"` // of CPU time per command
}

func (v Variant) String() string {
	return fmt.Sprintf("%d vehicles, %d connected, %d audit log entries, %d instances", v.Vehicles, v.Listening, v.History, v.Instances)
}

// Serving is microseconds of CPU time per command, of all instances, Postgres and Redis.
func (r Round) Serving() float64 { return r.Cost("service", "service 2", "postgres", "redis") }

// Ratios compares the rounds of the world that grew with those of the small one.
func (v Variant) Ratios() []float64 {
	return Pairs(v.Grown, v.Small, func(grown, small Round) float64 { return grown.Serving() / small.Serving() })
}

// Measure implements Experiment.
func (g *Growth) Measure(ctx context.Context, s Setup, r *Results) (err error) {
	r.Growth = &GrowthResult{InFlight: g.InFlight}
	small, err := s.newWorld(ctx, g.Vehicles[0], r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, small.Close()) }()
	s.Binary = small.Binary
	large, err := s.newWorld(ctx, g.Vehicles[0], r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, large.Close()) }()
	variants, err := g.variants()
	if err != nil {
		return err
	}
	history := 0
	for _, v := range variants {
		Say("%v", v)
		if large.fleet != v.Vehicles {
			large.fleet = v.Vehicles
			if err := large.importFleet(ctx); err != nil {
				return err
			}
		}
		if history != v.History {
			history = v.History
			if err := large.db.addHistory(ctx, history, large.fleet); err != nil {
				return err
			}
		}
		err := g.compare(ctx, small, large, growthRounds*s.Rounds, &v)
		r.Growth.Variants = append(r.Growth.Variants, v)
		if err != nil {
			return err
		}
	}
	return r.Growth.check()
}

// variants are the steps by which the world grows.
func (g *Growth) variants() ([]Variant, error) {
	v := Variant{Instances: 1, Listening: min(g.Listening, g.Vehicles[0])}
	if g.InFlight > v.Listening {
		return nil, errors.New("--in-flight: a vehicle executes one command at a time, so there must be as many that listen")
	}
	var all []Variant
	for _, v.Vehicles = range g.Vehicles {
		all = append(all, v)
	}
	if v.History = g.History; g.History > 0 {
		all = append(all, v)
	}
	v.Instances = 2
	all = append(all, v)
	files, err := openFiles()
	if few := v.Listening; g.Connected > few {
		v.Instances, v.Listening = 1, min(g.Connected, v.Vehicles, files-reservedFiles)
		if v.Listening > few {
			all = append(all, v)
		}
	}
	return all, err
}

// compare loads both worlds in turn, the other one first each time.
func (g *Growth) compare(ctx context.Context, small, large *testWorld, rounds int, v *Variant) (err error) {
	s, err := small.startTraffic(ctx, load.Spread(small.fleet, g.Listening), 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	l, err := large.startTraffic(ctx, load.Spread(large.fleet, v.Listening), v.Instances)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	return v.measure(rounds, "short ones",
		func() (Round, error) { return s.lock(ctx, g.InFlight, g.Duration) },
		func() (Round, error) { return l.lock(ctx, g.InFlight, g.Duration) })
}

// measure measures both worlds, the other one first each time.
func (v *Variant) measure(rounds int, what string, small, grown func() (Round, error)) error {
	sides := []side[Round]{{&v.Small, small}, {&v.Grown, grown}}
	for n := range rounds {
		if err := takeTurns(1, fmt.Sprintf("%d of %d %s", n+1, rounds, what), sides...); err != nil {
			return err
		}
		slices.Reverse(sides)
	}
	v.Cost = SpreadOf(v.Ratios())
	return nil
}

func (r *GrowthResult) check() error {
	var failures []error
	for _, v := range r.Variants {
		for _, round := range append(v.Small, v.Grown...) {
			if err := round.check(); err != nil {
				failures = append(failures, fmt.Errorf("%v: %w", v, err))
			}
		}
	}
	return errors.Join(failures...)
}
