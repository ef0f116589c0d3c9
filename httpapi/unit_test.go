package httpapi_test

import (
	"testing"
	"time"

	"motorpool/httpapi"
	"motorpool/telematics"
)

const unknownUnits = "/api/v1/admin/units/unknown"

func TestUnknownUnits_AreListedNewestFirst(t *testing.T) {
	a := newAPI(t)
	a.fleet.unknown = []telematics.UnknownUnit{
		{No: 3, Unit: "a", FirstSeen: now.Add(-time.Hour), LastSeen: now, Messages: 97},
		{No: 5, Unit: "b", FirstSeen: now.Add(-time.Minute), LastSeen: now, Messages: 1},
	}
	r := a.get(unknownUnits+"?limit=1").wants(200, "")
	want := []any{
		map[string]any{"unit": "b", "first_seen": "2026-01-02T09:59:00.250Z", "last_seen": "2026-01-02T10:00:00.250Z", "messages": 1.0},
	}
	r.has("", any(want)).says("1 unit.")
	next := r.body.Meta["next_cursor"].(string)
	r = a.get(unknownUnits+"?cursor="+next).wants(200, "")
	r.lists(1).has("0.unit", "a").meta("next_cursor", nil)
	a.get("/api/v1/admin/vehicles?cursor="+next).wants(422, "validation_failed")
	a.get(unknownUnits+"?limit=0").wants(422, "validation_failed")
	a.fleet.unknown = nil
	a.get(unknownUnits).wants(200, "").has("", any([]any{}))
	a.get(unknownUnits, ofAgency(1)).wants(403, "forbidden").
		says("This requires the access token of an administrator of all agencies; yours is for agency 1.")
}

const allUnits = "/api/v1/admin/units"

func fleetUnits() []telematics.ListedUnit {
	return []telematics.ListedUnit{
		{Vehicle: telematics.Vehicle{ID: 3, AgencyID: 1, Plate: "M-MP 3", Unit: "tracker", Protocol: "teltonika"}},
		{Vehicle: telematics.Vehicle{ID: 9, AgencyID: 2, Plate: "B-MP 9", Unit: "unit-9", Protocol: "v1"}},
		{
			Vehicle: telematics.Vehicle{ID: 42, AgencyID: 1, Plate: "M-MP 42", Unit: "unit-42"},
			Contact: telematics.Contact{
				Status: telematics.Online, LastSeen: now.Add(-time.Minute), SaidAt: now.Add(-time.Hour),
				Firmware: "4.2.1", Keys: []string{"k1"},
			},
			Snapshot:   telematics.Snapshot{telematics.RSRP: {Value: -109.0, At: now}},
			Clock:      &telematics.ClockReading{Ahead: -72400 * time.Millisecond, At: now.Add(-20 * time.Minute)},
			Reconnects: 3,
			Rejects:    []telematics.RejectTally{{Reason: "unknown_word", Tally: telematics.Tally{Count: 17, Last: now.Add(-time.Minute)}}},
			Commands:   []telematics.RejectTally{{Reason: "clock_behind", Tally: telematics.Tally{Count: 2, Last: now.Add(-time.Hour)}}},
			Problems:   []telematics.UnitProblem{telematics.RejectsCommands, telematics.WrongClock},
		},
	}
}

func TestUnits_AreListedWithTheirHealth(t *testing.T) {
	a := newAPI(t, func(c *httpapi.Config) { c.SigningKey = func() string { return "k1" } })
	a.fleet.units = fleetUnits()
	first := a.get(allUnits+"?limit=1&connectivity=online&problem=any&q=42").wants(200, "")
	want := map[string]any{
		"unit": "unit-42", "vehicle_id": 42.0, "plate_number": "M-MP 42", "agency_id": 1.0,
		"protocol": "v1",
		"connectivity": map[string]any{
			"status": "online", "last_seen": "2026-01-02T09:59:00.250Z",
		},
		"firmware_version": "4.2.1", "signal_quality": "weak", "rsrp_dbm": -109.0,
		"clock":             map[string]any{"error_ms": -72400.0, "measured_at": "2026-01-02T09:40:00.250Z"},
		"reconnects":        3.0,
		"rejects":           []any{map[string]any{"reason": "unknown_word", "count": 17.0, "last_at": "2026-01-02T09:59:00.250Z"}},
		"rejected_commands": []any{map[string]any{"reason": "clock_behind", "count": 2.0, "last_at": "2026-01-02T09:00:00.250Z"}},
		"keys":              []any{"k1"}, "problems": []any{"commands", "clock"},
	}
	first.has("", []any{want})
	query := telematics.UnitQuery{Connectivity: telematics.Online, Problem: telematics.AnyProblem, Text: "42", SigningKey: "k1"}
	like(t, a.fleet.asked.units, query, "query")
	rest := a.get(allUnits+"?cursor="+first.body.Meta["next_cursor"].(string)).wants(200, "")
	rest.lists(2).meta("next_cursor", nil)
	rest.has("0.clock", nil, "0.keys", nil, "0.reconnects", 0.0, "0.signal_quality", nil, "0.problems", []any{})
	rest.has("1.reconnects", nil) // of a protocol without presence
	for _, wrong := range []string{"?problem=none", "?connectivity=asleep", "?q=", "?cursor=x", "?limit=0"} {
		a.get(allUnits+wrong).wants(422, "validation_failed")
	}
}

func TestUnits_OfOneAgencyForItsAdministrator(t *testing.T) {
	a := newAPI(t)
	a.fleet.units = fleetUnits()
	own := ofAgency(2)
	entry := a.added(func() {
		a.get(allUnits, own).wants(200, "").lists(1).has("0.unit", "unit-9")
	})
	details := map[string]any{"filter": map[string]any{"agency_id": int64(2)}, "units": 1}
	like(t, entry, logged{Action: "vehicles.read", Agency: 2, Details: details}, "entry")
	entry = a.added(func() {
		a.get(allUnits+"?agency_id=1&problem=clock", own).wants(200, "").lists(0)
	})
	details = map[string]any{"filter": map[string]any{"agency_id": int64(1), "problem": "clock"}, "units": 0}
	like(t, entry, logged{Agency: 2, Details: details}, "entry")
}

const keyHolders = "/api/v1/admin/units/keys"

func TestKeyHolders_AreCountedForAdministratorsOfAllAgencies(t *testing.T) {
	a := newAPI(t)
	a.fleet.holders = map[string]telematics.KeyHolders{
		"a key/2": {Holding: 117, Missing: 1, Unreported: 2, MissingUnits: []telematics.Unit{"unit-7"}},
	}
	r := a.get(keyHolders+"?key=a+key%2F2").wants(200, "")
	want := map[string]any{"key": "a key/2", "holding": 117.0, "missing": 1.0, "unreported": 2.0, "missing_units": []any{"unit-7"}}
	r.has("", any(want)).says("117 of 118 units that report their keys hold this one; 2 did not say.")
	a.get(keyHolders+"?key=another").wants(200, "").has("missing_units", []any{})
	a.get(keyHolders).wants(422, "validation_failed")
	a.get(keyHolders+"?key=").wants(422, "validation_failed")
}

func TestVehicle_NamesTheKeysOfItsUnit(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want any
	}{{[]string{"k1", "k2"}, []any{"k1", "k2"}}, {[]string{}, []any{}}, {nil, nil}} {
		a := newAPI(t)
		a.fleet.twins[42] = twin(42, 1, func(t *telematics.Twin) { t.Contact.Keys = c.keys })
		a.get(vehicles42).wants(200, "").has("keys", c.want)
	}
}
