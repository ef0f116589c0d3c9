package v1

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/telematics"
)

func TestDecodeReport_UnusableReportIsRefused(t *testing.T) {
	for _, message := range []string{
		``, `null`, `[]`, `7`, `"x"`, `{`, `{"at":}`, `{} {}`, "\x00", "\xff",
		`{"oem_data":` + nest(`[`, ``, `]`, 20_000) + `}`,
		`{"x":"` + strings.Repeat("x", telematics.MaxMessage) + `"}`,
	} {
		if r, _, err := DecodeReport([]byte(message), received); err == nil {
			t.Errorf("%.60q is decoded as %+v, want an error", message, r)
		}
	}
	if _, _, err := DecodeReport([]byte(`{"x":"`+strings.Repeat("x", telematics.MaxMessage-8)+`"}`), received); err != nil {
		t.Errorf("a report of the largest size: %v", err)
	}
}

func TestDecodeReport_ConcurrentCallsAreIndependent(t *testing.T) {
	var all sync.WaitGroup
	for range 4 {
		for name, message := range sampleReports {
			want, _, err := DecodeReport([]byte(message), received)
			require.NoError(t, err)
			all.Go(func() {
				for range 50 {
					if _, _, err := DecodeReport([]byte(message[:len(message)/2]), received); err == nil {
						t.Errorf("half of %s is decoded", name)
					}
					if got, dropped, err := DecodeReport([]byte(message), received); err != nil || len(dropped) != 0 ||
						!reflect.DeepEqual(got, want) {
						t.Errorf("%s is decoded as %+v, dropped %v, %v", name, got, dropped, err)
					}
				}
			})
		}
	}
	all.Wait()
}

// [TEL-1]
func TestDecodeReport_DistinguishesAbsentNullAndValue(t *testing.T) {
	doors := map[telematics.Field]any{
		telematics.DoorFrontLeft: nil, telematics.DoorFrontRight: nil, telematics.DoorRearLeft: nil,
		telematics.DoorRearRight: nil, telematics.DoorTrunk: nil,
	}
	cases := []struct {
		name, sections string
		want           map[telematics.Field]any
	}{
		{"no members", ``, map[telematics.Field]any{}},
		{"an empty section", `,"telemetry":{}`, map[telematics.Field]any{}},
		{"an empty group", `,"telemetry":{"doors":{}}`, map[telematics.Field]any{}},
		{"a value", `,"telemetry":{"is_locked":true}`, map[telematics.Field]any{telematics.IsLocked: true}},
		{"a null", `,"telemetry":{"is_locked":null}`, map[telematics.Field]any{telematics.IsLocked: nil}},
		{"a null group", `,"telemetry":{"doors":null}`, doors},
		{"a null within a group", `,"telemetry":{"doors":{"trunk":null}}`, map[telematics.Field]any{telematics.DoorTrunk: nil}},
		{"a null section", `,"connectivity":null`, map[telematics.Field]any{telematics.RSRP: nil, telematics.Firmware: nil}},
		{"null OEM data", `,"oem_data":null`, map[telematics.Field]any{telematics.OEMData: nil}},
		{"an unknown section", `,"engine":{"rpm":3000}`, map[telematics.Field]any{}},
		{"an unknown field", `,"telemetry":{"rpm":3000,"doors":{"hood":"open"}}`, map[telematics.Field]any{}},
		{
			"a field that the platform sets",
			`,"location":{"address":"x"},"connectivity":{"status":"online","last_seen":"x","signal_quality":"strong"}`,
			map[telematics.Field]any{},
		},
		{"the same field twice", `,"telemetry":{"is_locked":true,"is_locked":false}`, map[telematics.Field]any{telematics.IsLocked: false}},
		{"a field in another case", `,"Telemetry":{"is_locked":true},"telemetry":{"IS_LOCKED":true}`, map[telematics.Field]any{}},
	}
	for _, c := range cases {
		got, dropped := decoded(t, c.sections)
		if len(dropped) != 0 || !reflect.DeepEqual(got.Values, c.want) {
			t.Errorf("%s: %v, dropped %v; want %v", c.name, got.Values, dropped, c.want)
		}
	}
}

