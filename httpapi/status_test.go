package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
)

const status42 = "/api/v1/admin/vehicles/42/status"

// everything is a report of all fields.
var everything = map[telematics.Field]any{
	telematics.Latitude: 48.1371, telematics.Longitude: 11.5754, telematics.Heading: 270.0,
	telematics.LocatedAt: time.Date(2026, 1, 2, 9, 59, 58, 0, time.UTC), telematics.SpeedKmh: 0.0,
	telematics.MileageKm: 15230.4, telematics.Ignition: "off", telematics.Gear: "P",
	telematics.ParkBrake: "engaged", telematics.FuelLevel: 61.0, telematics.Battery: 80.0,
	telematics.RangeKm: 410.0, telematics.Charging: "disconnected",
	telematics.OnboardV: 12.6, telematics.IsLocked: true, telematics.EngineRuns: false,
	telematics.Sunroof: "tilted", telematics.KeyStatus: "out", telematics.DoorFrontLeft: "closed",
	telematics.DoorFrontRight: "closed", telematics.DoorRearLeft: "closed",
	telematics.DoorRearRight: "closed", telematics.DoorTrunk: "open",
	telematics.WindowFrontLeft: "closed", telematics.WindowFrontRight: "partially_open",
	telematics.WindowRearLeft: "closed", telematics.WindowRearRight: "open",
	telematics.SeatbeltDriver: "fastened", telematics.SeatbeltPassenger: "unfastened",
	telematics.DTCs: []string{"P0420"}, telematics.ServiceDueKm: -12.0,
	telematics.OilLife: 61.0, telematics.WarningLamps: []string{}, telematics.RSRP: -97.0,
	telematics.Firmware: "4.2.1", telematics.OEMData: map[string]any{"mode": "eco"},
	telematics.RawCharging: "conditioning", telematics.RawDTCs: []string{"123-4"},
}

// fieldsOfTheInterface are the fields of section 2.2 of the interface, without groups.
var fieldsOfTheInterface = strings.Fields(`
	vehicle_id status location.latitude location.longitude location.heading location.address
	location.timestamp telemetry.speed_kmh telemetry.mileage_km telemetry.ignition telemetry.gear
	telemetry.parking_brake telemetry.fuel_level_percent telemetry.battery_level_percent
	telemetry.remaining_range_km telemetry.charging_status telemetry.onboard_voltage_v
	telemetry.is_locked telemetry.is_engine_running telemetry.doors.front_left
	telemetry.doors.front_right telemetry.doors.rear_left telemetry.doors.rear_right
	telemetry.doors.trunk telemetry.windows.front_left telemetry.windows.front_right
	telemetry.windows.rear_left telemetry.windows.rear_right telemetry.sunroof
	telemetry.seatbelts.driver telemetry.seatbelts.passenger telemetry.key_status diagnostics.dtcs
	diagnostics.service_due_in_km diagnostics.oil_life_percent diagnostics.warning_lamps
	connectivity.status connectivity.last_seen connectivity.signal_quality
	connectivity.firmware_version oem_data
`)

func TestStatus_WithoutAReportHasAllFields(t *testing.T) {
	r := newAPI(t).get(status42).wants(200, "")
	known := map[string]any{
		"vehicle_id": 42.0, "status": "available", "connectivity.status": "unknown", "oem_data": map[string]any{},
	}
	for _, path := range fieldsOfTheInterface {
		r.has(path, known[path])
	}
	r.meta("source", "cache")
	for _, section := range telematics.Sections {
		if at, ok := r.body.Meta["sections"].(map[string]any)[section]; !ok || at != nil {
			t.Errorf("section %s: time %v, want null", section, at)
		}
	}
}

