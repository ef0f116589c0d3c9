package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"time"

	"motorpool/mosquitto"
	"motorpool/simulator"
	"motorpool/store"
	"motorpool/telematics"
)

//go:embed fleet.json
var fleetFile []byte

// fleet is the demo fleet: what is on record, and which of it is simulated.
type fleet struct {
	record  store.FleetFile
	without []telematics.VehicleID
}

func demoFleet(without []telematics.VehicleID) (fleet, error) {
	record, err := store.ParseFleetFile(bytes.NewReader(fleetFile))
	if err != nil {
		return fleet{}, err
	}
	for _, id := range without {
		if !slices.ContainsFunc(record.Vehicles, func(v telematics.Vehicle) bool { return v.ID == id }) {
			return fleet{}, fmt.Errorf("--without %d: the demo fleet has the vehicles 1 to %d", id, len(record.Vehicles))
		}
	}
	return fleet{record: record, without: without}, nil
}

// login is what a unit needs to connect.
type login struct {
	Unit     telematics.Unit `json:"unit"`
	Password string          `json:"password"`
}

func (f fleet) logins(secret string) map[telematics.VehicleID]login {
	logins := map[telematics.VehicleID]login{}
	for _, v := range f.record.Vehicles {
		logins[v.ID] = login{Unit: v.Unit, Password: mosquitto.UnitPassword(secret, string(v.Unit))}
	}
	return logins
}

// passwords tells the MQTT broker the password of a unit.
func (f fleet) passwords(secret string) func(user string) (string, bool) {
	known := map[string]string{}
	for _, l := range f.logins(secret) {
		known[string(l.Unit)] = l.Password
	}
	return func(user string) (string, bool) {
		password, ok := known[user]
		return password, ok
	}
}

// cars returns the simulated ones.
func (f fleet) cars(secret string, latency simulator.Latency) []simulator.Config {
	var cars []simulator.Config
	for _, v := range f.record.Vehicles {
		if !f.simulates(v.ID) {
			continue
		}
		profile, ok := simulator.Demo(v.ID)
		if !ok {
			continue
		}
		if profile.Latency == nil {
			profile.Latency = latency
		}
		cars = append(cars, simulator.Config{
			Unit: v.Unit, Password: mosquitto.UnitPassword(secret, string(v.Unit)), Profile: profile,
		})
	}
	return cars
}

// past returns what is known of cars that were lost before the world began.
func (f fleet) past() []telematics.Observation {
	var seen []telematics.Observation
	for _, v := range f.record.Vehicles {
		profile, ok := simulator.Demo(v.ID)
		if !ok || profile.Gone == 0 || !f.simulates(v.ID) {
			continue
		}
		at := time.Now().Add(-profile.Gone)
		report := profile.Body.Report(at)
		will := telematics.Presence{Status: telematics.Offline, Session: "lost", At: at}
		seen = append(seen, telematics.Observation{Unit: v.Unit, At: at, Report: &report, Presence: &will, Retained: true})
	}
	return seen
}

func (f fleet) simulates(id telematics.VehicleID) bool { return !slices.Contains(f.without, id) }

// prompt returns the simulated vehicles whose first report comes immediately: not those
// that are gone, or whose radio takes its time.
func (w *world) prompt() []telematics.VehicleID {
	var prompt []telematics.VehicleID
	for _, v := range w.fleet.record.Vehicles {
		profile, ok := simulator.Demo(v.ID)
		if ok && profile.Gone == 0 && profile.Latency == nil && w.Latency != "cellular" && w.fleet.simulates(v.ID) {
			prompt = append(prompt, v.ID)
		}
	}
	return prompt
}
