package world

import (
	"context"
	"fmt"
	"time"

	"motorpool/httpapi/auth"
	"motorpool/simulator"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// PlainFleet is vehicles 1 to n of one agency, each with a car that executes commands, and an
// administrator who may command all of them.
type PlainFleet struct {
	Token    string // of the administrator
	File     vehicles.FleetFile
	Recorder simulator.Recorder // of all cars

	world *World
}

// StartPlainFleet starts the world's servers, with an account for each unit. It stores nothing.
func (w *World) StartPlainFleet(ctx context.Context, n int) (*PlainFleet, error) {
	token, err := w.Token(telematics.Actor{Subject: "chaos", Role: telematics.Admin}, auth.ScopeAllAgencies)
	f := &PlainFleet{Token: token, world: w}
	f.File.Agencies = []telematics.Agency{{ID: 1, Code: "CHAOS", Name: "Chaos"}}
	for id := 1; id <= n; id++ {
		f.File.Vehicles = append(f.File.Vehicles, Vehicle(id, 1, telematics.Unit(fmt.Sprintf("car-%d", id))))
	}
	if err != nil {
		return nil, err
	}
	return f, w.StartServers(ctx, ServersConfig{Units: Units(f.File.Vehicles)})
}

// Import stores the fleet. The schema must be there.
func (f *PlainFleet) Import(ctx context.Context) error { return f.world.Import(ctx, f.File) }

// PlainCars is how the cars of a plain fleet behave.
type PlainCars struct {
	Seed     uint64
	Latency  simulator.Latency
	Interval time.Duration   // between two reports. Defaults to the simulator's
	Radio    simulator.Radio // Defaults to MQTT at the world's Mosquitto
}

// StartCars runs the cars until Close, and returns when all are connected.
func (f *PlainFleet) StartCars(ctx context.Context, c PlainCars) error {
	var cars []simulator.Config
	for _, v := range f.File.Vehicles {
		cars = append(cars, simulator.Config{
			Unit: v.Unit, Password: f.world.UnitPassword(v.Unit), Broker: f.world.Mosquitto.UnitsURL(), Radio: c.Radio,
			Profile: simulator.Profile{Actions: simulator.AllActions, Latency: c.Latency},
		})
	}
	fleet := f.world.StartCars(ctx, f.world.Fail, simulator.FleetConfig{
		Keyring: f.world.Signing.Keyring(), Recorder: &f.Recorder, Seed: c.Seed, Interval: c.Interval,
	}, cars...)
	return Eventually(ctx, time.Minute, "all cars connected", func(context.Context) bool { return fleet.Connected() == len(cars) })
}
