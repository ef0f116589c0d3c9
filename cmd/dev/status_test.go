package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"motorpool/telematics"
)

// shape reports whether a value has the type of section 2.2 of the interface.
type shape func(any) bool

func numberIn(low, high float64) shape {
	return func(v any) bool { n, ok := v.(float64); return ok && n >= low && n <= high }
}

func wordOf(words ...string) shape {
	return func(v any) bool { s, ok := v.(string); return ok && slices.Contains(words, s) }
}

func flag(v any) bool { _, ok := v.(bool); return ok }

func null(v any) bool { return v == nil }

func word(v any) bool { s, ok := v.(string); return ok && s != "" }

// instant matches ISO 8601 in UTC with milliseconds.
func instant(v any) bool {
	s, _ := v.(string)
	t, err := time.Parse("2006-01-02T15:04:05.000Z", s)
	return err == nil && time.Since(t) < time.Hour && time.Until(t) < time.Minute
}

func wordsOrNone(v any) bool {
	list, ok := v.([]any)
	return ok && !slices.ContainsFunc(list, func(e any) bool { return !word(e) })
}

func object(v any) bool { _, ok := v.(map[string]any); return ok }

func orNull(s shape) shape { return func(v any) bool { return v == nil || s(v) } }

var openOrClosed, window = wordOf("open", "closed"), wordOf("open", "closed", "partially_open")

// interfaceFields has the fields of section 2.2, with the values of a car that reports everything
// it can.
var interfaceFields = []struct {
	name string
	is   shape
}{
	{"vehicle_id", numberIn(1, 10)},
	{"status", wordOf("available", "booked", "in_use", "maintenance", "inactive")},
	{"location.latitude", numberIn(48, 49)},
	{"location.longitude", numberIn(11, 12)},
	{"location.heading", numberIn(0, 360)},
	{"location.address", orNull(word)},
	{"location.timestamp", instant},
	{"telemetry.speed_kmh", numberIn(0, 400)},
	{"telemetry.mileage_km", numberIn(1, 5_000_000)},
	{"telemetry.ignition", wordOf("on", "off")},
	{"telemetry.gear", wordOf("P", "R", "N", "D")},
	{"telemetry.parking_brake", wordOf("engaged", "released")},
	{"telemetry.fuel_level_percent", numberIn(0, 100)},
	{"telemetry.battery_level_percent", numberIn(0, 100)},
	{"telemetry.remaining_range_km", numberIn(0, 5000)},
	{"telemetry.charging_status", wordOf("charging", "disconnected", "fault")},
	{"telemetry.onboard_voltage_v", numberIn(5, 60)},
	{"telemetry.is_locked", flag},
	{"telemetry.is_engine_running", flag},
	{"telemetry.doors.front_left", openOrClosed},
	{"telemetry.doors.front_right", openOrClosed},
	{"telemetry.doors.rear_left", openOrClosed},
	{"telemetry.doors.rear_right", openOrClosed},
	{"telemetry.doors.trunk", openOrClosed},
	{"telemetry.windows.front_left", window},
	{"telemetry.windows.front_right", window},
	{"telemetry.windows.rear_left", window},
	{"telemetry.windows.rear_right", window},
	{"telemetry.sunroof", wordOf("open", "closed", "tilted")},
	{"telemetry.seatbelts.driver", wordOf("fastened", "unfastened")},
	{"telemetry.seatbelts.passenger", wordOf("fastened", "unfastened")},
	{"telemetry.key_status", wordOf("in", "out")},
	{"diagnostics.dtcs", wordsOrNone},
	{"diagnostics.service_due_in_km", numberIn(-1_000_000, 1_000_000)},
	{"diagnostics.oil_life_percent", numberIn(0, 100)},
	{"diagnostics.warning_lamps", wordsOrNone},
	{"connectivity.status", wordOf("online")},
	{"connectivity.last_seen", instant},
	{"connectivity.signal_quality", wordOf("strong", "moderate", "weak", "none")},
	{"connectivity.firmware_version", word},
	{"oem_data", object},
}

