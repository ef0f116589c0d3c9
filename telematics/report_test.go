package telematics

import (
	"encoding/json"
	"testing"
	"time"
)

func TestNested_PathsBecomeObjects(t *testing.T) {
	for want, values := range map[string]map[Field]any{
		`{}`:                              {},
		`{"oem_data":{"d":{"e":[null]}}}`: {OEMData: map[string]any{"d": map[string]any{"e": []any{nil}}}},
		`{"telemetry":{"is_locked":true,"speed_kmh":null}}`:     {IsLocked: true, SpeedKmh: nil},
		`{"location":{"latitude":1e-7},"oem_data":{"n":1e+21}}`: {Latitude: 1e-7, OEMData: map[string]any{"n": 1e21}},
		`{"diagnostics":{"dtcs":[]},"telemetry":{"doors":{"front_left":"open","trunk":null},"gear":"P"}}`: {
			DTCs: []string{}, DoorFrontLeft: "open", DoorTrunk: nil, Gear: "P",
		},
		`{"connectivity":{"firmware_version":"not \"plain\" \u003c\u0026\u003e \n zwölf"}}`: {Firmware: "not \"plain\" <&> \n zwölf"},
	} {
		got, err := json.Marshal(Report{Values: values}.Nested())
		if err != nil || string(got) != want {
			t.Errorf("encoded as %s, %v; want %s", got, err, want)
		}
	}
}

func TestNested_OmitsRawFields(t *testing.T) {
	r := Report{
		At:     now,
		Values: map[Field]any{Charging: nil, RawCharging: "plugged_in", RawDTCs: []string{"12-34"}, OEMData: map[string]any{"a": 1.0}},
	}
	const want = `{"oem_data":{"a":1},"telemetry":{"charging_status":null}}`
	if got, err := json.Marshal(r.Nested()); err != nil || string(got) != want {
		t.Errorf("encoded as %s, %v; want %s", got, err, want)
	}
}

// [TEL-2]
func TestBound_ReportAndItsPositionAreDatedNoLaterThanTheirArrival(t *testing.T) {
	received := time.Date(2026, 1, 2, 10, 0, 0, 123456789, time.UTC)
	arrival := received.Truncate(time.Millisecond)
	for ahead, want := range map[time.Duration]time.Time{
		-time.Hour:        arrival.Add(-time.Hour),
		-time.Millisecond: arrival.Add(-time.Millisecond),
		time.Millisecond:  arrival,
		MaxAhead:          arrival,
	} {
		r := Report{At: arrival.Add(ahead), Values: map[Field]any{LocatedAt: arrival.Add(ahead), SpeedKmh: 50.0}}
		r.Bound(received)
		if !r.At.Equal(want) || r.Values[LocatedAt] != want {
			t.Errorf("%v ahead: of %v, position of %v, want %v", ahead, r.At, r.Values[LocatedAt], want)
		}
	}
	for _, values := range []map[Field]any{nil, {}, {LocatedAt: nil}} {
		r := Report{At: arrival.Add(time.Minute), Values: values}
		if r.Bound(received); !r.At.Equal(arrival) || len(r.Values) != len(values) {
			t.Errorf("report %+v of values %v", r, values)
		}
	}
}
