package money

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"motorpool/lab/chaos/runner"
	"motorpool/lab/world"
	"motorpool/rental"
	"motorpool/simulator"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// driving is a round of rentals: clients who compete for simulated cars book, start, pause, resume,
// extend and end rentals themselves.
type driving struct {
	*round
	accounts RentalEvidence
	running  *simulator.Fleet
	cars     []*simulator.Car // car n is that of vehicle n+1
	recorder simulator.Recorder
	rents    []*Rent
}

const (
	rentalsASecond = 2
	rentalsPerCar  = 4 // so that clients compete
	leastCars      = 24
	mostCars       = 120

	reportEvery = 5 * time.Second
	carBoot     = 300 * time.Millisecond
	carEffort   = 40 * time.Millisecond
)

// rentalTerms are those of agencies whose rentals cost by the minute. One charges the estimate when
// a rental starts, and refunds the rest; the other holds the deposit, and charges at the end.
// Reservations lapse, and starts give up, within the round.
var rentalTerms = map[telematics.AgencyID]rental.Terms{
	1: {Currency: "EUR", Tax: 190_000, PaymentWait: time.Minute, Rules: rulesOf(rental.ChargeEstimate)},
	2: {Currency: "JPY", Tax: 100_000, PaymentWait: time.Minute, Rules: rulesOf(rental.ChargeNothing)},
}

func rulesOf(c rental.StartCharging) rental.Rules {
	rules := rental.DefaultRules
	rules.ChargeAtStart, rules.HoldFor, rules.MaxOpenBookings = c, 1, 0
	return rules
}

// rentalPlans are their tariffs.
var rentalPlans = map[telematics.AgencyID]map[string]*rental.Plan{
	1: {"": {Minute: 31, Hour: 900, PauseMinute: 9}},
	2: {"": {Minute: 40, PauseMinute: 11, Minimum: 150, Deposit: 20_000}},
}

// Rentals returns rounds of rentals, of three instances by default. Rentals begin and faults happen
// for the duration, by default a second for two rentals, and at least 15 s.
func Rentals(p Plan) runner.Kind {
	return func(w *world.World, c runner.Config) (runner.Round, error) {
		common, err := newRound(w, c, p, "rentals", c.Rentals, rentalsASecond)
		if err != nil {
			return runner.Round{}, err
		}
		r := &driving{round: common}
		r.faults = append(r.faults, r.carFaults()...)
		fleet := r.fleet()
		return runner.Round{
			Starts: fmt.Sprintf("servers, %d instances and %d cars; %d rentals", r.Instances, len(fleet.Vehicles), c.Rentals),
			World: []world.Step{
				{What: "servers", Do: r.startServers},
				{What: "clients", Do: func(ctx context.Context) error { return r.createClients(ctx, fleet, r.Rentals) }},
				{What: "instances", Do: r.startInstances},
				{What: "cars", Do: func(ctx context.Context) error { return r.startCars(ctx, fleet.Vehicles) }},
			},
			Load: r.load, Faults: r.injectFaults, Settle: r.collect, Check: r.result,
		}, nil
	}
}

// fleet is the vehicles that clients compete for.
func (r *driving) fleet() vehicles.FleetFile {
	cars := min(max(r.Rentals/rentalsPerCar, leastCars), mostCars)
	f := fleetOf(rentalTerms, cars, func(i int) (telematics.Unit, rental.Rate) {
		return telematics.Unit(fmt.Sprintf("car-%d", i+1)), rental.Rate{Hourly: 1000}
	})
	f.Tariffs, r.units = rentalPlans, world.Units(f.Vehicles)
	return f
}