func TestStatus_HasAllReportedFields(t *testing.T) {
	a := newAPI(t)
	a.fleet.twins[42] = twin(42, 1, func(t *telematics.Twin) {
		t.Powertrain = telematics.PlugInHybrid
		t.Snapshot = reported(now.Add(-time.Minute), everything)
		t.Contact = telematics.Contact{Status: telematics.Online, LastSeen: now.Add(-time.Minute)}
	})
	r := a.get(status42).wants(200, "")
	for _, path := range fieldsOfTheInterface {
		if r.at(strings.Split(path, ".")...) == nil {
			t.Errorf("%v is null, want the reported value", path)
		}
	}
	for want, got := range map[any]any{
		"2026-01-02T09:59:58.000Z": r.at("location", "timestamp"),
		"open":                     r.at("telemetry", "doors", "trunk"),
		"moderate":                 r.at("connectivity", "signal_quality"),
		"2026-01-02T09:59:00.250Z": r.at("connectivity", "last_seen"),
		"conditioning":             r.at("oem_data", "charging_status"),
		"eco":                      r.at("oem_data", "mode"),
		-12.0:                      r.at("diagnostics", "service_due_in_km"),
	} {
		same(t, got, want, "value")
	}
	same(t, len(r.at("diagnostics", "warning_lamps").([]any)), 0, "warning lamps")
	assert.Equal(t, r.body.Meta["sections"].(map[string]any)["telemetry"], "2026-01-02T09:59:00.250Z", "section time")
	// A powertrain hides what it cannot have.
	electric, combustion := a.fleet.twins[42], a.fleet.twins[42]
	electric.Powertrain, combustion.Powertrain = telematics.Electric, telematics.Combustion
	a.fleet.twins[42] = electric
	a.get(status42).has("telemetry.fuel_level_percent", nil, "telemetry.battery_level_percent", 80.0)
	a.fleet.twins[42] = combustion
	a.get(status42).has("telemetry.battery_level_percent", nil, "telemetry.charging_status", nil, "telemetry.fuel_level_percent", 61.0)
}

func TestStatus_NamesFieldsOlderThanTheirSection(t *testing.T) {
	a := newAPI(t)
	a.fleet.twins[42] = twin(42, 1, func(t *telematics.Twin) {
		t.Snapshot = telematics.Merge(reported(now.Add(-time.Hour), map[telematics.Field]any{
			telematics.IsLocked: true, telematics.Gear: nil, telematics.RSRP: -97.0,
			telematics.Firmware: "4.2.0", telematics.DTCs: []string{},
		}), telematics.Report{At: now.Add(-time.Minute), Values: map[telematics.Field]any{telematics.SpeedKmh: 50.0}})
		t.Snapshot = telematics.Merge(
			t.Snapshot,
			telematics.Report{At: now.Add(-2 * time.Hour), Values: map[telematics.Field]any{telematics.LocatedAt: now}},
		)
		t.Snapshot[telematics.RSRP] = telematics.Reading{Value: -97.0, At: now.Add(-2 * time.Hour)}
	})
	older := func() any { return a.get(status42).wants(200, "").body.Meta["older"] }
	want := map[string]any{"telemetry.is_locked": "2026-01-02T09:00:00.250Z", "connectivity.signal_quality": "2026-01-02T08:00:00.250Z"}
	same[any](t, older(), want, "older fields")
	a.fleet.twins[42] = twin(42, 1, func(t *telematics.Twin) {
		t.Snapshot = reported(now.Add(-time.Hour), map[telematics.Field]any{telematics.Firmware: "4.2.0"})
		t.Snapshot[telematics.RSRP] = telematics.Reading{Value: -97.0, At: now.Add(-time.Minute)}
		t.Contact = telematics.Contact{Status: telematics.Online, Firmware: "4.2.1", SaidAt: now}
	})
	same[any](t, older(), map[string]any{}, "with firmware from presence: older fields")
}

