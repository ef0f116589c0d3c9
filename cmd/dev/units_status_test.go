package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/simulator"
	modules "motorpool/simulator/ovms"
	trackers "motorpool/simulator/teltonika"
	"motorpool/telematics"
)

// given is a row of a documented table of the fields of a status: how late a field may be while the
// vehicle drives and while it is parked.
type given struct{ driving, parked time.Duration }

var (
	quotedField = regexp.MustCompile("`([a-z_.0-9]+)`")
	seconds     = regexp.MustCompile(`^(\d+) s$`)
)

// documented reads the table; a field is nil if the unit does not have it. If the table has a
// column for the demo vehicle, that column is used.
func documented(t *testing.T, file string) map[string]*given {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	fields := map[string]*given{}
	var columns int
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == "field":
			columns = len(cells)
			continue
		case columns == 0 || strings.HasPrefix(cells[0], "---"):
			continue
		case len(cells) != columns:
			columns = 0
			continue
		}
		row := &given{lateness(t, cells[3]), lateness(t, cells[4])}
		if columns > 5 && cells[5] != "yes" {
			row = nil
		}
		for _, name := range quotedField.FindAllStringSubmatch(cells[0], -1) {
			if _, twice := fields[name[1]]; twice {
				t.Errorf("%s lists %s twice", file, name[1])
			}
			fields[name[1]] = row
		}
	}
	return fields
}

func lateness(t *testing.T, cell string) time.Duration {
	t.Helper()
	found := seconds.FindStringSubmatch(cell)
	if found == nil {
		t.Fatalf("%q is not a number of seconds", cell)
	}
	n, _ := strconv.Atoi(found[1])
	return time.Duration(n) * time.Second
}

// servicesOwn are fields of a status that no unit reports.
var servicesOwn = []string{"vehicle_id", "status", "location.address", "connectivity.status"}

// trueStatus returns the status that a body must give, field by field. The tolerance of numbers is
// the rounding of the unit.
func trueStatus(b simulator.Body) map[string]any {
	one := func(cond bool, yes, no string) any {
		if cond {
			return yes
		}
		return no
	}
	door := func(f telematics.Field) any { return one(slices.Contains(b.Opened, f), "open", "closed") }
	want := map[string]any{
		"location.latitude": b.Latitude, "location.longitude": b.Longitude, "location.heading": b.Heading,
		"telemetry.speed_kmh": b.SpeedKmh, "telemetry.mileage_km": b.MileageKm, "telemetry.ignition": one(b.Ignition, "on", "off"),
		"telemetry.gear": b.Gear, "telemetry.parking_brake": one(b.ParkBrake, "engaged", "released"),
		"telemetry.fuel_level_percent": b.EnergyPercent, "telemetry.battery_level_percent": b.EnergyPercent,
		"telemetry.remaining_range_km": b.EnergyPercent / 100 * b.FullRangeKm, "telemetry.charging_status": nil,
		"telemetry.onboard_voltage_v": b.OnboardV, "telemetry.is_locked": b.Locked,
		"telemetry.doors.front_left": door(telematics.DoorFrontLeft), "telemetry.doors.front_right": door(telematics.DoorFrontRight),
		"telemetry.doors.rear_left": door(telematics.DoorRearLeft), "telemetry.doors.rear_right": door(telematics.DoorRearRight),
		"telemetry.doors.trunk":         door(telematics.DoorTrunk),
		"diagnostics.service_due_in_km": b.ServiceDueKm,
		"diagnostics.dtcs":              b.DTCs,
		"connectivity.firmware_version": "3.3.006",
		"location.timestamp":            fresh{},
		"connectivity.last_seen":        fresh{},
		"oem_data":                      present{},
	}
	if b.Charging == "charging" {
		want["telemetry.charging_status"] = "charging"
	}
	return want
}

type (
	fresh   struct{} // a time that is at most as old as its field may be late
	present struct{} // any value
)

// tolerance returns how much a number may differ because of the rounding of the units.
func tolerance(field string) float64 {
	if strings.HasPrefix(field, "location.l") {
		return 0.01 // the vehicle drives 100 m in 10 s
	}
	return 1
}