// startCars runs cars that are locked and immobilised, until Close.
func (r *driving) startCars(ctx context.Context, all []telematics.Vehicle) error {
	var configs []simulator.Config
	for _, v := range all {
		body := simulator.Hatchback(simulator.Point{Latitude: 48.1374, Longitude: 11.5755})
		body.Immobilizer = simulator.Engaged
		configs = append(configs, simulator.Config{
			Unit: v.Unit, Password: r.UnitPassword(v.Unit), Broker: r.Mosquitto.UnitsURL(), Boot: carBoot, Effort: carEffort,
			Profile: simulator.Profile{
				Actions: simulator.AllActions, Body: body, Latency: simulator.Between(20*time.Millisecond, 300*time.Millisecond),
			},
		})
	}
	r.running = r.StartCars(ctx, r.Fail, simulator.FleetConfig{
		Keyring: r.Signing.Keyring(), Recorder: &r.recorder, Seed: r.Seed, Interval: reportEvery,
	}, configs...)
	r.cars = r.running.Cars()
	return world.AllConnected(ctx, r.running)
}

// carFaults are the faults of cars, each of a tenth of them, and of Mosquitto.
func (r *driving) carFaults() []fault {
	of := func(name string, every time.Duration, strike func(context.Context, *rand.Rand, []*simulator.Car)) fault {
		noProcess := func(*round) process { return nil }
		do := func(_ *round, ctx context.Context, rng *rand.Rand, _ process) error {
			strike(ctx, rng, r.someCars(rng))
			return nil
		}
		return fault{name: name, every: every, least: 1, of: noProcess, do: do}
	}
	broken := func(name string, every time.Duration, f simulator.Faults) fault {
		return of(name, every, func(ctx context.Context, rng *rand.Rand, cars []*simulator.Car) {
			eachOf(cars, func(c *simulator.Car) { c.SetFaults(f) })
			world.Pause(ctx, 2*time.Second+time.Duration(rng.Int64N(int64(14*time.Second))))
			eachOf(cars, func(c *simulator.Car) { c.SetFaults(simulator.Faults{}) })
		})
	}
	often := 12 * time.Second
	return []fault{
		broken("commands to cars lost", often, simulator.Faults{Drop: simulator.Rule{Chance: 0.7}}),
		broken("answers of cars lost", often, simulator.Faults{DropAnswer: simulator.Rule{Chance: 0.8}}),
		broken("answers of cars late", often, simulator.Faults{Late: 13 * time.Second}),
		broken("cars silent", 2*often, simulator.Faults{Silent: true}),
		broken("cars offline", 2*often, simulator.Faults{Offline: true}),
		broken("cars try, and fail", 2*often, simulator.Faults{Fail: simulator.Rule{Chance: 0.6}}),
		of("cars restarted", often, func(_ context.Context, _ *rand.Rand, cars []*simulator.Car) {
			eachOf(cars, (*simulator.Car).Restart)
		}),
		{name: "mosquitto killed", every: 30 * time.Second, least: 1, of: func(r *round) process { return r.Mosquitto }, do: kill},
	}
}

func (r *driving) someCars(rng *rand.Rand) (some []*simulator.Car) {
	for _, i := range rng.Perm(len(r.cars))[:max(2, len(r.cars)/10)] {
		some = append(some, r.cars[i])
	}
	return some
}

// eachOf calls a function for each car concurrently: a call may block while a car is busy.
func eachOf(cars []*simulator.Car, do func(*simulator.Car)) {
	var all sync.WaitGroup
	for _, c := range cars {
		all.Go(func() { do(c) })
	}
	all.Wait()
}

// collect waits until no transition is open and nothing is due any more, and collects the accounts.
func (r *driving) collect(ctx context.Context) error {
	begin := time.Now()
	eachOf(r.cars, func(c *simulator.Car) {
		c.SetFaults(simulator.Faults{})
		c.Change(func(b *simulator.Body) { b.Opened = nil })
	})
	if err := errors.Join(world.AllConnected(ctx, r.running), r.settle(ctx)); err != nil {
		return err
	}
	r.settled = time.Since(begin)
	record, err := r.read(ctx)
	if err != nil {
		return err
	}
	r.accounts = RentalEvidence{
		Evidence: Evidence{Record: record, Ledger: r.processor.Ledger()}, Events: r.recorder.Events(), ReadAt: time.Now(),
	}
	for _, rent := range r.rents {
		r.accounts.Rents = append(r.accounts.Rents, *rent)
	}
	return r.readRentals(ctx)
}
