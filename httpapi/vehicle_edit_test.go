package httpapi_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"motorpool/httpapi/resource"
	"motorpool/rental"
	"motorpool/telematics"
)

const (
	vehicles42  = "/api/v1/admin/vehicles/42"
	allVehicles = "/api/v1/admin/vehicles"
	allStations = "/api/v1/admin/stations"
	newVehicle  = `{"id": 43, "agency_id": 1, "powertrain": "electric", "plate_number": "M 43", "capabilities": ["lock"]}`
)

func TestFleetEdit_PassesTheFieldsAsTheyAreWritten(t *testing.T) {
	a := newAPI(t)
	const body = `{"hourly_rate": 15.00, "deposit": null, "unit": null, "installation": {"lock": "output 1 on"}}`
	r := a.do(http.MethodPatch, vehicles42, withJSON(body))
	if r.status != http.StatusOK || r.body.Message != "1 change." || len(r.body.Meta["changes"].([]any)) != 1 {
		t.Fatalf("%d %s", r.status, r.text)
	}
	e := a.fleet.edited[0]
	if string(e.Fields) != body || e.Vehicle != 42 || e.New || e.Entry.Action != telematics.VehicleChange || e.Entry.Vehicle != 42 {
		t.Errorf("edit %+v with the fields %s", e, e.Fields)
	}
	r = a.do(http.MethodPost, allVehicles, withJSON(newVehicle))
	r.heads("Location", "/api/v1/admin/vehicles/43")
	r.answers(201)
	if e := a.fleet.edited[1]; !e.New || e.Vehicle != 43 || e.Entry.Action != telematics.VehicleAdd {
		t.Errorf("edit %+v", e)
	}
	r = a.do(http.MethodPatch, allStations+"/1", withJSON(`{"name": "B"}`))
	if e := a.fleet.edited[2]; r.status != http.StatusOK || e.Station != 1 || e.Vehicle != 0 || e.Entry.Action != telematics.StationChange {
		t.Errorf("%d %s: edit %+v", r.status, r.text, e)
	}
	for _, nothing := range []string{``, `null`, `{}`} {
		a.do(http.MethodPatch, vehicles42, withJSON(nothing)).wants(200, "")
		if e := a.fleet.edited[len(a.fleet.edited)-1]; string(e.Fields) != "{}" {
			t.Errorf("fields %s", e.Fields)
		}
	}
}

func TestFleetEdit_Refusals(t *testing.T) {
	a := newAPI(t)
	ofOne := claiming(claimSet{"agency_id": 1, "scope": nil})
	for _, c := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{http.MethodPatch, vehicles42, `{"unit": "U1"}`, 403, "forbidden"},
		{http.MethodPatch, vehicles42, `{"protocol": "v1"}`, 403, "forbidden"},
		{http.MethodPatch, vehicles42, `{"installation": null}`, 403, "forbidden"},
		{http.MethodPatch, vehicles42, `{"agency_id": 2}`, 403, "forbidden"},
		{http.MethodPatch, allVehicles + "/0", `{"color": "red"}`, 404, "vehicle_not_found"},
		{http.MethodPost, allVehicles, `{"id": 43, "agency_id": 2, "powertrain": "electric", "plate_number": "M", "capabilities": []}`,
			403, "forbidden"},
		{http.MethodPost, allVehicles, `{"id": 43, "agency_id": 1, "powertrain": "electric", "capabilities": []}`, 422,
			"validation_failed"},
		{http.MethodPatch, vehicles42, `{"colour": "red"}`, 422, "validation_failed"},
		{http.MethodPatch, vehicles42, `{"color": "red", "color": "blue"}`, 422, "validation_failed"},
		{http.MethodPatch, vehicles42, `{"id": 43}`, 422, "validation_failed"},
		{http.MethodPost, allStations, `{"id": 3, "agency_id": 2, "name": "A", "address": "B", "latitude": 1, "longitude": 2}`, 403,
			"forbidden"},
	} {
		before := len(a.history.all())
		a.do(c.method, c.path, ofOne, withJSON(c.body)).wants(c.status, c.code)
		if entries := a.history.all(); c.path != allVehicles+"/0" &&
			(len(entries) != before+1 || entries[before].Outcome != telematics.NotExecuted || string(entries[before].Code) != c.code) {
			t.Errorf("%s: entries %+v, want one of the refusal", c.body, entries[before:])
		}
	}
	a.fleet.err = errors.Join(
		&rental.FieldError{Field: "unit", Message: "is wrong"},
		&rental.FieldError{Field: "year", Message: "is wrong, too"},
	)
	r := a.do(http.MethodPatch, vehicles42, withJSON(`{"unit": "U1", "year": 1900}`))
	r.wants(422, "validation_failed")
	same(t, len(r.body.Errors), 2, "errors")
	a.fleet.err = &telematics.Error{Code: telematics.IDTaken, Message: "Taken."}
	a.do(http.MethodPost, allVehicles, withJSON(newVehicle)).wants(409, "id_taken")
	a.fleet.err = rental.Forbids(rental.BookingStateConflict, "It has bookings.")
	a.do(http.MethodPatch, vehicles42, withJSON(`{"agency_id": 2}`)).wants(409, "booking_state_conflict")
}

func TestFleetEdit_MaintenanceSaysWhyAndUntilWhen(t *testing.T) {
	a := newAPI(t)
	a.get(vehicles42).has("maintenance", nil)
	until := now.Add(time.Hour)
	a.fleet.twins[42] = twin(42, 1, func(t *telematics.Twin) {
		t.Status = telematics.Maintenance
		t.Maintenance = telematics.MaintenanceDetails{Reason: "brakes", Until: until, Since: now, By: "eva"}
	})
	r := a.do(http.MethodPatch, vehicles42, withJSON(`{"status": "maintenance", "reason": "brakes", "until": "2126-01-02T11:00:00Z"}`))
	r.answers(200)
	r.has("status", "maintenance", "maintenance.reason", "brakes", "maintenance.until", resource.Timestamp(until),
		"maintenance.since", resource.Timestamp(now), "maintenance.by", "eva")
	r.meta("bookings_in_maintenance", 2.0)
	for _, fields := range []string{`"until": "tomorrow"`, `"until": 7`, `"reason": ""`, `"reason": 7`} {
		a.do(http.MethodPatch, vehicles42, withJSON(`{"status": "maintenance", `+fields+`}`)).wants(422, "validation_failed")
	}
}
