package telematics

import (
	"encoding/json"
	"testing"
	"time"
)

func TestNested_PathsBecomeObjects(t *testing.T) {
	for want, values := range map[string]map[Field]any{
		`{}`:                        {},
		`{"a":1}`:                   {"a": 1.0},
		`{"a":{"b":true,"c":null}}`: {"a.b": true, "a.c": nil},
		`{"a":{"b":{"c":1e+21,"d":1e-7},"e":0.1},"f":[]}`:         {"a.b.c": 1e21, "a.b.d": 1e-7, "a.e": 0.1, "f": []string{}},
		`{"a":{"at":"x"},"a_b":1,"c":{"d":{"e":[null]}}}`:         {"a.at": "x", "a_b": 1.0, "c.d": map[string]any{"e": []any{nil}}},
		`{"b":{"c":"not \"plain\" \u003c\u0026\u003e \n zwölf"}}`: {"b.c": "not \"plain\" <&> \n zwölf"},
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

// decoded reads a report of now with more members, which begin with a comma.

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
