package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"time"

	"motorpool/cmd/dev/folder"
	"motorpool/internal/keyfile"
	"motorpool/simulator"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/telematics/ovms"
	"motorpool/telematics/signing"
	"motorpool/telematics/teltonika"
)

//go:embed fleet.json
var fleetFile []byte

// fleet is the demo fleet, and which of its vehicles are not simulated.
type fleet struct {
	record  vehicles.FleetFile
	without []telematics.VehicleID
}

func demoFleet(without []telematics.VehicleID) (fleet, error) {
	record, err := vehicles.ParseFleetFile(bytes.NewReader(fleetFile))
	if err != nil {
		return fleet{}, err
	}
	for _, id := range without {
		if !slices.ContainsFunc(record.Vehicles, func(v telematics.Vehicle) bool { return v.ID == id }) {
			return fleet{}, fmt.Errorf(
				"--without %d: the demo fleet has the vehicles 1 to %d", id, record.Vehicles[len(record.Vehicles)-1].ID,
			)
		}
	}
	return fleet{record: record, without: without}, nil
}

// login is what a unit needs to connect.
type login struct {
	Unit     telematics.Unit `json:"unit"`
	Password string          `json:"password"`
}

func (f fleet) logins(password func(telematics.Unit) string) map[telematics.VehicleID]login {
	logins := map[telematics.VehicleID]login{}
	for _, v := range f.record.Vehicles {
		logins[v.ID] = login{Unit: v.Unit, Password: password(v.Unit)}
	}
	return logins
}

// has reports whether a vehicle of the fleet has a unit.
func (f fleet) has(unit telematics.Unit) bool {
	return slices.ContainsFunc(f.record.Vehicles, func(v telematics.Vehicle) bool { return v.Unit == unit })
}

// cars returns the simulated cars of protocol v1.
func (f fleet) cars(password func(telematics.Unit) string, latency simulator.Latency) []simulator.Config {
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
		cars = append(cars, simulator.Config{Unit: v.Unit, Password: password(v.Unit), Profile: profile})
	}
	return cars
}

// lastReports returns the last reports of cars that were lost before the start.
func (f fleet) lastReports() []delivery.Observation {
	var seen []delivery.Observation
	for _, v := range f.record.Vehicles {
		profile, ok := simulator.Demo(v.ID)
		if !ok || profile.Gone == 0 || !f.simulates(v.ID) {
			continue
		}
		at := time.Now().Add(-profile.Gone)
		report := profile.Body.Report(at)
		will := telematics.Presence{Status: telematics.Offline, Session: "lost", At: at}
		seen = append(seen, delivery.Observation{Unit: v.Unit, At: at, Report: &report, Presence: &will, Retained: true})
	}
	return seen
}

func (f fleet) simulates(id telematics.VehicleID) bool { return !slices.Contains(f.without, id) }

// reportingFirst returns the simulated vehicles that report immediately: not those that are
// lost, or have a slow radio.
func (e *environment) reportingFirst() []telematics.Vehicle {
	var first []telematics.Vehicle
	for _, v := range e.fleet.record.Vehicles {
		profile, ok := simulator.Demo(v.ID)
		reports := ok && profile.Gone == 0 && profile.Latency == nil || v.Protocol == ovms.Protocol || v.Protocol == teltonika.Protocol
		if reports && e.Latency != "cellular" && e.fleet.simulates(v.ID) {
			first = append(first, v)
		}
	}
	return first
}

// provisionEvery is the interval at which the keys are read: shorter than the service takes to
// notice an activated key, so that the cars have it by then.
const provisionEvery = 200 * time.Millisecond

// provision gives the public halves of the signing keys to the cars, and writes them to a file for
// other units, at the start and when the keys change. In production the operator does this.
func (e *environment) provision(ctx context.Context, cars *simulator.Fleet) error {
	file := e.Path(folder.SigningFile)
	keys := keyfile.Source[signing.Keychain]{
		Name: file, Every: provisionEvery, Parse: signing.ParseKeychain, Log: e.log,
		Read: func(context.Context) ([]byte, error) { return os.ReadFile(file) },
	}
	// Also the first time: they may have changed since the start.
	return keys.Watch(ctx, func(chain signing.Keychain) {
		cars.SetKeyring(chain.Keyring())
		if err := folder.WriteKeyring(e.Path(folder.KeyringFile), chain); err != nil {
			e.log.Error("public keys not written", "file", folder.KeyringFile, "err", err)
		}
	})
}
