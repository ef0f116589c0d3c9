package main

import (
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
