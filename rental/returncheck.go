package rental

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"motorpool/telematics"
)

// Check is one condition of a return, and what the vehicle reported about it.
type Check struct {
	Name     CheckName `json:"name"`
	OK       bool      `json:"ok"`
	Expected string    `json:"expected"` // in words for a person: closed
	Reported string    `json:"reported"` // likewise: front left open
}

// CheckName names a condition of a return.
type CheckName string

const (
	CheckFresh    CheckName = "fresh"    // the vehicle has just reported
	CheckIgnition CheckName = "ignition" // off
	CheckParked   CheckName = "parked"   // gear P, or parking brake engaged
	CheckDoors    CheckName = "doors"
	CheckWindows  CheckName = "windows"
	CheckTrunk    CheckName = "trunk"
	CheckKey      CheckName = "key"
	CheckCable    CheckName = "charging_cable"
	CheckPlace    CheckName = "place" // at a station, or in an area
)

// CheckNames lists every name.
var CheckNames = []CheckName{
	CheckFresh, CheckIgnition, CheckParked, CheckDoors, CheckWindows, CheckTrunk, CheckKey, CheckCable, CheckPlace,
}

// FreshFor is how old the report may be by which a return is checked. Half has most vehicles report
// once more for each return; double believes doors that were opened meanwhile.
const FreshFor = 30 * time.Second

// LocatedFor is how old the position may be by which a return is checked. Half refuses vehicles
// that stand in an underground car park; double believes a place from which one was driven away.
const LocatedFor = 10 * time.Minute

// Return is what decides about the return of a vehicle.
type Return struct {
	Rules   Rules
	Plan    *Plan
	Dropoff telematics.Station
	// One with a combustion engine has nothing to be plugged in.
	Powertrain telematics.Powertrain
	State      telematics.Snapshot
	// When the vehicle last reported its state.
	Reported time.Time
	// The agency's areas at the vehicle's position, if that is known, and the kind of those in
	// which its rentals end; empty: it has none.
	Areas []Area
	Ends  AreaKind
}

// IsFresh reports whether the report is new enough to check a return.
func (r Return) IsFresh(now time.Time) bool { return now.Sub(r.Reported) <= FreshFor }

// IsOutdated reports whether the position is too old to check a return.
func (r Return) IsOutdated(now time.Time) bool {
	at := r.State.Time(telematics.LocatedAt)
	return at != nil && now.Sub(*at) > LocatedFor
}

// Check returns the conditions of the return that apply to the vehicle: what it never reports is
// not asked of it.
func (r Return) Check(now time.Time) []Check {
	checks := []Check{{
		Name: CheckFresh, OK: r.IsFresh(now), Expected: fmt.Sprintf("a report of the last %s", telematics.Words(FreshFor)),
		Reported: ago(now, r.Reported),
	}}
	add := func(c Check, applies bool) {
		if applies {
			checks = append(checks, c)
		}
	}
	add(r.checkText(CheckIgnition, telematics.Ignition, "off", true))
	add(r.checkParked())
	add(r.checkClosed(CheckDoors, r.Rules.ReturnDoors, telematics.DoorFrontLeft, telematics.DoorFrontRight,
		telematics.DoorRearLeft, telematics.DoorRearRight))
	add(r.checkClosed(CheckTrunk, r.Rules.ReturnTrunk, telematics.DoorTrunk))
	add(r.checkClosed(CheckWindows, r.Rules.ReturnWindows, telematics.WindowFrontLeft, telematics.WindowFrontRight,
		telematics.WindowRearLeft, telematics.WindowRearRight, telematics.Sunroof))
	add(r.checkText(CheckKey, telematics.KeyStatus, string(r.Rules.ReturnKey), r.Rules.ReturnKey != ""))
	add(r.checkCable())
	add(r.checkPlace(now))
	return checks
}

// ago returns how long ago a time is, in words.
func ago(now, then time.Time) string {
	switch {
	case then.IsZero():
		return "none"
	case now.Sub(then) < time.Second:
		return "just now"
	}
	return telematics.Words(now.Sub(then).Truncate(time.Second)) + " ago"
}

// checkText checks a field that has one of some words. A vehicle that never reported it passes.
func (r Return) checkText(name CheckName, f telematics.Field, want string, asked bool) (Check, bool) {
	reading := r.State.Of(f)
	got := r.State.Text(f)
	c := Check{Name: name, Expected: want, Reported: "unknown"}
	if got != nil {
		c.OK, c.Reported = *got == want, *got
	}
	return c, asked && reading.Ever()
}

