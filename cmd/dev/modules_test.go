package main

import (
	"net/http"
	"testing"
	"time"
)

func TestDemo_CarWithAnOVMSModuleReportsAndLocks(t *testing.T) {
	t.Parallel()
	l := begin(t, t.TempDir(), onSharedPostgres(t))
	eventually := func(what string, holds func(map[string]any) bool) {
		t.Helper()
		for deadline := time.Now().Add(40 * time.Second); !holds(l.status(11)); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("within 40 s this did not happen: %s; the status is %v", what, l.status(11))
			}
		}
	}
	reported := []string{
		"location.latitude", "location.longitude", "location.heading", "location.timestamp", "telemetry.speed_kmh",
		"telemetry.mileage_km", "telemetry.ignition", "telemetry.gear", "telemetry.parking_brake",
		"telemetry.battery_level_percent", "telemetry.remaining_range_km", "telemetry.charging_status",
		"telemetry.onboard_voltage_v", "telemetry.doors.front_left", "telemetry.doors.trunk",
		"diagnostics.service_due_in_km",
	}
	eventually("the car reports", func(s map[string]any) bool {
		for _, field := range reported {
			if s[field] == nil {
				return false
			}
		}
		return s["telemetry.is_locked"] == false
	})
	first := l.status(11)["location.timestamp"]
	eventually(
		"the car reports again, and has therefore subscribed",
		func(s map[string]any) bool { return s["location.timestamp"] != first },
	)
	if r := l.call(http.MethodPost, "vehicles/11/control/lock", "ADMIN_TOKEN"); r.status != http.StatusOK {
		t.Errorf("lock: %d %+v after %v", r.status, r.Error, r.took)
	}
	eventually("the car is locked", func(s map[string]any) bool { return s["telemetry.is_locked"] == true })
}
