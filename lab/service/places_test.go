package service_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/internal/assert"
	"motorpool/simulator"
	"motorpool/telematics"
)

// standIn is a local server with the API of Nominatim.
type standIn struct {
	*httptest.Server
	release chan struct{} // the server responds when it is closed

	mu      sync.Mutex
	arrived []time.Time
	agents  map[string]bool
}

func newStandIn(t *testing.T) *standIn {
	s := &standIn{release: make(chan struct{}), agents: map[string]bool{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.arrived = append(s.arrived, time.Now())
		s.agents[r.UserAgent()] = true
		s.mu.Unlock()
		select {
		case <-s.release:
		case <-r.Context().Done():
		}
		_, _ = w.Write([]byte(`{"display_name":"by ` + r.URL.Query().Get("lat") + `"}`))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *standIn) requests() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Time{}, s.arrived...)
}

type located struct {
	ID       int `json:"id"`
	Location struct {
		Latitude *float64 `json:"latitude"`
		Address  *string  `json:"address"`
	} `json:"location"`
}

func (i *instance) address(vehicle string) string {
	i.Helper()
	var body located
	r := i.get("/api/v1/admin/vehicles/"+vehicle+"/status", &body)
	if r.took > 15*time.Second { // a read that waits for a silent geocoder takes 20 s
		i.Errorf("a read took %v", r.took)
	}
	switch {
	case r.status != http.StatusOK || body.Location.Latitude == nil:
		return "no position"
	case body.Location.Address == nil:
		return ""
	}
	return *body.Location.Address
}

func TestPlaces_AddressOfTheStationOrOfTheGeocoder(t *testing.T) {
	t.Parallel()
	s := embeddedStack(t, 5)
	s.fleet.Stations = []telematics.Station{
		{ID: 1, AgencyID: 1, Name: "Hauptbahnhof", Address: "Arnulfstraße 1, München", Latitude: 48.1413, Longitude: 11.5578},
	}
	s.record()
	s.drive(nil, func(id telematics.VehicleID) simulator.Profile {
		at := map[telematics.VehicleID]simulator.Point{
			1: {Latitude: 48.1420, Longitude: 11.5578}, // agency 1, 78 m from the station
			2: {Latitude: 48.1420, Longitude: 11.5578}, // agency 2
			3: {Latitude: 48.1999, Longitude: 11.5578},
			4: {Latitude: 48.2000, Longitude: 11.5578}, // on the same parking lot
			5: {Latitude: 48.3000, Longitude: 11.5578},
		}[id]
		return simulator.Profile{Body: simulator.Hatchback(at), Actions: simulator.AllActions}
	})
	geocoder := newStandIn(t)
	without := s.serve()
	with := func(c *app.Config) {
		c.GeocoderURL, c.GeocoderContact, c.Version = app.Secret(geocoder.URL), "fleet@example.com", "1.2.3"
	}
	one, two := s.serve(with), s.serve(with)

	for _, vehicle := range []string{"1", "2", "3", "4", "5"} {
		s.eventually(20*time.Second, "vehicle "+vehicle+" has a position", func() bool { return one.address(vehicle) != "no position" })
	}
	s.eventually(20*time.Second, "the car near its station has its address", func() bool {
		return without.address("1") == "Arnulfstraße 1, München" && one.address("1") == "Arnulfstraße 1, München"
	})
	s.eventually(20*time.Second, "a request is sent", func() bool { return len(geocoder.requests()) > 0 })
	// A slow geocoder does not delay a read.
	for _, vehicle := range []string{"2", "3", "5"} {
		assert.Equal(t, one.address(vehicle), "", "before the geocoder responds, vehicle %s has the address", vehicle)
	}
	close(geocoder.release)
	want := map[string]string{"1": "Arnulfstraße 1, München", "2": "by 48.142", "5": "by 48.3"}
	for _, i := range []*instance{one, two} {
		for vehicle, address := range want {
			s.eventually(30*time.Second, "vehicle "+vehicle+" is at "+address, func() bool { return i.address(vehicle) == address })
		}
		s.eventually(30*time.Second, "the parking lot has one address", func() bool {
			got := i.address("3")
			return (got == "by 48.2" || got == "by 48.1999") && i.address("4") == got
		})
		var list []located
		i.get("/api/v1/admin/vehicles", &list)
		for _, v := range list {
			if v.Location.Address == nil {
				t.Errorf("in the list vehicle %d has no address", v.ID)
			}
		}
	}
	arrived := geocoder.requests()
	// They arrive later than they are sent, on a busy machine by seconds.
	if took := arrived[len(arrived)-1].Sub(arrived[0]); took < time.Duration(len(arrived)-1)*time.Second/2 {
		t.Errorf("%d requests in %v, want one each second", len(arrived), took)
	}
	// A request that exceeded its time limit is repeated.
	failed := one.geocoded("failed") + two.geocoded("failed")
	if int64(len(arrived)) != 6+failed || one.geocoded("found") != 3 || two.geocoded("found") != 3 {
		t.Errorf("%d requests of two instances for three places, of which %d failed", len(arrived), failed)
	}
	if len(geocoder.agents) != 1 || !geocoder.agents["motorpool/1.2.3 (+fleet@example.com)"] {
		t.Errorf("the User-Agent is %v", geocoder.agents)
	}
	if got := without.address("2"); got != "" || without.geocoded("found") != 0 {
		t.Errorf("without a geocoder vehicle 2 is at %q, and %d addresses were found", got, without.geocoded("found"))
	}
}

// geocoded returns the number of requests to the geocoder with a result; zero without a geocoder.
func (i *instance) geocoded(result string) int64 {
	i.Helper()
	return int64(i.metrics()[`motorpool_geocoder_requests_total{result="`+result+`"}`])
}
