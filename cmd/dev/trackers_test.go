package main

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"
)

// vanStatus is the status of the van with a Teltonika unit.
type vanStatus struct {
	Location struct {
		Latitude, Longitude, Heading *float64
		Timestamp                    time.Time
	}
	Telemetry struct {
		Speed    *float64 `json:"speed_kmh"`
		Mileage  *float64 `json:"mileage_km"`
		Ignition *string
		Fuel     *float64 `json:"fuel_level_percent"`
		Voltage  *float64 `json:"onboard_voltage_v"`
		Locked   *bool    `json:"is_locked"`
		Doors    map[string]*string
	}
	Diagnostics struct{ DTCs []string }
	OEM         map[string]any `json:"oem_data"`
}

func (l *live) van() (s vanStatus) {
	l.Helper()
	r := l.call(http.MethodGet, "vehicles/12/status", "ADMIN_TOKEN")
	if err := json.Unmarshal(r.Data, &s); err != nil || r.status != http.StatusOK {
		l.Fatalf("status of vehicle 12: %d, %s, %v", r.status, r.Data, err)
	}
	return s
}

func TestDemo_VanWithATeltonikaUnitReportsAndLocks(t *testing.T) {
	t.Parallel()
	l := begin(t, t.TempDir(), onSharedPostgres(t))
	eventually := func(what string, holds func(vanStatus) bool) vanStatus {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			s := l.van()
			if holds(s) {
				return s
			}
			if time.Now().After(deadline) {
				t.Fatalf("within 30 s this did not happen: %s; the status is %+v", what, s)
			}
		}
	}
	s := eventually("the van reports", func(s vanStatus) bool { return s.Telemetry.Locked != nil })
	switch at := s.Telemetry; {
	case *at.Locked,
		at.Speed == nil, at.Mileage == nil, at.Ignition == nil || *at.Ignition != "off", at.Fuel == nil,
		at.Voltage == nil || *at.Voltage < 10, at.Doors["trunk"] == nil || *at.Doors["trunk"] != "closed",
		s.Location.Latitude == nil || s.Location.Heading == nil, time.Since(s.Location.Timestamp) > time.Minute,
		s.Diagnostics.DTCs == nil,
		s.OEM["gsm_signal"] != 4.0:
		t.Errorf("the status is %+v", s)
	}
	answered := make(chan reply, 1)
	go func() { answered <- l.call(http.MethodPost, "vehicles/12/control/lock", "ADMIN_TOKEN") }()
	eventually("the van is locked", func(s vanStatus) bool { return *s.Telemetry.Locked })
	if r := <-answered; r.status != http.StatusOK {
		t.Errorf("lock: %d %+v after %v", r.status, r.Error, r.took)
	}
}