// [TEL-4]
func TestDecodeReport_DropsInvalidParts(t *testing.T) {
	cases := []struct {
		sections string
		dropped  []string
	}{
		{`"connectivity":7`, []string{"connectivity"}},
		{`"connectivity":[]`, []string{"connectivity"}},
		{`"telemetry":{"doors":"closed"}`, []string{"telemetry.doors"}},
		{`"telemetry":{"doors":{"trunk":true}}`, []string{"telemetry.doors.trunk"}},
		{`"telemetry":{"speed_kmh":1e999,"is_engine_running":0}`, []string{"telemetry.is_engine_running", "telemetry.speed_kmh"}},
		{`"oem_data":{"a":"\u0000"}`, []string{"oem_data"}},
		{`"oem_data":` + nest(`{"a":`, `1`, `}`, 17), []string{"oem_data"}},
		{`"commands":{}`, []string{"commands"}},
	}
	for _, c := range cases {
		got, dropped := decoded(t, `,"location":{"heading":1},`+c.sections)
		if !slices.Equal(namesOf(dropped), c.dropped) || !reflect.DeepEqual(got.Values, map[telematics.Field]any{telematics.Heading: 1.0}) {
			t.Errorf("%s: %v, dropped %v; want %v dropped", c.sections, got.Values, dropped, c.dropped)
		}
	}
}

func TestDecodeReport_ForwardGearsAreD(t *testing.T) {
	for gear, want := range map[string]any{
		"P": "P", "R": "R", "N": "N", "D": "D", "1": "D", "10": "D", "S": "D", "s": "D", "L": "D", "M": "D", "B": "D", "drive": "D",
	} {
		got, dropped := decoded(t, `,"telemetry":{"gear":"`+gear+`"}`)
		if got.Values[telematics.Gear] != want || len(dropped) != 0 {
			t.Errorf("gear %s is decoded as %v, dropped %v", gear, got.Values[telematics.Gear], dropped)
		}
	}
	for _, sections := range []string{
		`,"telemetry":{"gear":"11"}`, `,"telemetry":{"gear":"reverse"}`, `,"telemetry":{"gear":3}`, `,"telemetry":{"GEAR":"S"}`,
		`,"diagnostics":{"gear":"S"}`,
	} {
		if got, _ := decoded(t, sections); len(got.Values) != 0 {
			t.Errorf("%s is decoded as %v, want no values", sections, got.Values)
		}
	}
	if got, _ := decoded(t, `,"telemetry":{"gear":"P","GEAR":"S"}`); got.Values[telematics.Gear] != "P" {
		t.Errorf("a field in another case was accepted: %v", got.Values)
	}
}

func TestDecodeReport_OtherChargingStatesAreKeptRaw(t *testing.T) {
	cases := map[string]map[telematics.Field]any{
		`"charging"`:   {telematics.Charging: "charging", telematics.RawCharging: nil},
		`"plugged_in"`: {telematics.Charging: nil, telematics.RawCharging: "plugged_in"},
		`null`:         {telematics.Charging: nil, telematics.RawCharging: nil},
	}
	for raw, want := range cases {
		got, dropped := decoded(t, `,"telemetry":{"charging_status":`+raw+`}`)
		if len(dropped) != 0 || !reflect.DeepEqual(got.Values, want) {
			t.Errorf("%s: %v, dropped %v; want %v", raw, got.Values, dropped, want)
		}
	}
	for _, raw := range []string{`""`, `1`, `true`, `["charging"]`, `"\u0000"`, `"` + strings.Repeat("x", 257) + `"`} {
		got, dropped := decoded(t, `,"telemetry":{"charging_status":`+raw+`}`)
		if len(got.Values) != 0 || !slices.Equal(namesOf(dropped), []string{"telemetry.charging_status"}) {
			t.Errorf("%.40s: %v, dropped %v; want it dropped", raw, got.Values, dropped)
		}
	}
}

