package main

import (
	"encoding/json"
	"net/http"
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

func (l *live) reportsTheTeltonikaUnit() {
	l.eventually("the van reports", func() bool { return l.van().Telemetry.Locked != nil })
	s := l.van()
	switch at := s.Telemetry; { // parked, it reports every four minutes
	case *at.Locked,
		at.Speed == nil, at.Mileage == nil, at.Ignition == nil || *at.Ignition != "off", at.Fuel == nil,
		at.Voltage == nil || *at.Voltage < 10, at.Doors["trunk"] == nil || *at.Doors["trunk"] != "closed",
		s.Location.Latitude == nil || s.Location.Heading == nil, time.Since(s.Location.Timestamp) > 5*time.Minute,
		s.Diagnostics.DTCs == nil,
		s.OEM["gsm_signal"] != 4.0:
		l.Errorf("the status is %+v", s)
	}
}
