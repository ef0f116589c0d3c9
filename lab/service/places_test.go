package service_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/internal/assert"
	"motorpool/simulator"
	"motorpool/telematics"
)

func TestPlaces_AddressOfTheStationOrOfTheGeocoder(t *testing.T) {
	t.Parallel()
	s := embeddedStack(t, 2)
	s.fleet.Stations = []telematics.Station{
		{ID: 1, AgencyID: 1, Name: "Hauptbahnhof", Address: "Arnulfstraße 1, München", Latitude: 48.1413, Longitude: 11.5578},
	}
	s.record()
	// 78 m from the station, which is of agency 1.
	s.drive(nil, func(telematics.VehicleID) simulator.Profile {
		at := simulator.Point{Latitude: 48.1420, Longitude: 11.5578}
		return simulator.Profile{Body: simulator.Hatchback(at), Actions: simulator.AllActions}
	})
	// It has the API of Nominatim.
	geocoder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if agent := r.UserAgent(); agent != "motorpool/1.2.3 (+fleet@example.com)" {
			t.Errorf("the User-Agent is %q", agent)
		}
		_, _ = w.Write([]byte(`{"display_name":"by ` + r.URL.Query().Get("lat") + `"}`))
	}))
	t.Cleanup(geocoder.Close)
	i := s.serve(func(c *app.Config) {
		c.GeocoderURL, c.GeocoderContact, c.Version = app.Secret(geocoder.URL), "fleet@example.com", "1.2.3"
	})
	for vehicle, address := range map[string]string{"1": "Arnulfstraße 1, München", "2": "by 48.142"} {
		s.eventually(30*time.Second, "vehicle "+vehicle+" is at "+address, func() bool {
			return i.asAdmin(http.MethodGet, "/api/v1/admin/vehicles/"+vehicle+"/status", "").word("data.location.address") == address
		})
	}
	assert.Equal(t, i.metric(`motorpool_geocoder_requests_total{result="found"}`), 1, "addresses found")
}