func TestDecodeReport_NonstandardTroubleCodesAreKeptRaw(t *testing.T) {
	cases := []struct {
		raw     string
		want    map[telematics.Field]any
		dropped []string
	}{
		{`["P0420"]`, map[telematics.Field]any{telematics.DTCs: []string{"P0420"}, telematics.RawDTCs: nil}, nil},
		{`[]`, map[telematics.Field]any{telematics.DTCs: []string{}, telematics.RawDTCs: nil}, nil},
		{`null`, map[telematics.Field]any{telematics.DTCs: nil, telematics.RawDTCs: nil}, nil},
		{
			`["P0420","12-34","p0420"]`,
			map[telematics.Field]any{telematics.DTCs: []string{"P0420"}, telematics.RawDTCs: []string{"12-34", "p0420"}},
			nil,
		},
		{`["12-34"]`, map[telematics.Field]any{telematics.DTCs: []string{}, telematics.RawDTCs: []string{"12-34"}}, nil},
		{
			`["P0420",7,null]`,
			map[telematics.Field]any{telematics.DTCs: []string{"P0420"}, telematics.RawDTCs: []string{}},
			[]string{"diagnostics.dtcs"},
		},
		{
			`["P0420","\u0000"]`,
			map[telematics.Field]any{telematics.DTCs: []string{"P0420"}, telematics.RawDTCs: []string{}},
			[]string{"diagnostics.dtcs"},
		},
		{`["` + strings.Repeat("ü", 129) + `"]`, map[telematics.Field]any{}, []string{"diagnostics.dtcs"}},
		{`[7]`, map[telematics.Field]any{}, []string{"diagnostics.dtcs"}},
		{`"P0420"`, map[telematics.Field]any{}, []string{"diagnostics.dtcs"}},
		{list(129, "12-34"), map[telematics.Field]any{}, []string{"diagnostics.dtcs"}},
	}
	for _, c := range cases {
		got, dropped := decoded(t, `,"diagnostics":{"dtcs":`+c.raw+`}`)
		if !reflect.DeepEqual(got.Values, c.want) || !slices.Equal(namesOf(dropped), c.dropped) {
			t.Errorf("%.60s: %v, dropped %v; want %v, dropped %v", c.raw, got.Values, dropped, c.want, c.dropped)
		}
	}
}