// isTrue reports whether a field has the wanted value; a fresh time may be late by the given
// duration.
func isTrue(field string, got, want any, late time.Duration) bool {
	switch want := want.(type) {
	case float64:
		n, ok := got.(float64)
		return ok && math.Abs(n-want) <= tolerance(field)
	case []string:
		list, ok := got.([]any)
		return ok && len(list) == len(want) &&
			!slices.ContainsFunc(want, func(code string) bool { return !slices.Contains(list, any(code)) })
	case fresh:
		text, _ := got.(string)
		at, err := time.Parse("2006-01-02T15:04:05.000Z", text)
		return err == nil && time.Since(at) <= late
	case present:
		return got != nil
	default:
		return got == want
	}
}

// unitPace is the number of seconds of the units that pass in one second, and patience is the
// allowance for a busy machine.
const (
	unitPace = 20
	patience = 20 * time.Second
)

// within waits until the status of a vehicle is as documented, each field within its time.
func (l *live) within(
	what string, id telematics.VehicleID, doc map[string]*given, body func() simulator.Body,
	late func(given) time.Duration,
) {
	l.Helper()
	began := time.Now()
	wrong := map[string]any{}
	for {
		status, now := l.status(id), time.Since(began)
		want := trueStatus(body())
		clear(wrong)
		failed := ""
		for field, row := range doc {
			if row == nil {
				if v, isObject := status[field].(map[string]any); status[field] != nil && (!isObject || len(v) > 0) {
					failed = field + ", which the unit does not have"
				}
				continue
			}
			most := late(*row)/unitPace + patience
			if !isTrue(field, status[field], want[field], most) {
				if wrong[field] = status[field]; now > most {
					failed = field
				}
			}
		}
		if failed != "" {
			l.Errorf("vehicle %d, %s: %s after %v; wrong are %v, want %v", id, what, failed, now.Round(time.Millisecond), wrong, want)
			return
		}
		if len(wrong) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// The tables are those of docs/ovms.md and docs/teltonika.md. A field of section 2.2 of the
// interface that has no row must be null.
func TestStatus_OfCommercialUnitsIsAsDocumented(t *testing.T) {
	t.Parallel()
	l := begin(t, t.TempDir(), onSharedPostgres(t), func(f *flags) { f.Without = []telematics.VehicleID{11, 12} })
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	car, van := l.boughtUnits(ctx)

	for _, u := range []boughtUnit{
		{11, "../../docs/ovms.md", func() simulator.Body {
			b := car.Body(ctx)
			if b.Gear == "P" {
				b.Gear = "N" // a module reports P as N
			}
			return b
		}, func(change func(*simulator.Body)) {
			car.Do(ctx, func(b *simulator.Body, _ *modules.Faults) { change(b) })
		},
			func(d time.Duration) { car.Do(ctx, func(_ *simulator.Body, f *modules.Faults) { f.Delay = d }) }},
		{12, "../../docs/teltonika.md", func() simulator.Body { return van.Body(ctx) },
			func(change func(*simulator.Body)) {
				van.Do(ctx, func(b *simulator.Body, _ *trackers.Faults) { change(b) })
			},
			func(d time.Duration) {
				van.Do(ctx, func(_ *simulator.Body, f *trackers.Faults) { f.Delay = d })
			}},
	} {
		t.Run(filepath.Base(u.doc), func(t *testing.T) {
			t.Parallel()
			l := l.in(t)
			u.reportsAsDocumented(l)
			u.locksLate(l)
		})
	}
}

// boughtUnit is a vehicle of the demo fleet with a commercial unit.
type boughtUnit struct {
	id    telematics.VehicleID
	doc   string
	body  func() simulator.Body // the state as its unit can measure it
	do    func(func(*simulator.Body))
	delay func(time.Duration) // delays commands
}

func (u boughtUnit) reportsAsDocumented(l *live) {
	doc := documented(l.T, u.doc)
	for field := range l.status(u.id) {
		_, ok := doc[field]
		own := slices.Contains(servicesOwn, field)
		switch {
		case !ok && !own:
			doc[field] = nil // must be null
		case ok && own:
			l.Errorf("%s lists %s, which does not come from the unit", u.doc, field)
		}
	}
	l.within("at first", u.id, doc, u.body, func(given) time.Duration { return time.Minute * unitPace })
	u.do(func(b *simulator.Body) {
		b.EnergyPercent, b.OnboardV, b.MileageKm, b.ServiceDueKm = 17, 10.9, 60_000, 4_321
		b.Heading, b.Latitude, b.Longitude, b.ParkBrake, b.Gear = 271, 48.2, 11.7, false, "N"
		b.Locked, b.Opened, b.DTCs = true, []telematics.Field{telematics.DoorFrontLeft, telematics.DoorTrunk}, []string{"P0301", "P0420"}
	})
	l.within("parked", u.id, doc, u.body, func(g given) time.Duration { return g.parked })
	u.do(func(b *simulator.Body) {
		b.Ignition, b.Gear, b.SpeedKmh, b.Opened, b.ParkBrake, b.Locked = true, "D", 40, nil, false, false
	})
	l.within("driving", u.id, doc, u.body, func(g given) time.Duration { return g.driving })
}

// locksLate locks through a radio that is slower than the time limit: the report of the lock
// settles the command after its caller got a response, in an event.
func (u boughtUnit) locksLate(l *live) {
	u.do(func(b *simulator.Body) { b.Ignition, b.SpeedKmh = false, 0 })
	events := l.commandEvents(u.id)
	u.delay(6 * time.Second)
	defer u.delay(0)
	r := l.callWithin(3, http.MethodPost, fmt.Sprintf("vehicles/%d/control/lock", u.id), "ADMIN_TOKEN")
	if r.status != http.StatusGatewayTimeout || r.Error.Outcome != "unknown" {
		l.Fatalf("lock of vehicle %d: %d %+v", u.id, r.status, r.Error)
	}
	late := 0
	for deadline := time.After(time.Minute); late == 0; {
		select {
		case e := <-events:
			if e.State == "succeeded" {
				late++
				if !e.Late || e.Contradicted || !u.body().Locked {
					l.Errorf("vehicle %d: the event is %+v, the vehicle is locked: %t", u.id, e, u.body().Locked)
				}
			}
		case <-deadline:
			l.Fatalf(
				"vehicle %d: no event of the late lock within a minute; the vehicle is locked: %t, reported: %v", u.id,
				u.body().Locked, l.status(u.id)["telemetry.is_locked"],
			)
		}
	}
}

type commandEvent struct {
	State              string
	Late, Contradicted bool
}

// commandEvents follows the command events of a vehicle.
func (l *live) commandEvents(id telematics.VehicleID) <-chan commandEvent {
	l.Helper()
	request, err := http.NewRequestWithContext(
		l.Context(), http.MethodGet,
		fmt.Sprintf("%s/api/v1/admin/events?event=command&vehicle_id=%d", l.env["BASE_URL"], id), nil,
	)
	require.NoError(l, err)
	request.Header.Set("Authorization", "Bearer "+l.env["ADMIN_TOKEN"])
	response, err := http.DefaultClient.Do(request)
	require.NoError(l, err)
	l.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		l.Fatalf("events: %s", response.Status)
	}
	events := make(chan commandEvent, 100)
	go func() {
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			var e struct{ Command *commandEvent }
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &e) == nil && e.Command != nil {
				events <- *e.Command
			}
		}
	}()
	return events
}