func (r Return) checkParked() (Check, bool) {
	gear, brake := r.State.Text(telematics.Gear), r.State.Text(telematics.ParkBrake)
	c := Check{Name: CheckParked, Expected: "gear P, or parking brake engaged", Reported: "unknown"}
	var said []string
	if gear != nil {
		said, c.OK = append(said, "gear "+*gear), *gear == "P"
	}
	if brake != nil {
		said, c.OK = append(said, "parking brake "+*brake), c.OK || *brake == "engaged"
	}
	if said != nil {
		c.Reported = strings.Join(said, ", ")
	}
	return c, r.State.Of(telematics.Gear).Ever() || r.State.Of(telematics.ParkBrake).Ever()
}

// checkClosed checks that those of the fields that the vehicle reports are closed.
func (r Return) checkClosed(name CheckName, asked bool, fields ...telematics.Field) (Check, bool) {
	c := Check{Name: name, OK: true, Expected: "closed", Reported: "closed"}
	known := false
	var not []string
	for _, f := range fields {
		if !r.State.Of(f).Ever() {
			continue
		}
		known = true
		state := "unknown"
		if text := r.State.Text(f); text != nil {
			state = *text
		}
		if state != "closed" {
			not = append(not, strings.ReplaceAll(f.Name(), "_", " ")+" "+state)
		}
	}
	if not != nil {
		c.OK, c.Reported = false, strings.Join(not, ", ")
	}
	return c, asked && known
}

func (r Return) checkCable() (Check, bool) {
	asked := r.Plan != nil && r.Plan.PluggedIn && r.Powertrain != telematics.Combustion
	got := r.State.Text(telematics.Charging)
	c := Check{Name: CheckCable, Expected: "plugged in", Reported: "unknown"}
	if got != nil {
		c.OK, c.Reported = *got != "disconnected", *got
	}
	return c, asked
}

// checkPlace checks where the vehicle stands. No vehicle may be left where parking is forbidden.
func (r Return) checkPlace(now time.Time) (Check, bool) {
	position, known := r.State.Position()
	c := Check{Name: CheckPlace, Reported: "unknown"}
	if r.IsOutdated(now) {
		known, c.Reported = false, "located "+ago(now, *r.State.Time(telematics.LocatedAt))
	}
	areaOf := func(k AreaKind) int {
		return slices.IndexFunc(r.Areas, func(a Area) bool { return known && a.Kind == k })
	}
	switch forbidden := areaOf(AreaNoParking); {
	case forbidden >= 0:
		c.Expected, c.Reported = "not where parking is forbidden", r.Areas[forbidden].Name
		return c, true
	case r.Rules.ReturnTo == ReturnToStation:
		c.Expected = fmt.Sprintf("within %d m of %s", r.Rules.StationRadius, r.Dropoff.Name)
		if known {
			metres := position.WholeMetres(r.Dropoff.Position())
			c.OK, c.Reported = metres <= r.Rules.StationRadius, fmt.Sprintf("%d m away", metres)
		}
		return c, true
	case r.Rules.ReturnTo == ReturnToArea && r.Ends != "":
		c.Expected = "in the area where rentals may end"
		if in := areaOf(r.Ends); in >= 0 {
			c.OK, c.Reported = true, r.Areas[in].Name
		} else if known {
			c.Reported = "outside"
		}
		return c, true
	}
	return c, false
}

// ReturnRefusal is the error for a vehicle that cannot be returned as it is.
type ReturnRefusal struct{ Checks []Check }

// Error returns the message.
func (r *ReturnRefusal) Error() string { return r.Unwrap().Error() }

// Unwrap returns the error with its code.
func (r *ReturnRefusal) Unwrap() error {
	var failed []string
	for _, c := range r.Checks {
		if !c.OK {
			name := strings.ReplaceAll(string(c.Name), "_", " ")
			failed = append(failed, fmt.Sprintf("%s: %s, expected %s", name, c.Reported, c.Expected))
		}
	}
	return &telematics.Error{
		Code: ReturnNotPossible, Outcome: telematics.NotExecuted, Retryable: true, RetryAfter: retryReturn,
		Message: "The vehicle cannot be returned as it is: " + strings.Join(failed, "; ") + ". Nothing was sent.",
	}
}

// RefusedReturn returns a *ReturnRefusal if a check has failed, else nil.
func RefusedReturn(checks []Check) error {
	if slices.ContainsFunc(checks, func(c Check) bool { return !c.OK }) {
		return &ReturnRefusal{checks}
	}
	return nil
}
