package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"motorpool/lab/chaos/audit"
	"motorpool/lab/world"
	"motorpool/simulator"
	modules "motorpool/simulator/ovms"
	trackers "motorpool/simulator/teltonika"
	"motorpool/telematics"
	"motorpool/telematics/ovms"
	"motorpool/telematics/teltonika"
)

// makeup is how many cars of a fleet have which units: first those of protocol v1, then OVMS
// modules, then Teltonika units.
type makeup struct{ v1, ovms, teltonika int }

func (m makeup) cars() int { return m.v1 + m.ovms + m.teltonika }

func (m makeup) protocol(car int) telematics.Protocol {
	switch {
	case car <= m.v1:
		return telematics.DefaultProtocol
	case car <= m.v1+m.ovms:
		return ovms.Protocol
	}
	return teltonika.Protocol
}

// moduleTypes are the vehicle types of the modules, in turns: confirmed by the vehicle, confirmed
// and with a PIN that the module checks, confirmed by half, never confirmed, and a Twizy, which is
// only observed.
var moduleTypes = []string{"NL", "KN", "NL", "SQ", "RZ", "NL", "KN", ovms.Twizy}

const modulePIN = "4711"

// outputs is the wiring of the Teltonika units. Every third also has no CAN adapter, and no
// confirmation.
var outputs = telematics.Installation{
	"lock": "output 1 pulse 1s", "unlock": "output 2 pulse 1s", "disable-driving": "output 3 on", "enable-driving": "output 3 off",
	"horn": "output 4", "lights": "output 4",
}

func hasAdapter(car int) bool { return car%3 != 0 }

// installation returns how the unit of a car is installed.
func (m makeup) installation(car int) telematics.Installation {
	switch m.protocol(car) {
	case ovms.Protocol:
		return telematics.Installation{ovms.TypeKey: moduleTypes[car%len(moduleTypes)], ovms.PINKey: modulePIN}
	case teltonika.Protocol:
		wired := telematics.Installation{}
		for setting, value := range outputs {
			wired[setting] = value
		}
		if hasAdapter(car) {
			wired["lock-signal"] = "can"
		}
		return wired
	}
	return nil
}

// allowsBestEffort reports whether an agency lets commands open vehicles that may open late: one
// does.
func allowsBestEffort(agency telematics.AgencyID) bool { return agency == 1 }

// others returns the vehicles of protocols other than v1, for the audit.
func (m makeup) others() map[telematics.VehicleID]audit.Installed {
	all := map[telematics.VehicleID]audit.Installed{}
	for car := m.v1 + 1; car <= m.cars(); car++ {
		all[telematics.VehicleID(car)] = audit.Installed{
			Unit: unitOf(car), Protocol: m.protocol(car), Installation: m.installation(car),
			BestEffortUnlock: allowsBestEffort(agencyOf(car)),
		}
	}
	return all
}

// unit is a simulated car with its unit, of whatever protocol.
type unit interface {
	Connected() bool
	SetFaults(simulator.Faults)
	SetClock(simulator.Clock)
	Cut()
	Restart()
}

// turner is a unit whose car can be locked with its key, which the unit may notice.
type turner interface{ turn() }

// device is an OVMS module or a Teltonika unit.
type device struct {
	simulated
	ctx context.Context
}

type simulated interface {
	Run(context.Context) error
	Connected() bool
	Phase(context.Context) simulator.Phase
	Do(context.Context, func(*simulator.Body, *simulator.DeviceFaults))
	Cut(context.Context)
	Restart(context.Context)
}

// SetFaults sets the faults that a device can have. Instead of damaging messages, it loses them.
func (d device) SetFaults(f simulator.Faults) {
	d.Do(d.ctx, func(_ *simulator.Body, faults *simulator.DeviceFaults) {
		*faults = simulator.DeviceFaults{
			Stuck: f.Fail != simulator.Rule{}, Silent: f.Silent, Offline: f.Offline, Delay: f.Delay / 2,
			Late: f.Delay / 2, Reorder: reordered(f), Drop: max(f.Drop.Chance, f.Damage.Chance),
			DropAnswer: f.DropAnswer.Chance, Duplicate: f.Duplicate.Chance,
		}
	})
}

// SetClock does nothing: a device has the time from satellites.
func (d device) SetClock(simulator.Clock) {}
func (d device) Cut()                     { d.simulated.Cut(d.ctx) }
func (d device) Restart()                 { d.simulated.Restart(d.ctx) }
func (d device) turn() {
	d.Do(d.ctx, func(b *simulator.Body, _ *simulator.DeviceFaults) { b.Locked = !b.Locked })
}

// maxReorder is how long an answer is held back so that later ones overtake it.
const maxReorder = time.Second

