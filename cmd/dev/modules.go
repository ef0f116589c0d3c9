package main

import (
	"context"
	"sync"
	"time"

	"motorpool/simulator"
	modules "motorpool/simulator/ovms"
	trackers "motorpool/simulator/teltonika"
	"motorpool/telematics"
	"motorpool/telematics/ovms"
	"motorpool/telematics/teltonika"
)

// moduleWaits is the shortest time that the firmware waits for a stable network.
const moduleWaits = 3 * time.Second

// modules returns the simulated cars with an OVMS module. The module is set up as its record says.
func (f fleet) modules(password func(telematics.Unit) string) []modules.Config {
	var all []modules.Config
	for _, v := range f.record.Vehicles {
		if v.Protocol == ovms.Protocol && f.simulates(v.ID) {
			body := simulator.ElectricCar(simulator.Point{Latitude: 48.1487, Longitude: 11.5680})
			body.Locked = false
			all = append(all, modules.Config{
				Unit: v.Unit, Password: password(v.Unit), Type: v.Installation[ovms.TypeKey], PIN: v.Installation[ovms.PINKey],
				Body: body, StableWait: moduleWaits,
			})
		}
	}
	return all
}

// trackers returns the simulated vehicles with a Teltonika unit, wired as the demo fleet's record
// says.
func (f fleet) trackers(password func(telematics.Unit) string) []trackers.Config {
	var all []trackers.Config
	for _, v := range f.record.Vehicles {
		if v.Protocol == teltonika.Protocol && f.simulates(v.ID) {
			van := simulator.Van(simulator.Point{Latitude: 48.1290, Longitude: 11.5860})
			van.Locked = false
			all = append(all, trackers.Config{Unit: v.Unit, Password: password(v.Unit), Wiring: trackers.VanWiring, Body: van})
		}
	}
	return all
}

// startUnits starts the units of other protocols. They outlive the service, as the cars do.
func (e *environment) startUnits(ctx context.Context, unitsURL string) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	start := func(unit telematics.Unit, run func(context.Context) error) {
		running.Go(func() {
			if err := run(ctx); err != nil {
				e.log.Error("unit ended", "unit", unit, "err", err)
			}
		})
	}
	for _, config := range e.fleet.modules(e.UnitPassword) {
		config.Broker, config.Logger = unitsURL, e.log
		start(config.Unit, modules.New(config).Run)
	}
	for _, config := range e.fleet.trackers(e.UnitPassword) {
		config.Broker, config.Logger = unitsURL, e.log
		start(config.Unit, trackers.New(config).Run)
	}
	e.OnClose(func() error { stop(); running.Wait(); return nil })
}