// boughtUnits starts the units of the vehicles 11 and 12, at a higher speed than the world.
func (l *live) boughtUnits(ctx context.Context) (*modules.Module, *trackers.Unit) {
	l.Helper()
	whole, err := demoFleet(nil)
	require.NoError(l, err)
	var logins map[telematics.VehicleID]login
	text, err := os.ReadFile(filepath.Join(l.dir, unitsFile))
	if err == nil {
		err = json.Unmarshal(text, &logins)
	}
	require.NoError(l, err)
	password := func(u telematics.Unit) string {
		for _, login := range logins {
			if login.Unit == u {
				return login.Password
			}
		}
		return ""
	}
	module, tracker := whole.modules(password)[0], whole.trackers(password)[0]
	module.Broker, module.Speed, module.Day, module.StableWait = l.env["MQTT_URL"], unitPace, nil, time.Second
	module.Body.Charging = "disconnected" // while charging it would report more often
	tracker.Broker, tracker.Speed, tracker.Day = l.env["MQTT_URL"], unitPace, nil
	car, van := modules.New(module), trackers.New(tracker)
	ctx, stop := context.WithCancel(ctx)
	var units sync.WaitGroup
	units.Go(func() { _ = car.Run(ctx) })
	units.Go(func() { _ = van.Run(ctx) })
	l.Cleanup(func() { stop(); units.Wait() })
	return car, van
}
