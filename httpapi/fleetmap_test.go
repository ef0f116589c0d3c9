package httpapi_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"motorpool/httpapi"
	"motorpool/internal/require"
	"motorpool/telematics"
)

const fleetPath = "/api/v1/admin/fleet"

func withMarkers(t *testing.T) *api {
	t.Helper()
	a := newAPI(t)
	locked, energy := false, 61.04
	a.fleet.markers = []telematics.Marker{
		{
			ID: 42, Agency: 1, Status: telematics.InUse, Connectivity: telematics.Online,
			Position:  &telematics.Position{Latitude: 48.137154, Longitude: -11.5754},
			LocatedAt: now.Add(-2 * time.Second),
			Locked:    &locked, LockedAt: now.Add(-time.Hour), Energy: &energy, EnergyAt: now.Add(-time.Minute),
			LastSeen: now, Plate: "M-MP 42", Brand: "Opel", Model: "Corsa", Unit: "unit-42", Powertrain: telematics.Electric,
			Charging: new(true), ChargingAt: now.Add(-time.Minute),
		},
		{
			ID: 43, Agency: 2, Status: telematics.Available, Connectivity: telematics.Absent, Plate: "M-MP 43",
			Powertrain: telematics.Combustion,
		},
	}
	return a
}

func TestFleetMap_HasARowForEachVehicle(t *testing.T) {
	a := withMarkers(t)
	r := a.get(fleetPath).wants(200, "")
	for name, want := range map[string]string{
		"columns": `["id","agency_id","status","connectivity","latitude","longitude","located_at","locked","energy_percent",` +
			`"last_seen","locked_at","energy_at","plate_number","model","unit","powertrain","charging","charging_at"]`,
		"statuses":       `["available","booked","in_use","maintenance","inactive"]`,
		"connectivities": `["online","standby","offline","unknown"]`,
		"vehicles": `[[42,1,2,0,48.13715,-11.5754,1767347998,0,61,1767348000,1767344400,1767347940,"M-MP 42",0,"unit-42",1,1,1767347940],` +
			`[43,2,0,3,null,null,null,null,null,null,null,null,"M-MP 43",1,null,0,null,null]]`,
		"models": `["Opel Corsa",""]`, "powertrains": `["combustion","electric","plug_in_hybrid"]`,
	} {
		var wanted any
		require.NoError(t, json.Unmarshal([]byte(want), &wanted))
		if got := r.at(name); !reflect.DeepEqual(got, wanted) {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
	}
	r.heads("Vary", "Accept-Encoding", "Cache-Control", "no-cache, private").says("2 vehicles.")
	if r := a.get(fleetPath, ofAgency(2)).wants(200, ""); len(r.at("vehicles").([]any)) != 1 {
		t.Errorf("vehicles of agency 2: %s, want 1", r.text)
	}
	if r := a.get(fleetPath+"?agency_id=2", ofAgency(1)).wants(200, ""); len(r.at("vehicles").([]any)) != 0 {
		t.Errorf("vehicles of another agency: %s, want none", r.text)
	}
}

func TestFleetMap_IsCompressedIfAccepted(t *testing.T) {
	a := withMarkers(t)
	for accepts, want := range map[string]bool{"gzip": true, "br, gzip;q=0.5": true, "*": true, "": false, "br": false,
		"gzip;q=0": false, "*, gzip;q=0.0": false, "identity": false} {
		request, r := httptest.NewRequest(http.MethodGet, fleetPath, nil), httptest.NewRecorder()
		withToken(adminToken())(request)
		withHeader("Accept-Encoding", accepts)(request)
		a.handler.ServeHTTP(r, request)
		if got := r.Header().Get("Content-Encoding") == "gzip"; got != want || r.Code != 200 {
			t.Errorf("Accept-Encoding %q: %d %v", accepts, r.Code, r.Header())
		}
		var text io.Reader = r.Body
		if want {
			expanded := must(gzip.NewReader(text))
			text = expanded
		}
		var body struct{ Data struct{ Vehicles [][]any } }
		if err := json.NewDecoder(text).Decode(&body); err != nil || len(body.Data.Vehicles) != 2 {
			t.Errorf("Accept-Encoding %q: %v %+v", accepts, err, body)
		}
	}
}

func TestFleetMap_UnchangedIsNotSentAgain(t *testing.T) {
	a := withMarkers(t)
	etag := a.get(fleetPath).wants(200, "").header.Get("ETag")
	recorded := len(a.history.all())
	for _, has := range []string{etag, `"x", ` + etag, strings.TrimPrefix(etag, "W/"), "*"} {
		if r := a.get(fleetPath, withHeader("If-None-Match", has)); r.status != 304 || r.text != "" || r.header.Get("ETag") != etag {
			t.Errorf("%s: %d %q", has, r.status, r.text)
		}
	}
	same(t, len(a.history.all()), recorded, "entries")
	a.fleet.markers[1].Connectivity = telematics.Online
	if r := a.get(fleetPath, withHeader("If-None-Match", etag)).wants(200, ""); r.header.Get("ETag") == etag {
		t.Error("the ETag did not change with the rows")
	}
}

func TestFleetMap_BoxAndRefusals(t *testing.T) {
	a := withMarkers(t)
	a.get(fleetPath+"?bbox=170.5,-10,-170,10&agency_id=1").wants(200, "")
	if want := (telematics.MarkerQuery{Agency: 1, Box: &telematics.Box{West: 170.5, South: -10, East: -170,
		North: 10}}); !reflect.DeepEqual(
		a.fleet.asked.markers, want,
	) {
		t.Errorf("query %+v, want the box across the antimeridian", a.fleet.asked.markers)
	}
	for _, box := range []string{"", "1,2,3", "1,2,3,4,5", "a,b,c,d", "1,3,2,2", "-181,0,1,1", "1,0,2,91", "NaN,0,1,1", "1,,2,3"} {
		a.get(fleetPath+"?bbox="+box).wants(422, "validation_failed")
	}
	entry := a.added(func() { a.get(fleetPath+"?bbox=11,48,12,49").wants(200, "") })
	if want := map[string]any{
		"filter": map[string]any{"bbox": "11,48,12,49"}, "vehicles": 2,
	}; entry.Action != "vehicles.read" ||
		!reflect.DeepEqual(entry.Details, want) {
		t.Errorf("entry %+v", entry)
	}
	a.fleet.err = gone{}
	a.get(fleetPath).wants(503, "service_unavailable")
}

func TestFleetMap_IsLimitedByTheNumberOfItsVehicles(t *testing.T) {
	a := newAPI(t, func(c *httpapi.Config) { c.Rates.Admin = 10 })
	for id := range telematics.VehicleID(5000) {
		a.fleet.twins[id+1] = telematics.Twin{Vehicle: telematics.Vehicle{ID: id + 1, AgencyID: 1 + telematics.AgencyID(id%5000/4999)}}
	}
	reads := func(query string) (n int) {
		for range 9 {
			r := a.get(fleetPath + query)
			if r.status == 429 {
				r.wants(429, "rate_limited")
				if r.header.Get("Retry-After") == "" {
					t.Error("a refusal without Retry-After")
				}
				return n
			}
			n++
		}
		return n
	}
	same(t, reads("?bbox=11,48,12,49"), 2, "reads of 5,000 vehicles with 10 requests a minute")
	a.get("/api/v1/admin/me").wants(200, "") // other requests are not limited by it
	a.get(fleetPath, ofAgency(2)).answers(200)
}
