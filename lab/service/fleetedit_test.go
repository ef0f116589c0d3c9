package service_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"motorpool/store/vehicles"
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

type unknownUnitView struct {
	Unit      string    `json:"unit"`
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
	Messages  int64     `json:"messages"`
}

// takeOut removes the unit of a vehicle, as if it had never been on record.
func (s *stack) takeOut(unit telematics.Unit) {
	s.Helper()
	fleet := s.fleet
	fleet.Vehicles = nil
	for _, v := range s.fleet.Vehicles {
		if v.Unit == unit {
			v.Unit = ""
			fleet.Vehicles = append(fleet.Vehicles, v)
		}
	}
	_, err := vehicles.New(s.owner).Import(s.Context(), fleet)
	s.must(err)
}

// A vehicle is added through one instance. Each commands it once it has a unit, whatever it has
// cached; until then the unit is listed as unknown.
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

	const added = `{"id": 3, "agency_id": 1, "powertrain": "electric", "plate_number": "M-OT 3",
		"capabilities": ["lock"], "hourly_rate": 15.5}`
	if got, want := here.edit(http.MethodPost, "vehicles", added, http.StatusCreated),
		[]string{
			"vehicle 3: new: agency 1, plate number M-OT 3, status available, powertrain electric, capabilities lock, " +
				"hourly rate 15.50 EUR, deposit 0.00 EUR",
		}; !slices.Equal(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
	wants(3, http.StatusConflict, "vehicle_has_no_unit")
	var unknown []unknownUnitView
	s.eventually(20*time.Second, "the unit is listed as unknown", func() bool {
		there.get("/api/v1/admin/units/unknown", &unknown)
		return len(unknown) == 1
	})
	if u := unknown[0]; u.Unit != "car-2" || u.Messages == 0 || time.Since(u.FirstSeen) > time.Minute || u.LastSeen.Before(u.FirstSeen) {
		t.Errorf("listed as %+v", u)
	}

	here.edit(http.MethodPatch, "vehicles/3", `{"unit": "car-2"}`, http.StatusOK)
	wants(3, http.StatusOK, "")
	if there.get("/api/v1/admin/units/unknown", &unknown); len(unknown) != 0 {
		t.Errorf("a unit on record is listed: %+v", unknown)
	}
	if got, want := there.edit(http.MethodPatch, "vehicles/1", `{"unit": "car-2"}`, http.StatusOK),
		[]string{"vehicle 1: unit car-1 → car-2", "vehicle 3: unit car-2 → none"}; !slices.Equal(got, want) {
		t.Errorf("changes %q, want %q", got, want)
	}
	wants(3, http.StatusConflict, "vehicle_has_no_unit")
	wants(1, http.StatusOK, "")
}
