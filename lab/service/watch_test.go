package service_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"motorpool/mosquitto"
	"motorpool/simulator"
	"motorpool/simulator/ovms"
	"motorpool/telematics"
)

// hurried is the speed of the modules: their leases of 120 s are still longer than the interval of
// their renewal, 50 s.
const hurried = 2

// drivesModules runs OVMS modules in vehicles until the test ends.
func (s *stack) drivesModules(ids ...telematics.VehicleID) map[telematics.VehicleID]*ovms.Module {
	s.Helper()
	modules := map[telematics.VehicleID]*ovms.Module{}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	s.Cleanup(func() { stop(); running.Wait() })
	for _, id := range ids {
		unit := s.fleet.Vehicles[id-1].Unit
		body := simulator.ElectricCar(simulator.Point{Latitude: 48.1374, Longitude: 11.5755})
		body.Ignition, body.Charging = false, "disconnected"
		m := ovms.New(ovms.Config{
			Unit: unit, Password: mosquitto.UnitPassword(unitSecret, string(unit)), Broker: s.units, Body: body,
			Speed: hurried, StableWait: time.Second,
		})
		modules[id] = m
		running.Go(func() { _ = m.Run(ctx) })
	}
	for _, m := range modules {
		s.eventually(30*time.Second, "a module is connected", m.Connected)
	}
	return modules
}

// An OVMS module reports every 10 s while its car is watched, and otherwise every 5 min.
func TestWatch_ModuleReportsMoreOftenWhileItsCarIsWatched(t *testing.T) {
	t.Parallel()
	s := realStack(t, 3)
	r := s.rent()
	for i := range s.fleet.Vehicles {
		s.fleet.Vehicles[i].Protocol, s.fleet.Vehicles[i].Powertrain = "ovms", telematics.Electric
	}
	s.record()
	here, there := s.serve(), s.serve()
	modules := s.drivesModules(1, 2, 3)
	watchers := func(want int, id telematics.VehicleID, when string) {
		t.Helper()
		s.eventually(30*time.Second, when, func() bool { return modules[id].Watchers(t.Context()) == want })
	}
	energy := func(percent float64) {
		for _, id := range []telematics.VehicleID{1, 2} {
			modules[id].Do(t.Context(), func(b *simulator.Body, _ *ovms.Faults) { b.EnergyPercent = percent })
		}
	}
	reported := func(id string) float64 {
		var status struct {
			Telemetry struct {
				Battery float64 `json:"battery_level_percent"`
			}
		}
		here.get("/api/v1/admin/vehicles/"+id+"/status", &status)
		return status.Telemetry.Battery
	}
	s.eventually(30*time.Second, "both modules have reported", func() bool { return reported("1") > 0 && reported("2") > 0 })
	// A module subscribes up to a second after it has connected. It receives a missed request 50 s
	// later, so the wait only shortens the test.
	time.Sleep(3 * time.Second / hurried)
	r.activeBooking(3)
	one, other := here.watch("1"), there.watch("1")
	watchers(2, 1, "two instances watch")
	for _, percent := range []float64{37, 35} {
		changed := time.Now()
		energy(percent)
		s.eventually(30*time.Second, "a watched car reports", func() bool { return reported("1") == percent })
		// It takes 5 s, or up to 150 s of a car that is not watched.
		if took := time.Since(changed); took > slower*5*time.Second {
			t.Errorf("the watched car reported after %s, want 5 s or not much more", took)
		}
	}
	if reported("2") == 35 {
		t.Error("a car that is not watched reports as often as a watched one")
	}
	one()
	watchers(1, 1, "the other instance's watch has not ended")
	other()
	watchers(0, 1, "both have ended")
	if n := modules[2].Watchers(t.Context()); n != 0 {
		t.Errorf("%d instances watch a car without a reader, want none", n)
	}
	s.eventually(30*time.Second, "a refresh", func() bool {
		return here.get("/api/v1/admin/vehicles/2/status?refresh=true", nil).status == http.StatusOK
	})
	watchers(1, 2, "a refreshed car is watched")
	watchers(1, 3, "a running booking is watched, by one instance")
}

// watch opens a stream of one vehicle.
func (i *instance) watch(vehicle string) (end func()) {
	i.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.base+"/api/v1/admin/events?vehicle_id="+vehicle, nil)
	i.must(err)
	request.Header.Set("Authorization", "Bearer "+i.admin)
	response, err := http.DefaultClient.Do(request) //nolint:bodyclose // end does
	i.must(err)
	if response.StatusCode != http.StatusOK {
		i.Fatalf("the stream has the status %d", response.StatusCode)
	}
	var closed sync.Once
	end = func() { closed.Do(func() { cancel(); _ = response.Body.Close() }) }
	i.Cleanup(end)
	return end
}

// activeBooking books a vehicle of agency 1 and starts the booking.
func (r *rentals) activeBooking(id telematics.VehicleID) {
	r.Helper()
	_, err := r.db.ExecContext(r.Context(), `
		with client as (insert into clients (agency_id, subject) values (1, 'anna') returning id)
		insert into bookings (reference, state, agency_id, client_id, vehicle_id, pickup_station_id, dropoff_station_id, start_at, end_at,
			started_at,
			currency, hourly_rate, tax_ppm, hours, subtotal, tax, deposit, created_at)
		select 'B-1', 'active', 1, client.id, $1, 1, 1, now(), now() + interval '1 hour', now(), 'EUR',
			0, 0, 100, 0, 0, 0, now() from client`, id)
	r.must(err)
}
