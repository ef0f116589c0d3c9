package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"motorpool/lab/world"
	"motorpool/simulator"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// fleetOf returns the agencies and vehicles.
func fleetOf(m makeup) vehicles.FleetFile {
	f := vehicles.FleetFile{Agencies: agencies()}
	for car := 1; car <= m.cars(); car++ {
		v := world.Vehicle(car, agencyOf(car), unitOf(car))
		if p := m.protocol(car); p != telematics.DefaultProtocol {
			v.Protocol, v.Installation = p, m.installation(car)
		}
		f.Vehicles = append(f.Vehicles, v)
	}
	return f
}

// agencyOf gives each agency cars of every kind of profile.
func agencyOf(car int) telematics.AgencyID { return telematics.AgencyID(1 + car/10%Agencies) }

func unitOf(car int) telematics.Unit { return telematics.Unit(fmt.Sprintf("car-%d", car)) }

const (
	reportInterval = 6 * time.Second
	// A report repeats the last eight results [TEL-3], which must have those of lost commands.
	shortInterval = 2 * time.Second
	shortEffort   = 40 * time.Millisecond // for one movement of a part
	// Cars that may restart take that long, so that they restart during a command.
	longEffort = 600 * time.Millisecond
)

func effortOf(car int) time.Duration {
	if MayRestart(car) {
		return longEffort
	}
	return shortEffort
}

// profileOf gives most cars a good radio; some have a slow one, and a few cannot execute commands.
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
		p.Name, p.Faults.Fail = "fails", simulator.Always
	case car%25 == 3:
		p.Name, p.Latency = "slow radio", simulator.Between(time.Second, 6*time.Second)
	}
	return p
}

func (r *round) startCars(ctx context.Context) error {
	var groups [CarGroups]string
	for group := range groups {
		var err error
		if groups[group], err = r.lines.Add(CarsLine(group), r.Mosquitto.UnitsURL()); err != nil {
			return err
		}
	}
	var configs []simulator.Config
	for car := 1; car <= r.fleet.v1; car++ {
		configs = append(configs, simulator.Config{
			Unit: unitOf(car), Password: r.UnitPassword(unitOf(car)), Profile: profileOf(car), Radio: r.radio,
			Broker: groups[car%CarGroups], Effort: effortOf(car), Boot: 300 * time.Millisecond,
		})
	}
	r.carFaults.of = map[int]map[*Fault]func(*simulator.Faults){}
	interval := reportInterval
	if r.single() == PostgresAsync {
		interval = shortInterval
	}
	fleet := r.StartCars(ctx, r.Fail, simulator.FleetConfig{
		Keyring: r.keys.all, Recorder: &r.recorder, Seed: r.Seed, Interval: interval,
	}, configs...)
	for _, c := range fleet.Cars() {
		r.cars = append(r.cars, c)
	}
	r.startOthers(ctx, func(car int) string { return groups[car%CarGroups] })
	return r.carsConnected(ctx)
}

func (r *round) carsConnected(ctx context.Context) error {
	return world.Eventually(ctx, time.Minute, "all cars connected", func(context.Context) bool {
		for i, c := range r.cars {
			if !c.Connected() && profileOf(i+1).Name != "away" && !inGarage(c) {
				return false
			}
		}
		return true
	})
}

// carFaults are the present faults of each car, in addition to those of its profile.
type carFaults struct {
	mu sync.Mutex // guards of
	of map[int]map[*Fault]func(*simulator.Faults)
}

// set adds a fault to a car, or removes it (nil), and returns all its faults.
func (c *carFaults) set(car int, f *Fault, add func(*simulator.Faults)) simulator.Faults {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[car] == nil {
		c.of[car] = map[*Fault]func(*simulator.Faults){}
	}
	if add == nil {
		delete(c.of[car], f)
	} else {
		c.of[car][f] = add
	}
	faults := profileOf(car).Faults
	for _, add := range c.of[car] {
		add(&faults)
	}
	return faults
}

