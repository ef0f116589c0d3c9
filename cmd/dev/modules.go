package main

import (
	"context"
	"sync"
	"time"

	"motorpool/simulator"
	modules "motorpool/simulator/ovms"
	"motorpool/telematics"
	"motorpool/telematics/ovms"
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

// startModules starts the modules, which outlive the service, as the cars do.
func (e *environment) startModules(ctx context.Context, unitsURL string) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, config := range e.fleet.modules(e.UnitPassword) {
		config.Broker, config.Logger = unitsURL, e.log
		running.Go(func() {
			if err := modules.New(config).Run(ctx); err != nil {
				e.log.Error("module ended", "unit", config.Unit, "err", err)
			}
		})
	}
	e.OnClose(func() error { stop(); running.Wait(); return nil })
}
