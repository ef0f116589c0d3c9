package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/simulator"
	"motorpool/telematics"
)

func TestCars_ChangeAsRequested(t *testing.T) {
	fleet, err := demoFleet([]telematics.VehicleID{3})
	require.NoError(t, err)
	// They never connect.
	cars := simulator.NewFleet(simulator.FleetConfig{Broker: "tcp://127.0.0.1:1"},
		fleet.cars(func(telematics.Unit) string { return "" }, simulator.Fast)...)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = cars.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	server := httptest.NewServer(fleet.carsHandler(cars))
	t.Cleanup(server.Close)
	for _, c := range []struct {
		vehicle, body string
		want          int
	}{
		{"2", `{"Opened":["telemetry.doors.rear_left"],"Ignition":true,"Latitude":48.3}`, 200},
		{"2", `{"Gear":"N","Offline":true}`, 200},
		{"2", `{"Opened":[]}`, 200},
		{"1", `{"Opened":["telemetry.windows.rear_left"]}`, 200},
		{"2", `{"Dors":[]}`, 400}, {"2", `{"Gear":1}`, 400}, {"3", `{}`, 404}, {"11", `{}`, 404}, {"99", `{}`, 404}, {"x", `{}`, 404},
	} {
		request, err := http.NewRequest(http.MethodPatch, server.URL+"/"+c.vehicle, strings.NewReader(c.body))
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		if _ = response.Body.Close(); response.StatusCode != c.want {
			t.Errorf("vehicle %s, %s: %d, want %d", c.vehicle, c.body, response.StatusCode, c.want)
		}
	}
	second, _ := fleet.car(cars, "2")
	if b := second.Body(); !b.Ignition || b.Gear != "N" || len(b.Opened) != 0 || b.Latitude != 48.3 {
		t.Errorf("vehicle 2 is %+v", b)
	}
	first, _ := fleet.car(cars, "1")
	assert.EqualSlices(t, first.Body().Opened, []telematics.Field{telematics.WindowRearLeft}, "vehicle 1 has open")
}
