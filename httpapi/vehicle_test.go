package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestVehicle_HasItsRecordAndCapabilities(t *testing.T) {
	a := newAPI(t)
	a.fleet.twins[42] = twin(42, 1, func(t *telematics.Twin) {
		t.Contact.Actions = []telematics.Action{telematics.ReportState, telematics.Unlock, telematics.Lock}
		t.Snapshot = reported(now, map[telematics.Field]any{
			telematics.IsLocked: true, telematics.DoorTrunk: nil, telematics.KeyStatus: "in",
			telematics.RSRP: -90.0, telematics.RawDTCs: []string{"x"}, telematics.OEMData: map[string]any{},
			telematics.Battery: 80.0,
		})
		t.Snapshot = telematics.Merge(
			t.Snapshot,
			telematics.Report{At: now.Add(time.Second), Values: map[telematics.Field]any{telematics.KeyStatus: nil}},
		)
	})
	r := a.get("/api/v1/admin/vehicles/42").wants(200, "")
	r.has("plate_number", "M-MP 42", "unit", "unit-1", "powertrain", "combustion", "image", nil, "year", 2024.0)
	r.has("capabilities.commands", []any{"lock", "unlock"}, "capabilities.refresh", true, "capabilities.signals",
		[]any{"connectivity.signal_quality", "oem_data", "telemetry.is_locked", "telemetry.key_status"})
	a.fleet.twins[42] = twin(42, 1, func(t *telematics.Twin) { t.Protocol, t.Actions, t.Features = "teltonika", nil, nil })
	r = a.get(vehicles42).wants(200, "")
	r.has("capabilities.commands", []any{}, "capabilities.refresh", false, "capabilities.signals", []any{}, "features", []any{})
}

func TestVehicle_HasWhatItCostsAndHowItsUnitIsBuiltIn(t *testing.T) {
	a := newAPI(t)
	for _, c := range []struct {
		protocol     telematics.Protocol
		unit         telematics.Unit
		installation telematics.Installation
		want         any
	}{
		{"teltonika", "U1", telematics.Installation{"lock": "output 1 on"}, map[string]any{"lock": "output 1 on"}},
		{"ovms", "U1", telematics.Installation{"type": "NL", "pin": "secret"}, map[string]any{"type": "NL", "pin": nil}},
		{"a later one", "U1", telematics.Installation{"code": "secret"}, map[string]any{"code": nil}},
		{"v1", "U1", nil, nil},
		{"ovms", "", telematics.Installation{"type": "NL", "pin": "secret"}, nil},
	} {
		a.fleet.twins[42] = twin(
			42, 1, func(t *telematics.Twin) { t.Unit, t.Protocol, t.Installation = c.unit, c.protocol, c.installation },
		)
		for _, r := range []*response{a.get(vehicles42), a.do(http.MethodPatch, vehicles42, withJSON(`{"color": "red"}`))} {
			r.wants(200, "").has("installation", c.want).hides("secret").shows(`"hourly_rate":15.00,"deposit":200.00,"currency":"EUR"`)
		}
	}
	a.get("/api/v1/admin/vehicles/2").wants(200, "").shows(`"hourly_rate":null,"deposit":null,"currency":"EUR"`)
}

func TestVehicleWithoutUnit_HasNoCommands(t *testing.T) {
	a := newAPI(t)
	a.fleet.twins[42] = twin(42, 1, func(t *telematics.Twin) { t.Unit, t.Actions = "", telematics.ControlActions })
	a.get(vehicles42).wants(200, "").has("capabilities.commands", []any{})
	a.controller.start = func(context.Context, delivery.Order) (delivery.Receipt, error) {
		return delivery.Receipt{}, telematics.NoUnit()
	}
	bulk := a.post(many, withJSON(`{"action":"lock","vehicle_ids":[42]}`)).wants(202, "")
	bulk.has("items.0.error.code", "vehicle_has_no_unit", "items.0.error.retry_after", 3600.0)
	bulk.has("items.0.error.outcome", "not_executed")
	client := newBookingAPI(t)
	client.controller.fails(telematics.NoUnit())
	client.asClient(http.MethodPost, ownBooking+"/control/lock").wants(409, "vehicle_has_no_unit").wantsRetryAfter("3600")
}

func TestVehicle_HasItsProtocolAndPromises(t *testing.T) {
	a := newAPI(t)
	for _, c := range []struct {
		unit     telematics.Unit
		protocol telematics.Protocol
		says     any
		promises any
	}{
		{"unit-1", "", "v1", map[string]any{"signed": true, "expiring": true, "deduplicated": true, "correlated": true, "confirmed": true}},
		{"unit-1", "tomorrow", "tomorrow", nil},
		{"", "", nil, nil},
	} {
		a.fleet.twins[42] = twin(42, 1, func(t *telematics.Twin) { t.Unit, t.Protocol = c.unit, c.protocol })
		r := a.get("/api/v1/admin/vehicles/42").wants(200, "")
		r.has("protocol", c.says, "promises", c.promises)
	}
}

func TestVehicle_AnotherAgencysVehicleReadsAsOneThatDoesNotExist(t *testing.T) {
	own := ofAgency(1)
	for _, path := range []string{"/api/v1/admin/vehicles/%d", "/api/v1/admin/vehicles/%d/status", "/api/v1/admin/vehicles/%d/commands"} {
		a := newAPI(t)
		foreign := a.get(fmt.Sprintf(path, 9), own).wants(404, "vehicle_not_found")
		missing := a.get(fmt.Sprintf(path, 7), own).wants(404, "vehicle_not_found")
		answer := strings.ReplaceAll(
			strings.ReplaceAll(missing.text, missing.body.RequestID, foreign.body.RequestID), "vehicle 7", "vehicle 9",
		)
		same(t, answer, foreign.text, "the two answers differ")
		a.get(fmt.Sprintf(path, 9), ofAgency(2)).wants(200, "")
		a.get(fmt.Sprintf(path, 9)).wants(200, "")
	}
}

