package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"motorpool/cmd/internal/service"
	"motorpool/mosquitto"
	"motorpool/simulator"
	"motorpool/store"
	"motorpool/telematics"
)

// fleetOf is the record: every vehicle has all actions.
func fleetOf(vehicles int) store.FleetFile {
	var f store.FleetFile
	for agency := range telematics.AgencyID(agencies) {
		f.Agencies = append(f.Agencies, telematics.Agency{ID: agency + 1, Code: fmt.Sprintf("CHAOS%d", agency+1), Name: "Chaos"})
	}
	for car := 1; car <= vehicles; car++ {
		f.Vehicles = append(f.Vehicles, telematics.Vehicle{
			ID: telematics.VehicleID(car), AgencyID: agencyOf(car), Unit: unitOf(car), Status: telematics.Available,
			Powertrain: telematics.Combustion, Plate: fmt.Sprintf("C-HA %d", car), Actions: telematics.ControlActions,
		})
	}
	return f
}

func unitOf(car int) telematics.Unit { return telematics.Unit(fmt.Sprintf("car-%d", car)) }

const (
	reportInterval = 6 * time.Second
	quickEffort    = 40 * time.Millisecond  // that one movement of a part takes
	longEffort     = 600 * time.Millisecond // of cars that may restart: so they are at work when it happens
)

func effortOf(car int) time.Duration {
	if mayRestart(car) {
		return longEffort
	}
	return quickEffort
}

// profileOf gives most cars a good radio; some have a slow one, and a few teach the refusals.
func profileOf(car int) simulator.Profile {
	p := simulator.Profile{Actions: simulator.AllActions, Latency: simulator.Between(20*time.Millisecond, 400*time.Millisecond)}
	switch {
	case car%100 == 9:
		p.Name, p.Faults.Offline = "away", true
	case car%50 == 7:
		p.Name, p.Faults.Silent = "silent", true
	case car%50 == 21:
		driving, _ := simulator.Demo(6)
		p.Name, p.Body = "driving", driving.Body
	case car%50 == 31:
		p.Name, p.Faults.Fail = "tries, and fails", simulator.Always
	case car%25 == 3:
		p.Name, p.Latency = "slow radio", simulator.Between(time.Second, 6*time.Second)
	}
	return p
}

func (w *world) startCars(ctx context.Context) error {
	var groups [carGroups]string
	for group := range groups {
		var err error
		if groups[group], err = w.lines.Add(carsLine(group), w.mosquitto.UnitsURL()); err != nil {
			return err
		}
	}
	var configs []simulator.Config
	for car := 1; car <= w.Vehicles; car++ {
		configs = append(configs, simulator.Config{
			Unit: unitOf(car), Password: mosquitto.UnitPassword(unitSecret, string(unitOf(car))), Profile: profileOf(car),
			Broker: groups[groupOf(car)], Effort: effortOf(car), Boot: 300 * time.Millisecond,
		})
	}
	w.recorder = &simulator.Recorder{}
	w.ailments.of = map[int]map[*fault]func(*simulator.Faults){}
	w.fleet = simulator.NewFleet(simulator.FleetConfig{
		Keyring: w.keys.all, Recorder: w.recorder, Seed: w.Seed, Interval: reportInterval,
	}, configs...)
	living, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.fleet.Run(living); err != nil {
			w.fall(fmt.Errorf("cars: %w", err))
		}
	})
	w.later(func() error { stop(); running.Wait(); return nil })
	return w.carsConnected(ctx)
}

func (w *world) carsConnected(ctx context.Context) error {
	return service.Eventually(ctx, time.Minute, "all cars connected", func(context.Context) bool {
		for i, c := range w.fleet.Cars() {
			if !c.Connected() && profileOf(i+1).Name != "away" {
				return false
			}
		}
		return true
	})
}

// ailments is what is wrong with each car at the moment, beside its profile: faults of one car add up.
type ailments struct {
	mu sync.Mutex // guards of
	of map[int]map[*fault]func(*simulator.Faults)
}

// set changes a car's ailments, and returns all its faults.
func (a *ailments) set(car int, f *fault, ail func(*simulator.Faults)) simulator.Faults {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of[car] == nil {
		a.of[car] = map[*fault]func(*simulator.Faults){}
	}
	if ail == nil {
		delete(a.of[car], f)
	} else {
		a.of[car][f] = ail
	}
	faults := profileOf(car).Faults
	for _, add := range a.of[car] {
		add(&faults)
	}
	return faults
}

// ail is a fault of the radio or the application of some cars.
func ail(how func(*simulator.Faults, fault)) func(*world, context.Context, fault) error {
	return func(w *world, ctx context.Context, f fault) error {
		w.eachCar(f, func(car int, c *simulator.Car) {
			c.SetFaults(w.ailments.set(car, &f, func(faults *simulator.Faults) { how(faults, f) }))
		})
		pause(ctx, f.For)
		w.eachCar(f, func(car int, c *simulator.Car) { c.SetFaults(w.ailments.set(car, &f, nil)) })
		return nil
	}
}

// eachCar does something to every car that a fault strikes, at once: one that is busy holds up nobody else.
func (w *world) eachCar(f fault, do func(int, *simulator.Car)) {
	var all sync.WaitGroup
	for _, car := range f.Cars {
		all.Go(func() { do(car, w.fleet.Cars()[car-1]) })
	}
	all.Wait()
}

func (w *world) skewClocks(ctx context.Context, f fault) error {
	w.eachCar(f, func(_ int, c *simulator.Car) { c.SetClock(simulator.Clock{Skew: f.Skew}) })
	pause(ctx, f.For)
	w.eachCar(f, func(_ int, c *simulator.Car) { c.SetClock(simulator.Clock{}) })
	return nil
}

// restartCars takes their power away again and again, each time in the middle of a command where the car hears it.
func (w *world) restartCars(ctx context.Context, f fault) error {
	w.repeatedly(ctx, f, func(n, car int, c *simulator.Car) {
		d := newDraw(w.Seed, int(f.At)+times*car+n, w.Vehicles, w.Instances)
		w.load.errands.Go(func() { w.load.place(ctx, d, order{car: car, action: telematics.Lock, key: d.id()}) })
		pause(ctx, longEffort)
		c.Restart()
	})
	return nil
}

func (w *world) disconnectCars(ctx context.Context, f fault) error {
	w.repeatedly(ctx, f, func(_, _ int, c *simulator.Car) { c.Cut() })
	return nil
}

// times is how often what is done repeatedly is done.
const times = 3

// repeatedly does something to each car some times in the length of the fault, each at instants of its own.
func (w *world) repeatedly(ctx context.Context, f fault, do func(n, car int, c *simulator.Car)) {
	w.eachCar(f, func(car int, c *simulator.Car) {
		rng := rand.New(rand.NewPCG(w.Seed, uint64(car)))
		for n := range times {
			pause(ctx, time.Duration(rng.Int64N(int64(f.For/times))))
			if ctx.Err() == nil && profileOf(car).Name != "away" {
				do(n, car, c)
			}
		}
	})
}