// breakCars returns an injector for a fault of the radio or the application of some cars.
func breakCars(set func(faults *simulator.Faults, amount int64)) func(*round, context.Context, Fault) error {
	return func(r *round, ctx context.Context, f Fault) error {
		r.eachCar(f, func(car int, c unit) {
			c.SetFaults(r.carFaults.set(car, &f, func(faults *simulator.Faults) { set(faults, f.Amount) }))
		})
		world.Pause(ctx, f.For)
		r.eachCar(f, func(car int, c unit) { c.SetFaults(r.carFaults.set(car, &f, nil)) })
		return nil
	}
}

// eachCar calls a function for every car that a fault strikes, concurrently, as a call may block
// while a car is busy.
func (r *round) eachCar(f Fault, do func(int, unit)) {
	var all sync.WaitGroup
	for _, car := range f.Cars {
		all.Go(func() { do(car, r.cars[car-1]) })
	}
	all.Wait()
}

func (r *round) skewClocks(ctx context.Context, f Fault) error {
	r.eachCar(f, func(_ int, c unit) { c.SetClock(simulator.Clock{Skew: time.Duration(f.Amount) * time.Millisecond}) })
	world.Pause(ctx, f.For)
	r.eachCar(f, func(_ int, c unit) { c.SetClock(simulator.Clock{}) })
	return nil
}

// restartCars restarts each car several times, during a command if the car receives it.
func (r *round) restartCars(ctx context.Context, f Fault) error {
	r.repeatedly(ctx, f, func(n, car int, c unit) {
		d := newDraw(r.Seed, int(f.At)+repetitions*car+n, r.fleet, r.Instances)
		r.load.background.Go(func() { r.load.send(ctx, d, order{car: car, action: telematics.Lock, key: d.id()}) })
		world.Pause(ctx, longEffort)
		c.Restart()
	})
	return nil
}

func (r *round) disconnectCars(ctx context.Context, f Fault) error {
	r.repeatedly(ctx, f, func(_, _ int, c unit) { c.Cut() })
	return nil
}

const repetitions = 3

// repeatedly calls a function several times for each car, at random times during the fault.
func (r *round) repeatedly(ctx context.Context, f Fault, do func(n, car int, c unit)) {
	r.eachCar(f, func(car int, c unit) {
		rng := rand.New(rand.NewPCG(r.Seed, uint64(car)))
		for n := range repetitions {
			world.Pause(ctx, time.Duration(rng.Int64N(int64(f.For/repetitions))))
			if ctx.Err() == nil && profileOf(car).Name != "away" {
				do(n, car, c)
			}
		}
	})
}

// sessions is how many sessions a car has after one that an instance stores late: more than are
// remembered.
const sessions = 6

// delayPresence lets an instance, which does not reach Postgres, hear the first of several sessions
// of each car of protocol v1 and no later one, and store it when the other instances have stored
// the last one.
func (r *round) delayPresence(ctx context.Context, f Fault) error {
	i := r.instance(f.Target)
	defer r.uptime.down(i)()
	database, mosquitto := r.lines[ServerLine(i, Postgres)], r.lines[ServerLine(i, Mosquitto)]
	database.Cut()
	for n := range sessions {
		r.eachCar(f, func(car int, c unit) {
			if car <= r.fleet.v1 && profileOf(car).Name != "away" {
				c.Cut()
			}
		})
		if err := r.carsConnected(ctx); err != nil {
			return err
		}
		world.Pause(ctx, heardWithin)
		if n == 0 {
			mosquitto.Cut()
		}
	}
	if err := database.Mend(); err != nil {
		return err
	}
	world.Pause(ctx, storedWithin)
	return mosquitto.Mend()
}

const (
	// heardWithin is how long a presence is on its way at most, and storedWithin how long an
	// instance takes to store it when Postgres is back.
	heardWithin  = 500 * time.Millisecond
	storedWithin = 4 * time.Second
)