func TestDecodeReport_LatitudeAndLongitudeNeedEachOther(t *testing.T) {
	const lat, lng, at = `"latitude":48.1`, `"longitude":11.5`, `"timestamp":"2026-01-02T09:59:58Z"`
	located := now.Add(-2 * time.Second)
	cases := []struct {
		location string
		want     map[telematics.Field]any
		dropped  []string
	}{
		{
			lat + "," + lng + "," + at,
			map[telematics.Field]any{telematics.Latitude: 48.1, telematics.Longitude: 11.5, telematics.LocatedAt: located},
			nil,
		},
		{lat + "," + lng, map[telematics.Field]any{telematics.Latitude: 48.1, telematics.Longitude: 11.5, telematics.LocatedAt: now}, nil},
		{
			lat + "," + lng + `,"timestamp":null`,
			map[telematics.Field]any{telematics.Latitude: 48.1, telematics.Longitude: 11.5, telematics.LocatedAt: nil},
			nil,
		},
		{lat + "," + at + `,"heading":1`, map[telematics.Field]any{telematics.Heading: 1.0}, []string{"location"}},
		{lng, map[telematics.Field]any{}, []string{"location"}},
		{lat + `,"longitude":181`, map[telematics.Field]any{}, []string{"location.longitude", "location"}},
		{lat + `,"longitude":null`, map[telematics.Field]any{}, []string{"location"}},
		{
			`"latitude":null,"longitude":null`,
			map[telematics.Field]any{telematics.Latitude: nil, telematics.Longitude: nil, telematics.LocatedAt: nil},
			nil,
		},
		{`"latitude":0,"longitude":0,"heading":1,` + at, map[telematics.Field]any{telematics.Heading: 1.0}, []string{"location"}},
		{
			lat + `,"longitude":0`,
			map[telematics.Field]any{telematics.Latitude: 48.1, telematics.Longitude: 0.0, telematics.LocatedAt: now},
			nil,
		},
		{
			`"latitude":0,` + lng,
			map[telematics.Field]any{telematics.Latitude: 0.0, telematics.Longitude: 11.5, telematics.LocatedAt: now},
			nil,
		},
		// The last position is still valid, at a newer time.
		{at, map[telematics.Field]any{telematics.LocatedAt: located}, nil},
		{
			lat + "," + lng + `,"timestamp":"2026-01-02T10:05:00.001Z"`,
			map[telematics.Field]any{telematics.Latitude: 48.1, telematics.Longitude: 11.5, telematics.LocatedAt: now},
			[]string{"location.timestamp"},
		},
		{
			lat + "," + lng + `,"timestamp":"1999-01-02T10:05:00Z"`,
			map[telematics.Field]any{telematics.Latitude: 48.1, telematics.Longitude: 11.5, telematics.LocatedAt: now},
			[]string{"location.timestamp"},
		},
		{`"heading":1`, map[telematics.Field]any{telematics.Heading: 1.0}, nil},
	}
	for _, c := range cases {
		got, dropped := decoded(t, `,"location":{`+c.location+`}`)
		if !reflect.DeepEqual(got.Values, c.want) || !slices.Equal(namesOf(dropped), c.dropped) {
			t.Errorf("%s: %v, dropped %v; want %v, dropped %v", c.location, got.Values, dropped, c.want, c.dropped)
		}
	}
}

// [TEL-5]
func TestDecodeReport_ImplausibleTimeIsReplacedByTheReceivers(t *testing.T) {
	cases := []struct {
		at    string
		want  time.Time
		sound bool
	}{
		{`"at":"2026-01-02T10:00:00.1239Z"`, now.Add(123 * time.Millisecond), true},
		{`"at":"2026-01-02T12:00:00+02:00"`, now, true},
		{`"at":"2020-01-01T00:00:00Z"`, time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), true},
		{`"at":"2019-12-31T23:59:59.999Z"`, received, false},
		{`"at":"2026-01-02T10:05:03Z"`, received.Add(5 * time.Minute), true},
		{`"at":"2026-01-02T10:05:03.001Z"`, received, false},
		{`"at":"9999-12-31T23:59:59Z"`, received, false},
		{`"at":"yesterday"`, received, false},
		{`"at":"2026-01-02 10:00:00"`, received, false},
		{`"at":1767348000`, received, false},
		{`"at":null`, received, false},
		{`"x":1`, received, false},
	}
	for _, c := range cases {
		got, dropped, err := DecodeReport([]byte(`{`+c.at+`,"telemetry":{"is_locked":true}}`), received)
		if err != nil || !got.At.Equal(c.want) || got.At.Location() != time.UTC || got.Values[telematics.IsLocked] != true {
			t.Errorf("at %s: %+v, %v; want time %v", c.at, got, err, c.want)
		}
		if sound := len(dropped) == 0; sound != c.sound {
			t.Errorf("at %s: dropped %v", c.at, dropped)
		}
	}
}