func TestVehicles_AreListedWithTheirStatus(t *testing.T) {
	a := newAPI(t)
	a.fleet.twins[42] = twin(42, 1, func(t *telematics.Twin) {
		t.Powertrain = telematics.Electric
		t.Snapshot = reported(now, everything)
		t.Contact = telematics.Contact{Status: telematics.Standby, LastSeen: now.Add(-time.Hour)}
	})
	r := a.get("/api/v1/admin/vehicles").wants(200, "")
	r.lists(4).says("4 vehicles.").meta("next_cursor", nil)
	r.body.Data = r.at("0")
	r.has(
		"id", 42.0, "status", "available", "connectivity.status", "standby", "connectivity.last_seen", "2026-01-02T09:00:00.250Z",
		"location.latitude", 48.1371, "location.heading", 270.0, "location.address", "agency 1 at 48.1371, 11.5754",
		"location.timestamp", "2026-01-02T09:59:58.000Z", "telemetry.speed_kmh", 0.0, "telemetry.is_locked", true,
		"telemetry.ignition", "off", "telemetry.fuel_level_percent", nil, "telemetry.battery_level_percent", 80.0,
		"telemetry.remaining_range_km", 410.0, "telemetry.charging_status", "disconnected",
		"diagnostics.dtcs", []any{"P0420"}, "diagnostics.warning_lamps", []any{},
	)
	own := a.get("/api/v1/admin/vehicles/42").wants(200, "").at("capabilities", "commands")
	same(t, r.at("capabilities", "commands"), own, "commands in the list and of the vehicle itself")
}

// A vehicle that is in touch may have reported its lock long ago: each value has its own time.
func TestVehicles_EachValueHasItsTime(t *testing.T) {
	a := newAPI(t)
	a.fleet.twins[42] = twin(42, 1, func(t *telematics.Twin) {
		t.Powertrain = telematics.Electric
		t.Snapshot = telematics.Merge(
			reported(now.Add(-time.Hour), everything),
			telematics.Report{At: now, Values: map[telematics.Field]any{telematics.Battery: 79.0}},
		)
		t.Contact = telematics.Contact{Status: telematics.Online, LastSeen: now}
	})
	r := a.get("/api/v1/admin/vehicles").wants(200, "")
	r.body.Data = r.at("0")
	r.has(
		"reported_at.is_locked", "2026-01-02T09:00:00.250Z", "reported_at.battery_level_percent", "2026-01-02T10:00:00.250Z",
		"reported_at.fuel_level_percent", nil, "locked_at", "2026-01-02T09:00:00.250Z", "energy_at", "2026-01-02T10:00:00.250Z",
		"reported_at.dtcs", "2026-01-02T09:00:00.250Z",
	)
}

func TestVehicles_FiltersReachTheStore(t *testing.T) {
	a := newAPI(t)
	a.get("/api/v1/admin/vehicles?status=in_use&connectivity=offline&agency_id=2&q=golf%25&limit=7&ids=42,7").wants(200, "")
	want := telematics.VehicleQuery{
		Agency: 2, IDs: []telematics.VehicleID{42, 7}, Status: telematics.InUse, Connectivity: telematics.Offline, Text: "golf%",
		Page: telematics.Page{Limit: 8},
	}
	same(t, a.fleet.asked.vehicles, want, "query")
}

func TestFilters_InvalidOnesAreRefused(t *testing.T) {
	a := newAPI(t)
	for query, field := range map[string]string{
		"vehicles?status=flying": "status", "vehicles?connectivity=x": "connectivity", "vehicles?agency_id=0": "agency_id",
		"vehicles?agency_id=a": "agency_id",
		"vehicles?limit=0":     "limit", "vehicles?limit=201": "limit", "vehicles?limit=ten": "limit", "vehicles?limit=1.5": "limit",
		"vehicles?limit=": "limit",
		"vehicles?ids=":   "ids", "vehicles?ids=4,x": "ids", "vehicles?ids=0": "ids", "vehicles?ids=1" + strings.Repeat(",1", 100): "ids",
		"vehicles?cursor=x": "cursor", "vehicles?cursor=!": "cursor", "vehicles?q=%00": "q", "vehicles?q=%ff": "q",
		"vehicles?q=" + strings.Repeat("x", 101): "q",
		"activity?vehicle_id=x":                  "vehicle_id", "activity?action=dance": "action", "activity?outcome=maybe": "outcome",
		"activity?from=yesterday":          "from",
		"activity?to=2026-02-31T00:00:00Z": "to", "activity?from=2026-01-02T10:00:00+01:00": "from", "activity?actor=%00": "actor",
		"vehicles/42/commands?limit=-1": "limit", "vehicles/x/commands": "vehicle", "vehicles/x": "vehicle",
		"vehicles/x/status": "vehicle", "commands/17": "id",
		"commands/0b6e2c1e5d5b4f0e9c0e3a52f6a7d8b9": "id",
	} {
		r := a.get("/api/v1/admin/"+query).wants(422, "validation_failed")
		if messages := r.body.Errors[field]; len(messages) != 1 || len(r.body.Errors) != 1 || !strings.HasPrefix(messages[0], "must ") {
			t.Errorf("%s: errors %v, want one for the field", query, r.body.Errors)
		}
	}
}