func reordered(f simulator.Faults) time.Duration {
	if f.Reorder.Chance > 0 {
		return maxReorder
	}
	return 0
}

// otherEffort is how long these cars take to lock, in true time.
const otherEffort = 150 * time.Millisecond

// startOthers runs the units that do not speak protocol v1 until Close, and adds them to the cars.
func (r *round) startOthers(ctx context.Context, broker func(car int) string) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	run := func(car int, live func(context.Context) error) {
		running.Go(func() {
			world.Pause(ctx, time.Duration(car)*2*time.Millisecond)
			if err := live(ctx); err != nil {
				r.Fail(fmt.Errorf("unit of car %d: %w", car, err))
			}
		})
	}
	speed := r.unitSpeed()
	effort := time.Duration(float64(otherEffort) * speed)
	for car := r.fleet.v1 + 1; car <= r.fleet.cars(); car++ {
		installed, at := r.fleet.installation(car), simulator.Point{Latitude: 48.10 + float64(car)/5000, Longitude: 11.55}
		switch r.fleet.protocol(car) {
		case ovms.Protocol:
			body := simulator.ElectricCar(at)
			body.Locked, body.EnergyPercent = car%2 == 0, 80
			m := device{modules.New(modules.Config{
				Unit: unitOf(car), Password: r.UnitPassword(unitOf(car)), Broker: broker(car),
				Type: installed[ovms.TypeKey], PIN: modulePIN, Body: body, Day: r.dayOf(car),
				Recorder: &r.recorder, Speed: speed, Effort: effort, Seed: r.Seed,
			}), ctx}
			run(car, m.Run)
			r.cars = append(r.cars, m)
		case teltonika.Protocol:
			wiring := trackers.VanWiring
			wiring.CAN = hasAdapter(car)
			body := simulator.Van(at)
			body.Locked = car%2 == 0
			u := device{trackers.New(trackers.Config{
				Unit: unitOf(car), Password: r.UnitPassword(unitOf(car)), Broker: broker(car), Wiring: wiring,
				Body: body, Day: r.dayOf(car), Recorder: &r.recorder, Speed: speed, Effort: effort, Seed: r.Seed,
			}), ctx}
			run(car, u.Run)
			r.cars = append(r.cars, u)
		}
	}
	for car := r.fleet.v1 + 1; car <= r.fleet.cars(); car++ {
		r.cars[car-1].SetFaults(profileOf(car).Faults)
	}
	r.OnClose(func() error { stop(); running.Wait(); return nil })
}

// roundSpeed is how many seconds pass for these units in one of a round that is no day, so that
// several of their reconnections, resends and reports fit into it.
const roundSpeed = 10

// The parameters of a round of a day; dayRate is commands a second.
const (
	daySpeed    = 60
	dayVehicles = 100
	dayShare    = 25 // percent, of each protocol
	dayRate     = 8
)

func (r *round) unitSpeed() float64 {
	if r.Day {
		return daySpeed
	}
	return roundSpeed
}

// dayOf returns the day of a car; nil if the round is not one of a day. At any time there are cars
// in each phase.
func (r *round) dayOf(car int) *simulator.Day {
	if !r.Day {
		return nil
	}
	return simulator.NewDay(24 * time.Hour * time.Duration(car*7%24) / 24)
}

// inGarage reports whether a car stands in a garage without network, by its day.
func inGarage(c unit) bool {
	d, ok := c.(device)
	return ok && d.Phase(context.Background()) == simulator.Away
}

// keyEvery is the mean interval at which some car is locked or unlocked with its key; keysOfADay is
// that in a round of a day, in addition to the drivers of the day.
const (
	keyEvery   = 300 * time.Millisecond
	keysOfADay = 2 * time.Second
)

// useKeys lets drivers lock and unlock cars, which their units may report at any time.
func (r *round) useKeys(ctx context.Context) {
	rng, every := rand.New(rand.NewPCG(r.Seed, 0x6e7)), keyEvery
	if r.Day {
		every = keysOfADay
	}
	for ctx.Err() == nil {
		world.Pause(ctx, time.Duration(rng.Int64N(int64(2*every))))
		if len(r.cars) > r.fleet.v1 {
			if car, ok := r.cars[r.fleet.v1+rng.IntN(len(r.cars)-r.fleet.v1)].(turner); ok && ctx.Err() == nil {
				car.turn()
			}
		}
	}
}

// agencies returns the agencies of the fleet.
func agencies() (all []telematics.Agency) {
	for agency := range telematics.AgencyID(Agencies) {
		all = append(all, telematics.Agency{
			ID: agency + 1, Code: fmt.Sprintf("CHAOS%d", agency+1), Name: "Chaos", BestEffortUnlock: allowsBestEffort(agency + 1),
		})
	}
	return all
}