// [TEL-3]
func TestDecodeReport_KeepsUpToEightFinalAnswers(t *testing.T) {
	final := answer(`"status":"succeeded","at":"2026-01-02T10:00:00Z"`)
	got, dropped := decoded(t, `,"commands":[`+strings.Join(slices.Repeat([]string{final}, 8), ",")+`]`)
	if len(got.Answers) != 8 || len(dropped) != 0 {
		t.Errorf("%d answers, dropped %v; want 8, none", len(got.Answers), dropped)
	}
	older := strings.Replace(final, "succeeded", "failed", 1) // oldest first
	got, dropped = decoded(t, `,"commands":[`+older+`,`+strings.Join(slices.Repeat([]string{final}, 8), ",")+`]`)
	if len(got.Answers) != 8 || got.Answers[0].State != telematics.Succeeded || !slices.Equal(namesOf(dropped), []string{"commands"}) {
		t.Errorf("of nine answers: %d, dropped %v; want the newest 8", len(got.Answers), dropped)
	}
	got, dropped = decoded(t, `,"commands":[null,7,{"command_id":7},`+answer(`"status":"received"`)+`,`+final+`]`)
	if len(got.Answers) != 1 || len(dropped) != 4 {
		t.Errorf("among invalid answers: %d, dropped %v; want 1, 4", len(got.Answers), dropped)
	}
	if got, dropped = decoded(t, `,"commands":null`); got.Answers != nil || len(dropped) != 0 {
		t.Errorf("null: %v, dropped %v", got.Answers, dropped)
	}
}

func decoded(t *testing.T, members string) (telematics.Report, []telematics.Dropped) {
	t.Helper()
	r, dropped, err := DecodeReport([]byte(`{"at":"2026-01-02T10:00:00Z"`+members+`}`), received)
	require.NoError(t, err, "%.80s", members)
	return r, dropped
}

func list(n int, element string) string {
	return fmt.Sprintf(`["%s"]`, strings.Join(slices.Repeat([]string{element}, n), `","`))
}

func nest(open, core, end string, depth int) string {
	return strings.Repeat(open, depth) + core + strings.Repeat(end, depth)
}

func TestDecodeReport_DroppedPartsHaveAFault(t *testing.T) {
	for value, want := range map[string]telematics.Fault{
		`"at":"tomorrow"`:                                    telematics.WrongTime,
		`"at":"2026-01-02T10:06:00Z"`:                        telematics.WrongTime,
		`"at":"2019-01-01T00:00:00Z"`:                        telematics.WrongTime,
		`"x":1`:                                              telematics.WrongTime, // absent
		`"telemetry":{"speed_kmh":"fast"}`:                   telematics.WrongType,
		`"telemetry":{"is_locked":1}`:                        telematics.WrongType,
		`"telemetry":{"doors":{"trunk":true}}`:               telematics.WrongType,
		`"diagnostics":{"warning_lamps":"oil"}`:              telematics.WrongType,
		`"oem_data":[]`:                                      telematics.WrongType,
		`"location":{"timestamp":"yesterday"}`:               telematics.WrongType,
		`"telemetry":{"speed_kmh":401}`:                      telematics.OutOfRange,
		`"telemetry":{"fuel_level_percent":-1}`:              telematics.OutOfRange,
		`"location":{"timestamp":"1999-01-01T00:00:00Z"}`:    telematics.OutOfRange,
		`"connectivity":{"firmware_version":"` + long + `"}`: telematics.OutOfRange,
		`"telemetry":{"ignition":"maybe"}`:                   telematics.UnknownWord,
		`"telemetry":{"doors":{"trunk":"ajar"}}`:             telematics.UnknownWord,
		`"diagnostics":{"warning_lamps":["Oil!"]}`:           telematics.UnknownWord,
		`"location":{"latitude":48}`:                         "",
		`"telemetry":7`:                                      "",
	} {
		message := `{"at":"2026-01-02T10:00:00Z",` + value + `}`
		if want == telematics.WrongTime {
			message = `{` + value + `}`
		}
		_, dropped, err := DecodeReport([]byte(message), now)
		if err != nil || len(dropped) != 1 || dropped[0].Fault != want || dropped[0].Reason == "" {
			t.Errorf("%s: dropped %+v, %v; want fault %q", value, dropped, err, want)
		}
	}
}

var long = strings.Repeat("4", telematics.MaxText+1)
