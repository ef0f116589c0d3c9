package v1

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/telematics"
)

// What a report leaves of a car of which much is known as of 10:00:00, all of it sound. The reports arrive at 10:00:03.
func TestWhatStaysOfAReport(t *testing.T) {
	later, earlier := now.Add(2*time.Second), now.Add(-time.Minute)
	const atLater, atEarlier = `{"at":"2026-01-02T10:00:02Z",`, `{"at":"2026-01-02T09:59:00Z",`
	cases := []struct {
		name, message string
		refused       bool
		dropped       []string
		news          telematics.Snapshot // the readings that are other ones than before
	}{
		{name: "a newer one", message: atLater + `"telemetry":{"speed_kmh":20,"gear":"S"}}`,
			news: telematics.Snapshot{telematics.SpeedKmh: {Value: 20.0, At: later}, telematics.Gear: {Value: "D", At: later}}},
		{name: "the same again", message: commonReport},

		// Out of order: [TEL-2].
		{name: "an older one", message: atEarlier + `"telemetry":{"speed_kmh":20,"is_locked":null},"oem_data":{"a":1}}`},
		{name: "an older one that is the only one to say something", message: atEarlier + `"telemetry":{"speed_kmh":20,"sunroof":"open"}}`,
			news: telematics.Snapshot{telematics.Sunroof: {Value: "open", At: earlier}}},
		{name: "one of the same instant", message: `{"at":"2026-01-02T10:00:00Z","telemetry":{"is_locked":true,"ignition":"off"}}`,
			news: telematics.Snapshot{telematics.IsLocked: {Value: true, At: now}}}, // the greater text; "off" is less than "on"

		// Of the future, and of before the fleet: [TEL-5].
		{name: "one of years ahead", message: `{"at":"2031-01-01T00:00:00Z","telemetry":{"speed_kmh":20}}`, dropped: []string{"at"},
			news: telematics.Snapshot{telematics.SpeedKmh: {Value: 20.0, At: received}}},
		{name: "one of five minutes ahead", message: `{"at":"2026-01-02T10:05:03Z","telemetry":{"speed_kmh":20}}`,
			news: telematics.Snapshot{telematics.SpeedKmh: {Value: 20.0, At: received.Add(telematics.MaxAhead)}}},
		{name: "one of more than five minutes ahead", message: `{"at":"2026-01-02T10:05:03.001Z","telemetry":{"speed_kmh":20}}`, dropped: []string{"at"},
			news: telematics.Snapshot{telematics.SpeedKmh: {Value: 20.0, At: received}}},
		{name: "one of 1970", message: `{"at":"1970-01-01T00:00:00Z","telemetry":{"speed_kmh":20}}`, dropped: []string{"at"},
			news: telematics.Snapshot{telematics.SpeedKmh: {Value: 20.0, At: received}}},

		// Malformed: [TEL-4].
		{name: "a broken one", message: atLater + `"telemetry":{"speed_kmh":20}`, refused: true},
		{name: "one with a break at its end", message: atLater + `"telemetry":{"speed_kmh":20},}`, refused: true},
		{name: "two in one message", message: atLater + `"telemetry":{"speed_kmh":20}}{}`, refused: true},
		{name: "a list", message: `[` + atLater + `"telemetry":{"speed_kmh":20}}]`, refused: true},
		{name: "one without a time", message: `{"telemetry":{"speed_kmh":20}}`, dropped: []string{"at"},
			news: telematics.Snapshot{telematics.SpeedKmh: {Value: 20.0, At: received}}},
		{name: "one with unsound values", message: atLater + `"telemetry":{"speed_kmh":"fast","mileage_km":1e400,"is_locked":true,"doors":"closed","gear":"reverse"}}`,
			dropped: []string{"telemetry.doors", "telemetry.gear", "telemetry.mileage_km", "telemetry.speed_kmh"}, news: telematics.Snapshot{telematics.IsLocked: {Value: true, At: later}}},
		{name: "one with half a position", message: atLater + `"location":{"latitude":48.2,"heading":90}}`, dropped: []string{"location"},
			news: telematics.Snapshot{telematics.Heading: {Value: 90.0, At: later}}},
		{name: "one with a section that is none", message: atLater + `"telemetry":7,"connectivity":{"rsrp_dbm":-80}}`, dropped: []string{"telemetry"},
			news: telematics.Snapshot{telematics.RSRP: {Value: -80.0, At: later}}},

		// Too large, as a whole and in part: [TEL-4].
		{name: "one of more than 64 KiB", refused: true,
			message: atLater + `"telemetry":{"speed_kmh":20},"x":"` + strings.Repeat("x", telematics.MaxMessage) + `"}`},
		{name: "one with a text of more than 256 bytes", message: atLater + `"telemetry":{"speed_kmh":20},"connectivity":{"firmware_version":"` + strings.Repeat("4", telematics.MaxText+1) + `"}}`,
			dropped: []string{"connectivity.firmware_version"}, news: telematics.Snapshot{telematics.SpeedKmh: {Value: 20.0, At: later}}},
		{name: "one with a list of more than 128", message: atLater + `"telemetry":{"speed_kmh":20},"diagnostics":{"warning_lamps":` + list(telematics.MaxTexts+1, "oil") + `}}`,
			dropped: []string{"diagnostics.warning_lamps"}, news: telematics.Snapshot{telematics.SpeedKmh: {Value: 20.0, At: later}}},

		// Partial: [TEL-1].
		{name: "one of a single field", message: atLater + `"telemetry":{"is_locked":true}}`, news: telematics.Snapshot{telematics.IsLocked: {Value: true, At: later}}},
		{name: "one of nothing", message: `{"at":"2026-01-02T10:00:02Z"}`},
		{name: "one that knows a field no longer", message: atLater + `"telemetry":{"speed_kmh":null}}`, news: telematics.Snapshot{telematics.SpeedKmh: {At: later, Once: true}}},
		{name: "one that knows a section no longer", message: atLater + `"connectivity":null}`,
			news: telematics.Snapshot{telematics.RSRP: {At: later, Once: true}, telematics.Firmware: {At: later, Once: true}}},
	}
	first, _, err := DecodeReport([]byte(commonReport), received)
	if err != nil {
		t.Fatal(err)
	}
	known := telematics.Merge(nil, first)
	for _, c := range cases {
		r, dropped, err := DecodeReport([]byte(c.message), received)
		if (err != nil) != c.refused || !slices.Equal(namesOf(dropped), c.dropped) {
			t.Errorf("%s: %v, dropped %v", c.name, err, dropped)
		}
		after := known
		if err == nil { // who is refused a report has nothing to merge
			after = telematics.Merge(known, r)
		}
		news := maps.Clone(after)
		maps.DeleteFunc(news, func(f telematics.Field, reading telematics.Reading) bool {
			before, ok := known[f]
			return ok && reflect.DeepEqual(before, reading)
		})
		if len(news) != len(c.news) || len(news) > 0 && !reflect.DeepEqual(news, c.news) {
			t.Errorf("%s: what is new is %v, want %v", c.name, news, c.news)
		}
	}
}
