package main

import "net/http"

func (l *live) reportsAndLocksTheOVMSModule() {
	reported := []string{
		"location.latitude", "location.longitude", "location.heading", "location.timestamp", "telemetry.speed_kmh",
		"telemetry.mileage_km", "telemetry.ignition", "telemetry.gear", "telemetry.parking_brake",
		"telemetry.battery_level_percent", "telemetry.remaining_range_km", "telemetry.charging_status",
		"telemetry.onboard_voltage_v", "telemetry.doors.front_left", "telemetry.doors.trunk",
		"diagnostics.service_due_in_km",
	}
	l.eventually("the car reports", func() bool {
		s := l.status(11)
		for _, field := range reported {
			if s[field] == nil {
				return false
			}
		}
		return s["telemetry.is_locked"] == false
	})
	first := l.status(11)["location.timestamp"]
	l.eventually(
		"the car reports again, and has therefore subscribed",
		func() bool { return l.status(11)["location.timestamp"] != first },
	)
	if r := l.call(http.MethodPost, "vehicles/11/control/lock", "ADMIN_TOKEN"); r.status != http.StatusOK {
		l.Errorf("lock: %d %+v after %v", r.status, r.Error, r.took)
	}
	l.eventually("the car is locked", func() bool { return l.status(11)["telemetry.is_locked"] == true })
}