func TestStatus_FirmwareIsTheNewerOfReportAndPresence(t *testing.T) {
	older, newer := now.Add(-time.Hour), now.Add(-time.Minute)
	for name, c := range map[string]struct {
		snapshot telematics.Snapshot
		contact  telematics.Contact
		want     any
	}{
		"none":          {nil, telematics.Contact{}, nil},
		"presence only": {nil, telematics.Contact{Firmware: "2", SaidAt: older}, "2"},
		"report only":   {reported(older, map[telematics.Field]any{telematics.Firmware: "1"}), telematics.Contact{SaidAt: newer}, "1"},
		"presence newer": {reported(older, map[telematics.Field]any{telematics.Firmware: "1"}),
			telematics.Contact{Firmware: "2", SaidAt: newer}, "2"},
		"report newer": {reported(newer, map[telematics.Field]any{telematics.Firmware: "1"}),
			telematics.Contact{Firmware: "2", SaidAt: older}, "1"},
		"report with null": {reported(newer, map[telematics.Field]any{telematics.Firmware: nil}),
			telematics.Contact{Firmware: "2", SaidAt: older}, "2"},
	} {
		a := newAPI(t)
		a.fleet.twins[42] = twin(42, 1, func(t *telematics.Twin) { t.Snapshot, t.Contact = c.snapshot, c.contact })
		same(t, a.get(status42).at("connectivity", "firmware_version"), c.want, "%s", name)
	}
}

func TestStatus_EachReadIsRecorded(t *testing.T) {
	a := newAPI(t)
	r := a.get(status42, ofAgency(1)).wants(200, "")
	a.get("/api/v1/admin/vehicles/77/status").wants(404, "vehicle_not_found")
	a.get("/api/v1/admin/vehicles/9/status", ofAgency(1)).wants(404, "vehicle_not_found")
	a.get("/api/v1/admin/vehicles/abc/status").wants(422, "validation_failed")
	a.get(status42, byClient).wants(403, "forbidden")
	a.get("/api/v1/admin/vehicles", byClient).wants(403, "forbidden") // which has no entry
	a.get(status42, anonymous).wants(401, "unauthenticated")
	is := func(vehicle telematics.VehicleID, by telematics.Actor, code telematics.Code, outcome telematics.Outcome) logged {
		return logged{
			At: now, Action: telematics.StatusRead, Vehicle: vehicle, Actor: by, Agency: by.Agency, Code: code, Outcome: outcome,
		}
	}
	own := telematics.Actor{Subject: "admin-of-agency", Role: telematics.Admin, Agency: 1}
	all := telematics.Actor{Subject: "admin-7", Role: telematics.Admin}
	a.wantsEntries(
		is(42, own, "", telematics.Executed), is(77, all, "vehicle_not_found", telematics.NotExecuted),
		is(9, own, "vehicle_not_found", telematics.NotExecuted), is(0, all, "validation_failed", telematics.NotExecuted),
		is(42, telematics.Actor{Subject: "client-1", Role: telematics.Client, Agency: 1}, "forbidden", telematics.NotExecuted),
	)
	same(t, a.history.all()[0].RequestID.String(), r.body.RequestID, "request ID")
}

// placeNames returns an address made of the agency and the position.
type placeNames struct{}

func (placeNames) Address(agency telematics.AgencyID, p telematics.Position, stands bool) string {
	if agency == 2 {
		return ""
	}
	return fmt.Sprintf("agency %d at %g, %g", agency, p.Latitude, p.Longitude)
}

func TestAddress_IsInTheStatusAndTheList(t *testing.T) {
	a := newAPI(t)
	located := func(t *telematics.Twin) { t.Snapshot = reported(now, everything) }
	// Vehicle 1 has never reported a position.
	for id, agency := range map[telematics.VehicleID]telematics.AgencyID{2: 1, 42: 1, 9: 2} {
		a.fleet.twins[id] = twin(id, agency, located)
	}
	const where = "agency 1 at 48.1371, 11.5754"
	for vehicle, want := range map[string]any{"42": where, "9": nil, "1": nil} {
		r := a.get("/api/v1/admin/vehicles/" + vehicle + "/status")
		same(t, r.at("location", "address"), want, "vehicle %s has the address", vehicle)
	}
	list := a.get("/api/v1/admin/vehicles")
	for _, item := range list.body.Data.([]any) {
		vehicle := item.(map[string]any)
		want := map[float64]any{42: where, 2: where}[vehicle["id"].(float64)]
		assert.Equal(t, vehicle["location"].(map[string]any)["address"], want, "in the list, vehicle %v has the address", vehicle["id"])
	}
}
