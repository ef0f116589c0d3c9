package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"motorpool/mosquitto"
	"motorpool/simulator"
	"motorpool/telematics"
)

// login is a unit's entry in a units file.
type login struct {
	Unit     string `json:"unit"`
	Password string `json:"password"`
}

// cars returns the configurations of the fleet.
func (o options) cars() ([]simulator.Config, error) {
	radio, err := o.radio()
	if err != nil {
		return nil, err
	}
	cars, err := o.logins()
	if err != nil {
		return nil, err
	}
	for i := range cars {
		cars[i].Radio = radio
		if o.Memory != "" {
			cars[i].Memory = simulator.File{Path: filepath.Join(o.Memory, string(cars[i].Unit)+".json")}
		}
		if cars[i].Profile.Name == "" { // a demo car has its own faults
			o.Faults.setFaults(&cars[i].Profile, rand.New(rand.NewPCG(o.Seed, uint64(i))))
		}
	}
	return cars, nil
}

func (o options) logins() ([]simulator.Config, error) {
	if o.Units != "" {
		return readUnits(o.Units, o.Demo)
	}
	cars := make([]simulator.Config, o.Cars)
	for i := range cars {
		unit, err := telematics.ParseUnit(fmt.Sprintf("%s%d", o.Prefix, i+1))
		if err != nil {
			return nil, fmt.Errorf("--prefix: %w", err)
		}
		cars[i] = simulator.Config{Unit: unit, Password: mosquitto.UnitPassword(o.Secret, string(unit))}
	}
	return cars, nil
}

func readUnits(path string, demo bool) ([]simulator.Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read units: %w", err)
	}
	var units map[telematics.VehicleID]login
	if err := json.Unmarshal(text, &units); err != nil {
		return nil, fmt.Errorf("read units %s: %w", path, err)
	}
	var cars []simulator.Config
	for _, id := range slices.Sorted(maps.Keys(units)) {
		unit, err := telematics.ParseUnit(units[id].Unit)
		if err != nil {
			return nil, fmt.Errorf("read units %s: vehicle %d: %w", path, id, err)
		}
		car := simulator.Config{Unit: unit, Password: units[id].Password}
		if demo {
			car.Profile, _ = simulator.Demo(id)
		}
		cars = append(cars, car)
	}
	return cars, nil
}

// setFaults gives a healthy car the faults of the flags.
func (f faultOptions) setFaults(p *simulator.Profile, rng *rand.Rand) {
	p.Faults = simulator.Faults{
		Drop: chance(f.Drop), DropAnswer: chance(f.DropAnswers), Duplicate: chance(f.Duplicate), Reorder: chance(f.Reorder),
		Refuse: chance(f.Refuse), Fail: chance(f.Fail), Delay: f.Delay,
		Silent: rng.Float64() < f.Silent, Offline: rng.Float64() < f.Offline,
	}
	if f.Skew > 0 {
		p.Clock.Skew = time.Duration((2*rng.Float64() - 1) * float64(f.Skew))
	}
}

func chance(p float64) simulator.Rule { return simulator.Rule{Chance: p} }
