package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"motorpool/simulator"
	"motorpool/telematics"
)

// carChange has the fields of a simulated car that change, by their names in Go.
type carChange struct {
	*simulator.Body
	Offline *bool // no network
}

// carsHandler serves PATCH /{vehicle}: it changes a simulated car, as a person next to it would.
func (f fleet) carsHandler(cars *simulator.Fleet) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PATCH /{vehicle}", func(w http.ResponseWriter, r *http.Request) {
		car, profile := f.car(cars, r.PathValue("vehicle"))
		if car == nil {
			http.Error(w, "no simulated car with protocol v1 has this number", http.StatusNotFound)
			return
		}
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<16))
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.DisallowUnknownFields()
		change := carChange{Body: &simulator.Body{}}
		if err := errors.Join(err, decoder.Decode(&change)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// It has just been decoded without an error.
		car.Change(func(b *simulator.Body) { _ = json.Unmarshal(text, &carChange{Body: b}) })
		if change.Offline != nil {
			faults := profile.Faults
			faults.Offline = *change.Offline
			car.SetFaults(faults)
		}
		fmt.Fprintln(w, "changed")
	})
	return mux
}

// car returns the simulated car of a vehicle, with its profile; nil: it has none.
func (f fleet) car(cars *simulator.Fleet, vehicle string) (*simulator.Car, simulator.Profile) {
	n, _ := strconv.ParseInt(vehicle, 10, 64) // 0: no vehicle
	for _, v := range f.record.Vehicles {
		if profile, ok := simulator.Demo(v.ID); ok && v.ID == telematics.VehicleID(n) {
			return cars.Car(v.Unit), profile
		}
	}
	return nil, simulator.Profile{}
}
