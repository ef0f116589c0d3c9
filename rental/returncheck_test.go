package rental_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

// failed returns the names of the checks that are not met.
func failed(checks []rental.Check) string {
	var names []string
	for _, c := range checks {
		if !c.OK {
			names = append(names, string(c.Name))
		}
	}
	return strings.Join(names, " ")
}

func TestReturn_EachCheckFailsAndIsMended(t *testing.T) {
	now := time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)
	station := telematics.Station{ID: 2, Name: "Ostbahnhof", Latitude: 48.1277, Longitude: 11.6034}
	good := map[telematics.Field]any{
		telematics.Ignition: "off", telematics.Gear: "P", telematics.ParkBrake: "released",
		telematics.DoorFrontLeft: "closed", telematics.DoorTrunk: "closed", telematics.WindowRearLeft: "closed",
		telematics.KeyStatus: "in", telematics.Charging: "charging", telematics.Latitude: 48.1278, telematics.Longitude: 11.6034,
	}
	rules := rental.DefaultRules
	rules.ReturnKey, rules.ReturnTo = "in", rental.ReturnToStation
	check := func(change map[telematics.Field]any, more ...func(*rental.Return)) []rental.Check {
		state := telematics.NewSnapshot()
		for _, values := range []map[telematics.Field]any{good, change} {
			for f, v := range values {
				state[f] = telematics.Reading{Value: v, At: now, Once: true}
				if v == "never" {
					state[f] = telematics.Reading{}
				}
			}
		}
		r := rental.Return{
			Rules: rules, Plan: &rental.Plan{PluggedIn: true}, Dropoff: station, State: state, Reported: now.Add(-5 * time.Second),
		}
		for _, m := range more {
			m(&r)
		}
		return r.Check(now)
	}
	if got := check(nil); failed(got) != "" || len(got) != 9 || rental.RefusedReturn(got) != nil {
		t.Fatalf("a vehicle as it must be: %+v", got)
	}
	for name, c := range map[string]struct {
		change map[telematics.Field]any
		more   func(*rental.Return)
		want   string
	}{
		"ignition on":            {change: map[telematics.Field]any{telematics.Ignition: "on"}, want: "ignition"},
		"ignition unknown now":   {change: map[telematics.Field]any{telematics.Ignition: nil}, want: "ignition"},
		"gear D, brake released": {change: map[telematics.Field]any{telematics.Gear: "D"}, want: "parked"},
		"gear N, brake engaged":  {change: map[telematics.Field]any{telematics.Gear: "N", telematics.ParkBrake: "engaged"}},
		"reports no gear":        {change: map[telematics.Field]any{telematics.Gear: "never", telematics.ParkBrake: "never"}},
		"door open":              {change: map[telematics.Field]any{telematics.DoorFrontLeft: "open"}, want: "doors"},
		"trunk open":             {change: map[telematics.Field]any{telematics.DoorTrunk: "open"}, want: "trunk"},
		"window open":            {change: map[telematics.Field]any{telematics.WindowRearLeft: "ajar"}, want: "windows"},
		"sunroof open":           {change: map[telematics.Field]any{telematics.Sunroof: "open"}, want: "windows"},
		"key taken":              {change: map[telematics.Field]any{telematics.KeyStatus: "out"}, want: "key"},
		"no key sensor":          {change: map[telematics.Field]any{telematics.KeyStatus: "never"}},
		"not plugged in":         {change: map[telematics.Field]any{telematics.Charging: "disconnected"}, want: "charging_cable"},
		"cable not reported":     {change: map[telematics.Field]any{telematics.Charging: "never"}, want: "charging_cable"},
		"nothing to plug in": {
			change: map[telematics.Field]any{telematics.Charging: "never"},
			more:   func(r *rental.Return) { r.Powertrain = telematics.Combustion },
		},
		"far away":          {change: map[telematics.Field]any{telematics.Latitude: 48.2}, want: "place"},
		"position unknown":  {change: map[telematics.Field]any{telematics.Latitude: nil}, want: "place"},
		"position outdated": {change: map[telematics.Field]any{telematics.LocatedAt: now.Add(-11 * time.Minute)}, want: "place"},
		"position of late":  {change: map[telematics.Field]any{telematics.LocatedAt: now.Add(-10 * time.Minute)}},
		"stale":             {more: func(r *rental.Return) { r.Reported = now.Add(-31 * time.Second) }, want: "fresh"},
		"never reported":    {more: func(r *rental.Return) { r.Reported = time.Time{} }, want: "fresh"},
		"two things": {
			change: map[telematics.Field]any{telematics.DoorFrontLeft: "open", telematics.Ignition: "on"}, want: "ignition doors",
		},
		"rules that ask nothing": {
			change: map[telematics.Field]any{telematics.DoorFrontLeft: "open"},
			more:   func(r *rental.Return) { r.Rules = rental.Rules{} },
		},
		"outside the areas":     {more: inAreas(rental.AreaOperating), want: "place"},
		"in an operating area":  {more: inAreas(rental.AreaOperating, rental.AreaOperating)},
		"parking forbidden":     {more: inAreas(rental.AreaOperating, rental.AreaOperating, rental.AreaNoParking), want: "place"},
		"not where rentals end": {more: inAreas(rental.AreaEndOnly, rental.AreaOperating), want: "place"},
		"where rentals end":     {more: inAreas(rental.AreaEndOnly, rental.AreaEndOnly)},
		"no areas":              {more: inAreas("")},
		"anywhere, but forbidden": {more: func(r *rental.Return) {
			inAreas("", rental.AreaNoParking)(r)
			r.Rules.ReturnTo = rental.ReturnAnywhere
		}, want: "place"},
		"at the station, but forbidden": {more: func(r *rental.Return) {
			inAreas("", rental.AreaNoParking)(r)
			r.Rules.ReturnTo = rental.ReturnToStation
		}, want: "place"},
	} {
		more := c.more
		if more == nil {
			more = func(*rental.Return) {}
		}
		got := check(c.change, more)
		if failed(got) != c.want {
			t.Errorf("%s: failed %q, want %q: %+v", name, failed(got), c.want, got)
		}
		var refusal *rental.ReturnRefusal
		if err := rental.RefusedReturn(got); (err != nil) != (c.want != "") || err != nil && !errors.As(err, &refusal) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// inAreas has the vehicle stand in areas of the kinds; ends is the kind of those where rentals end.
func inAreas(ends rental.AreaKind, kinds ...rental.AreaKind) func(*rental.Return) {
	return func(r *rental.Return) {
		r.Rules.ReturnTo, r.Ends = rental.ReturnToArea, ends
		for _, k := range kinds {
			r.Areas = append(r.Areas, rental.Area{Name: string(k), Kind: k})
		}
	}
}
