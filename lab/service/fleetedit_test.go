package service_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"motorpool/internal/assert"
	"motorpool/telematics"
)

// edit changes the fleet's record, and returns the changes in words.
func (i *instance) edit(method, path, body string, status int) []string {
	i.Helper()
	r := i.send(method, "/api/v1/admin/"+path, body)
	if r.status != status {
		i.Fatalf("%s %s %s: %d %s %s", method, path, body, r.status, r.Error.Code, r.Message)
	}
	var meta struct{ Changes []string }
	if status < 300 {
		i.must(json.Unmarshal(r.Meta, &meta))
	}
	return meta.Changes
}

// A vehicle is added through one instance. Each commands it once it has a unit, whatever it has
// cached.
func TestFleetEdit_UnitsAreAssignedWhileTheServiceRuns(t *testing.T) {
	t.Parallel()
	s := embeddedStack(t, 2)
	s.takeOut("car-2")
	here := s.serve()
	there := s.serve()
	s.drive(nil, healthy)
	wants := func(vehicle, status int, code string) {
		t.Helper()
		for _, i := range []*instance{here, there} {
			i.control(vehicle, telematics.Lock).wants(status, code)
		}
	}

	const station = `{"id": 1, "agency_id": 1, "name": "Ost", "address": "Orleansplatz 1", "latitude": 48.12, "longitude": 11.6}`
	here.edit(http.MethodPost, "stations", station, http.StatusCreated)
	here.edit(http.MethodPost, "stations", station, http.StatusConflict)
	renamed := []string{"station 1: name Ost → Ostbahnhof"}
	assert.EqualSlices(t, here.edit(http.MethodPatch, "stations/1", `{"name": "Ostbahnhof"}`, http.StatusOK), renamed, "changes")
	const added = `{"id": 3, "agency_id": 1, "powertrain": "electric", "plate_number": "M-OT 3",
		"capabilities": ["lock"], "hourly_rate": 15.5}`
	if got, want := here.edit(http.MethodPost, "vehicles", added, http.StatusCreated),
		[]string{
			"vehicle 3: new: agency 1, plate number M-OT 3, status available, powertrain electric, capabilities lock, " +
				"hourly rate 15.50 EUR, deposit 0.00 EUR",
		}; !slices.Equal(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
	here.edit(http.MethodPost, "vehicles", added, http.StatusConflict)
	here.edit(http.MethodPatch, "vehicles/4", `{"color": "red"}`, http.StatusNotFound)
	here.edit(http.MethodPatch, "vehicles/3", `{"agency_id": 7, "image": "zoe.png", "hourly_rate": 1.555}`, http.StatusUnprocessableEntity)
	wants(3, http.StatusConflict, "vehicle_has_no_unit")

	here.edit(http.MethodPatch, "vehicles/3", `{"unit": "car-2"}`, http.StatusOK)
	wants(3, http.StatusOK, "")
	if got, want := there.edit(http.MethodPatch, "vehicles/1", `{"unit": "car-2"}`, http.StatusOK),
		[]string{"vehicle 1: unit car-1 → car-2", "vehicle 3: unit car-2 → none"}; !slices.Equal(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
	wants(3, http.StatusConflict, "vehicle_has_no_unit")
	wants(1, http.StatusOK, "")

	own := "Bearer " + s.token(telematics.Actor{Subject: "own", Role: telematics.Admin, Agency: 2})
	for path, status := range map[string]int{"vehicles/2": http.StatusOK, "vehicles/3": http.StatusNotFound} {
		here.send(http.MethodPatch, "/api/v1/admin/"+path, `{"color": "red"}`, "Authorization", own).wants(status)
	}
	var entries []struct {
		Action     string         `json:"action"`
		Outcome    string         `json:"outcome"`
		Parameters map[string]any `json:"parameters"`
	}
	here.get("/api/v1/admin/activity?vehicle_id=3&action=vehicle.change", &entries)
	var outcomes []string
	for _, e := range entries {
		outcomes = append(outcomes, fmt.Sprint(e.Outcome, " ", e.Parameters["changes"]))
	}
	if want := []string{
		"not_executed <nil>", "executed [vehicle 3: unit car-2 → none]",
		"executed [vehicle 3: unit none → car-2 vehicle 3: protocol none → v1]",
		"not_executed <nil>",
	}; !slices.Equal(outcomes, want) {
		t.Errorf("audit log entries %q, want %q", outcomes, want)
	}
}
