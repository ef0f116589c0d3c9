package service_test

import (
	"fmt"
	"testing"
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

// The clock of each car is ahead when it reports, and is set right then. What it reports from then
// on counts [TEL-2].
func TestControl_ReportOfTheFutureDecidesNothing(t *testing.T) {
	t.Parallel()
	s := startStack(t, 3)
	speeds := map[telematics.VehicleID]struct{ before, then float64 }{1: {50, 0}, 2: {0, 80}, 3: {50, 0}}
	i := s.serve(unhurried)
	fleet := s.drive(nil, func(id telematics.VehicleID) simulator.Profile {
		driving, _ := simulator.Demo(6)
		driving.Actions, driving.Body.SpeedKmh = simulator.AllActions, speeds[id].before
		driving.Clock.Skew = telematics.MaxAhead - 10*time.Second
		return driving
	})
	reads := func(id telematics.VehicleID, kmh float64) bool {
		var status statusView
		i.get(fmt.Sprintf("/api/v1/admin/vehicles/%d/status", id), &status)
		return status.Telemetry.SpeedKmh != nil && *status.Telemetry.SpeedKmh == kmh
	}
	for n, car := range fleet.Cars() {
		id := telematics.VehicleID(n + 1)
		s.eventually(10*time.Second, "the report of the future is stored", func() bool { return reads(id, speeds[id].before) })
		car.SetClock(simulator.Clock{})
		car.Change(func(b *simulator.Body) { b.SpeedKmh = speeds[id].then })
		s.eventually(10*time.Second, "the report with the right time is stored", func() bool { return reads(id, speeds[id].then) })
	}
	for _, c := range []struct {
		vehicle int
		action  telematics.Action
		status  int
	}{
		{1, telematics.Unlock, 200}, {2, telematics.DisableDriving, 409},
		{2, telematics.Unlock, 409}, {3, telematics.DisableDriving, 200},
	} {
		r := i.control(c.vehicle, c.action)
		for r.starved() {
			time.Sleep(repeatAfter)
			r = i.control(c.vehicle, c.action)
		}
		if r.status != c.status {
			s.Errorf(
				"vehicle %d, %v: %s answers %d %s, want %d", c.vehicle, speeds[telematics.VehicleID(c.vehicle)],
				c.action, r.status, r.Error.Code, c.status,
			)
		}
	}
}
