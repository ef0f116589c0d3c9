package main

import (
	"context"
	"sync"

	"motorpool/simulator"
	trackers "motorpool/simulator/teltonika"
	"motorpool/telematics"
	"motorpool/telematics/teltonika"
)

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

// startTrackers starts the Teltonika units, which outlive the service, as the cars do.
func (e *environment) startTrackers(ctx context.Context, unitsURL string) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, config := range e.fleet.trackers(e.UnitPassword) {
		config.Broker, config.Logger = unitsURL, e.log
		running.Go(func() {
			if err := trackers.New(config).Run(ctx); err != nil {
				e.log.Error("unit ended", "unit", config.Unit, "err", err)
			}
		})
	}
	e.OnClose(func() error { stop(); running.Wait(); return nil })
}
