package service_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

type fields = []telematics.Field

// place returns the body of a request for an area: a square around a point.
func place(kind string, at simulator.Point, degrees float64) string {
	west, east, south, north := at.Longitude-degrees, at.Longitude+degrees, at.Latitude-degrees, at.Latitude+degrees
	return fmt.Sprintf(`{"kind":%q,"geometry":{"type":"Polygon","coordinates":[[[%f,%f],[%f,%f],[%f,%f],[%f,%f],[%f,%f]]]}}`,
		kind, west, south, east, south, east, north, west, north, west, south)
}

// change changes a vehicle, and waits until the service has what it reports of some fields.
func (i *instance) change(car *simulator.Car, vehicle int, edit func(*simulator.Body), reports ...telematics.Field) {
	i.Helper()
	car.Change(edit)
	body := car.Body()
	report := body.Report(time.Now())
	i.eventually(20*time.Second, fmt.Sprintf("the service has %v of vehicle %d", reports, vehicle), func() bool {
		a := i.asAdmin(http.MethodGet, fmt.Sprintf("/api/v1/admin/vehicles/%d/status", vehicle), "")
		for _, f := range reports {
			want, _ := json.Marshal(report.Values[f]) // texts and numbers
			if got, _ := json.Marshal(a.at("data." + f.String())); string(got) != string(want) {
				return false
			}
		}
		return true
	})
}

// refuses ends a rental, and checks that exactly one condition forbids it.
func (c customer) refuses(i *instance, booking int64, name, expected, reported string) {
	i.Helper()
	a := c.post(i, ownOf(booking)+"/end", "").wants(409, "return_not_possible").has("error.outcome", `"not_executed"`)
	failed, found := 0, false
	for _, one := range a.list("error.checks") {
		check, _ := one.(map[string]any)
		if check["ok"] != false {
			continue
		}
		failed++
		found = found || check["name"] == name && check["expected"] == expected && (check["reported"] == reported || reported == "")
	}
	if failed != 1 || !found {
		i.Errorf("the conditions are %v, want only %s to fail: %s, expected %s", a.at("error.checks"), name, reported, expected)
	}
}

// One rental meets conditions of a return: the vehicle fails one after the other, and is mended.
// Package rental tests every condition, and store/rentals what happens where a vehicle is silent.
func TestReturn_ConditionsAreMetBeforeTheEnd(t *testing.T) {
	t.Parallel()
	const agency = "/api/v1/admin/agencies/1"
	here, yard, dropoff := simulator.Point{Latitude: 48.1402, Longitude: 11.56}, simulator.Point{Latitude: 48.15, Longitude: 11.57},
		simulator.Point{Latitude: 48.1276, Longitude: 11.605}
	s := startStack(t, 1)
	s.fleet.Vehicles[0].Powertrain = telematics.Electric
	r := s.rent()
	r.interval = time.Hour // the cars report only what changes
	i := r.open()
	car := r.drive(nil, func(telematics.VehicleID) simulator.Profile {
		return simulator.Profile{Body: simulator.ElectricCar(here), Actions: simulator.AllActions}
	}).Cars()[0]
	rules := func(text string) { i.asAdmin(http.MethodPut, agency+"/rental-rules", text).wants(200, "") }
	area := func(name, body string) { i.asAdmin(http.MethodPut, agency+"/areas/"+name, body).wants(201, "") }
	rules(`{"return_to":"area","return_key":"out"}`)
	area("city", place("operating", here, 0.1))
	area("yard", place("no_parking", yard, 0.001))
	i.asAdmin(http.MethodPut, agency+"/tariffs/compact", `{"per_hour":15,"deposit":200,"plugged_in":true}`).wants(200, "")

	c := r.newCustomer()
	c.add(i, "pm_card_visa", true)
	i.change(car, 1, func(b *simulator.Body) { b.Locked = true }, telematics.Latitude)
	booking := c.book(i, 1, fromNow(time.Minute))
	c.get(i, ownOf(booking)+"/vehicle").wants(200, "").has("data.is_locked", "true")
	c.post(i, ownOf(booking)+"/start", "").wants(200, "").has("data.status", `"active"`)
	c.get(i, ownOf(booking)+"/vehicle").wants(200, "").has("data.is_locked", "false")

	opened := func(parts ...telematics.Field) func(*simulator.Body) {
		return func(b *simulator.Body) { b.Opened = parts }
	}
	at := func(p simulator.Point) func(*simulator.Body) {
		return func(b *simulator.Body) { b.Latitude, b.Longitude = p.Latitude, p.Longitude }
	}
	for _, one := range []struct {
		breaks                   func(*simulator.Body)
		reports                  fields
		name, expected, reported string
		rule                     func() // set before
	}{
		{
			opened(telematics.DoorRearLeft, telematics.DoorRearRight), fields{telematics.DoorRearLeft, telematics.DoorRearRight},
			"doors", "closed", "rear left open, rear right open", nil,
		},
		{
			func(b *simulator.Body) { b.Charging = "disconnected" }, fields{telematics.Charging},
			"charging_cable", "plugged in", "disconnected", nil,
		},
		{at(yard), fields{telematics.Latitude}, "place", "not where parking is forbidden", "yard", nil},
		{
			at(here), fields{telematics.Latitude}, "place", "within 200 m of Ostbahnhof", "3626 m away",
			func() { rules(`{"return_to":"station","station_radius_m":200,"return_key":"out"}`) },
		},
	} {
		if one.rule != nil {
			one.rule()
		}
		good := car.Body()
		i.change(car, 1, one.breaks, one.reports...)
		c.refuses(i, booking, one.name, one.expected, one.reported)
		i.change(car, 1, func(b *simulator.Body) { *b = good }, one.reports...)
	}
	i.change(car, 1, at(dropoff), telematics.Latitude)

	c.post(i, ownOf(booking)+"/end", "").wants(200, "").has("data.status", `"completed"`)
	if body := car.Body(); !body.Locked || body.Immobilizer != simulator.Engaged {
		r.Errorf("after the end the vehicle is locked: %v, and its immobilizer %s", body.Locked, body.Immobilizer)
	}
}
