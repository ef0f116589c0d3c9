package service_test

import (
	"net/http"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
)

// A vehicle is added through one instance. Each commands it once it has a unit, whatever it has
// cached; until then the unit is listed as unknown.
func TestFleetEdit_UnitsAreAssignedWhileTheServiceRuns(t *testing.T) {
	t.Parallel()
	s := embeddedStack(t, 2)
	here := s.serve()
	there := s.serve()
	edit := func(at *instance, method, path, body string, status int) {
		t.Helper()
		at.asAdmin(method, "/api/v1/admin/vehicles"+path, body).wants(status, "")
	}
	edit(here, http.MethodPatch, "/2", `{"unit": null}`, http.StatusOK)
	s.drive(nil, healthy)
	wants := func(vehicle, status int, code string) {
		t.Helper()
		for _, i := range []*instance{here, there} {
			i.control(vehicle, telematics.Lock).wants(status, code)
		}
	}

	const added = `{"id": 3, "agency_id": 1, "powertrain": "electric", "plate_number": "M-OT 3", "capabilities": ["lock"]}`
	edit(here, http.MethodPost, "", added, http.StatusCreated)
	wants(3, http.StatusConflict, "vehicle_has_no_unit")
	var unknown []struct{ Unit string }
	s.eventually(20*time.Second, "the unit is listed as unknown", func() bool {
		there.get("/api/v1/admin/units/unknown", &unknown)
		return len(unknown) == 1
	})
	assert.Equal(t, unknown[0].Unit, "car-2", "unknown")
	edit(here, http.MethodPatch, "/3", `{"unit": "car-2"}`, http.StatusOK)
	wants(3, http.StatusOK, "")
	if there.get("/api/v1/admin/units/unknown", &unknown); len(unknown) != 0 {
		t.Errorf("a unit on record is listed: %+v", unknown)
	}
	edit(there, http.MethodPatch, "/1", `{"unit": "car-2"}`, http.StatusOK)
	wants(3, http.StatusConflict, "vehicle_has_no_unit")
	wants(1, http.StatusOK, "")
}