// demoPowertrains are the cars that show one powertrain each, with the fields that it cannot have.
var demoPowertrains = []struct {
	id   telematics.VehicleID
	name string
	null []string
}{
	{1, "combustion", []string{"telemetry.battery_level_percent", "telemetry.charging_status"}},
	{7, "plug-in hybrid", nil},
	{2, "electric", []string{"telemetry.fuel_level_percent", "diagnostics.oil_life_percent"}},
}

// leaves lists the members of an object by their paths; the manufacturer's data is one member.
func leaves(prefix string, value any) map[string]any {
	found := map[string]any{}
	members, ok := value.(map[string]any)
	if !ok || prefix == "oem_data" {
		found[prefix] = value
		return found
	}
	for name, member := range members {
		path := strings.TrimPrefix(prefix+"."+name, ".")
		for leaf, v := range leaves(path, member) {
			found[leaf] = v
		}
	}
	return found
}

func (l *live) status(id telematics.VehicleID) map[string]any {
	l.Helper()
	var data any
	r := l.call(http.MethodGet, fmt.Sprintf("vehicles/%d/status", id), "ADMIN_TOKEN")
	if err := json.Unmarshal(r.Data, &data); err != nil || r.status != http.StatusOK {
		l.Fatalf("status of vehicle %d: %d %v", id, r.status, err)
	}
	return leaves("", data)
}

func (l *live) showsEachPowertrain() {
	l.Helper()
	var columns []map[string]any
	for _, car := range demoPowertrains {
		var got map[string]any
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			if got = l.status(car.id); got["telemetry.mileage_km"] != nil || time.Now().After(deadline) {
				break
			}
		}
		columns = append(columns, got)
		if len(got) != len(interfaceFields) {
			l.Errorf("vehicle %d has %d fields, the interface has %d: %v", car.id, len(got), len(interfaceFields), got)
		}
		for _, field := range interfaceFields {
			value, present := got[field.name]
			is := field.is
			if slices.Contains(car.null, field.name) {
				is = null
			}
			if !present || !is(value) {
				l.Errorf("vehicle %d (%s): %s is %v (present: %v)", car.id, car.name, field.name, value, present)
			}
		}
	}
	l.Logf("| field | combustion | plug-in hybrid | electric |")
	for _, field := range interfaceFields {
		row := "| " + field.name
		for _, column := range columns {
			value, _ := json.Marshal(column[field.name])
			row += " | " + string(value)
		}
		l.Logf("%s |", row)
	}
}

// refreshLessons are what each car shows for a refresh: a car that cannot execute a command cannot
// be refreshed either, but a car that fails at every command still reports its state.
var refreshLessons = map[telematics.VehicleID]lesson{
	1: done, 2: done, 3: done, 4: done, 5: away, 6: done, 7: slowly, 8: unanswered, 9: noisily, 10: done,
}

func (l *live) teachesRefreshes() {
	l.Helper()
	type taught struct {
		id telematics.VehicleID
		r  reply
	}
	results := make(chan taught)
	for id := range refreshLessons {
		go func() {
			results <- taught{id, l.call(http.MethodGet, fmt.Sprintf("vehicles/%d/status?refresh=true", id), "ADMIN_TOKEN")}
		}()
	}
	for range refreshLessons {
		t := <-results
		got, want := t.r, refreshLessons[t.id]
		l.Logf(
			"| %d | refresh | %d | %s | %s | %s | %q | %d ms |", t.id, got.status, got.Error.Code, got.Error.Outcome,
			got.retryAfter, got.Meta.Source, got.took.Milliseconds(),
		)
		if got.status != want.status || got.Error.Code != want.code || got.Error.Outcome != want.outcome ||
			got.retryAfter != want.retryAfter ||
			got.took < want.atLeast || got.took > want.noMoreThan ||
			got.status == http.StatusOK && got.Meta.Source != "live" {
			l.Errorf(
				"vehicle %d: %d %+v, source %q, Retry-After %q after %v; want %+v", t.id, got.status, got.Error,
				got.Meta.Source, got.retryAfter, got.took, want,
			)
		}
	}
}
