package telematics

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestAReportOfWhichNothingCanBeUsedIsRefused(t *testing.T) {
	for _, message := range []string{
		``, `null`, `[]`, `7`, `"x"`, `{`, `{"at":}`, `{} {}`, "\x00", "\xff",
		`{"oem_data":` + nest(`[`, ``, `]`, 20_000) + `}`,
		`{"x":"` + strings.Repeat("x", MaxMessage) + `"}`,
	} {
		if r, _, err := DecodeReport([]byte(message), received); err == nil {
			t.Errorf("%.60q reads as %+v", message, r)
		}
	}
	if _, _, err := DecodeReport([]byte(`{"x":"`+strings.Repeat("x", MaxMessage-8)+`"}`), received); err != nil {
		t.Errorf("a report of the largest size: %v", err)
	}
}

func TestReportsAreDecodedSideBySide(t *testing.T) {
	var all sync.WaitGroup
	for range 4 {
		for name, message := range benchReports {
			want, _, err := DecodeReport([]byte(message), received)
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				for range 50 {
					if _, _, err := DecodeReport([]byte(message[:len(message)/2]), received); err == nil {
						t.Errorf("half of %s is read", name)
					}
					if got, dropped, err := DecodeReport([]byte(message), received); err != nil || len(dropped) != 0 || !reflect.DeepEqual(got, want) {
						t.Errorf("%s reads as %+v, dropped %v, %v", name, got, dropped, err)
					}
				}
			})
		}
	}
	all.Wait()
}

// [TEL-1]
func TestAbsentNullAndPresentAreThreeThings(t *testing.T) {
	doors := map[Field]any{DoorFrontLeft: nil, DoorFrontRight: nil, DoorRearLeft: nil, DoorRearRight: nil, DoorTrunk: nil}
	cases := []struct {
		name, sections string
		want           map[Field]any
	}{
		{"nothing", ``, map[Field]any{}},
		{"an empty section", `,"telemetry":{}`, map[Field]any{}},
		{"an empty group", `,"telemetry":{"doors":{}}`, map[Field]any{}},
		{"a value", `,"telemetry":{"is_locked":true}`, map[Field]any{IsLocked: true}},
		{"a null", `,"telemetry":{"is_locked":null}`, map[Field]any{IsLocked: nil}},
		{"a null group", `,"telemetry":{"doors":null}`, doors},
		{"a null within a group", `,"telemetry":{"doors":{"trunk":null}}`, map[Field]any{DoorTrunk: nil}},
		{"a null section", `,"connectivity":null`, map[Field]any{RSRP: nil, Firmware: nil}},
		{"null OEM data", `,"oem_data":null`, map[Field]any{OEMData: nil}},
		{"an unknown section", `,"engine":{"rpm":3000}`, map[Field]any{}},
		{"an unknown field", `,"telemetry":{"rpm":3000,"doors":{"hood":"open"}}`, map[Field]any{}},
		{"what the platform itself says", `,"location":{"address":"x"},"connectivity":{"status":"online","last_seen":"x","signal_quality":"strong"}`, map[Field]any{}},
		{"the same field twice", `,"telemetry":{"is_locked":true,"is_locked":false}`, map[Field]any{IsLocked: false}},
		{"a field in other letters", `,"Telemetry":{"is_locked":true},"telemetry":{"IS_LOCKED":true}`, map[Field]any{}},
	}
	for _, c := range cases {
		got, dropped := decoded(t, c.sections)
		if len(dropped) != 0 || !reflect.DeepEqual(got.Values, c.want) {
			t.Errorf("%s: %v, dropped %v", c.name, got.Values, dropped)
		}
	}
}

// [TEL-4]
func TestWhatIsUnsoundIsDroppedAndTheRestIsTaken(t *testing.T) {
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
		if !slices.Equal(namesOf(dropped), c.dropped) || !reflect.DeepEqual(got.Values, map[Field]any{Heading: 1.0}) {
			t.Errorf("%s: %v, dropped %v", c.sections, got.Values, dropped)
		}
	}
}

func TestForwardGearsReadD(t *testing.T) {
	for gear, want := range map[string]any{
		"P": "P", "R": "R", "N": "N", "D": "D", "1": "D", "10": "D", "S": "D", "s": "D", "L": "D", "M": "D", "B": "D", "drive": "D",
	} {
		got, dropped := decoded(t, `,"telemetry":{"gear":"`+gear+`"}`)
		if got.Values[Gear] != want || len(dropped) != 0 {
			t.Errorf("gear %s reads %v, dropped %v", gear, got.Values[Gear], dropped)
		}
	}
	for _, sections := range []string{
		`,"telemetry":{"gear":"11"}`, `,"telemetry":{"gear":"reverse"}`, `,"telemetry":{"gear":3}`, `,"telemetry":{"GEAR":"S"}`, `,"diagnostics":{"gear":"S"}`,
	} {
		if got, _ := decoded(t, sections); len(got.Values) != 0 {
			t.Errorf("%s reads %v", sections, got.Values)
		}
	}
	if got, _ := decoded(t, `,"telemetry":{"gear":"P","GEAR":"S"}`); got.Values[Gear] != "P" {
		t.Errorf("a field in other letters was taken: %v", got.Values)
	}
}

func TestAnotherChargingStateIsKeptInTheRaw(t *testing.T) {
	cases := map[string]map[Field]any{
		`"charging"`:   {Charging: "charging", RawCharging: nil},
		`"plugged_in"`: {Charging: nil, RawCharging: "plugged_in"},
		`null`:         {Charging: nil, RawCharging: nil},
	}
	for raw, want := range cases {
		got, dropped := decoded(t, `,"telemetry":{"charging_status":`+raw+`}`)
		if len(dropped) != 0 || !reflect.DeepEqual(got.Values, want) {
			t.Errorf("%s: %v, dropped %v", raw, got.Values, dropped)
		}
	}
	for _, raw := range []string{`""`, `1`, `true`, `["charging"]`, `"\u0000"`, `"` + strings.Repeat("x", 257) + `"`} {
		got, dropped := decoded(t, `,"telemetry":{"charging_status":`+raw+`}`)
		if len(got.Values) != 0 || !slices.Equal(namesOf(dropped), []string{"telemetry.charging_status"}) {
			t.Errorf("%.40s: %v, dropped %v", raw, got.Values, dropped)
		}
	}
}

func TestCodesThatAreNotOfTheStandardsFormAreKeptInTheRaw(t *testing.T) {
	cases := []struct {
		raw     string
		want    map[Field]any
		dropped []string
	}{
		{`["P0420"]`, map[Field]any{DTCs: []string{"P0420"}, RawDTCs: nil}, nil},
		{`[]`, map[Field]any{DTCs: []string{}, RawDTCs: nil}, nil},
		{`null`, map[Field]any{DTCs: nil, RawDTCs: nil}, nil},
		{`["P0420","12-34","p0420"]`, map[Field]any{DTCs: []string{"P0420"}, RawDTCs: []string{"12-34", "p0420"}}, nil},
		{`["12-34"]`, map[Field]any{DTCs: []string{}, RawDTCs: []string{"12-34"}}, nil},
		{`["P0420",7,null]`, map[Field]any{DTCs: []string{"P0420"}, RawDTCs: []string{}}, []string{"diagnostics.dtcs"}},
		{`["P0420","\u0000"]`, map[Field]any{DTCs: []string{"P0420"}, RawDTCs: []string{}}, []string{"diagnostics.dtcs"}},
		{`["` + strings.Repeat("ü", 129) + `"]`, map[Field]any{}, []string{"diagnostics.dtcs"}},
		{`[7]`, map[Field]any{}, []string{"diagnostics.dtcs"}},
		{`"P0420"`, map[Field]any{}, []string{"diagnostics.dtcs"}},
		{list(129, "12-34"), map[Field]any{}, []string{"diagnostics.dtcs"}},
	}
	for _, c := range cases {
		got, dropped := decoded(t, `,"diagnostics":{"dtcs":`+c.raw+`}`)
		if !reflect.DeepEqual(got.Values, c.want) || !slices.Equal(namesOf(dropped), c.dropped) {
			t.Errorf("%.60s: %v, dropped %v", c.raw, got.Values, dropped)
		}
	}
}

func TestLatitudeAndLongitudeOnlyComeTogether(t *testing.T) {
	const lat, lng, at = `"latitude":48.1`, `"longitude":11.5`, `"timestamp":"2026-01-02T09:59:58Z"`
	located := now.Add(-2 * time.Second)
	cases := []struct {
		location string
		want     map[Field]any
		dropped  []string
	}{
		{lat + "," + lng + "," + at, map[Field]any{Latitude: 48.1, Longitude: 11.5, LocatedAt: located}, nil},
		{lat + "," + lng, map[Field]any{Latitude: 48.1, Longitude: 11.5, LocatedAt: now}, nil},
		{lat + "," + lng + `,"timestamp":null`, map[Field]any{Latitude: 48.1, Longitude: 11.5, LocatedAt: nil}, nil},
		{lat + "," + at + `,"heading":1`, map[Field]any{Heading: 1.0}, []string{"location"}},
		{lng, map[Field]any{}, []string{"location"}},
		{lat + `,"longitude":181`, map[Field]any{}, []string{"location.longitude", "location"}},
		{lat + `,"longitude":null`, map[Field]any{}, []string{"location"}},
		{`"latitude":null,"longitude":null`, map[Field]any{Latitude: nil, Longitude: nil, LocatedAt: nil}, nil},
		{at, map[Field]any{LocatedAt: located}, nil}, // the last position still stands, and since then
		{lat + "," + lng + `,"timestamp":"2026-01-02T10:05:00.001Z"`, map[Field]any{Latitude: 48.1, Longitude: 11.5, LocatedAt: now}, []string{"location.timestamp"}},
		{lat + "," + lng + `,"timestamp":"1999-01-02T10:05:00Z"`, map[Field]any{Latitude: 48.1, Longitude: 11.5, LocatedAt: now}, []string{"location.timestamp"}},
		{`"heading":1`, map[Field]any{Heading: 1.0}, nil},
	}
	for _, c := range cases {
		got, dropped := decoded(t, `,"location":{`+c.location+`}`)
		if !reflect.DeepEqual(got.Values, c.want) || !slices.Equal(namesOf(dropped), c.dropped) {
			t.Errorf("%s: %v, dropped %v", c.location, got.Values, dropped)
		}
	}
}

// [TEL-5]
func TestAReportWithoutAPlausibleTimeIsOfTheReceivers(t *testing.T) {
	cases := []struct {
		at    string
		want  time.Time
		sound bool
	}{
		{`"at":"2026-01-02T10:00:00.1239Z"`, now.Add(123 * time.Millisecond), true},
		{`"at":"2026-01-02T12:00:00+02:00"`, now, true},
		{`"at":"2020-01-01T00:00:00Z"`, earliest, true},
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
		if err != nil || !got.At.Equal(c.want) || got.At.Location() != time.UTC || got.Values[IsLocked] != true {
			t.Errorf("%s: %+v, %v", c.at, got, err)
		}
		if sound := len(dropped) == 0; sound != c.sound {
			t.Errorf("%s: dropped %v", c.at, dropped)
		}
	}
}

// [TEL-3]
func TestAReportRepeatsUpToEightFinalAnswers(t *testing.T) {
	final := answer(`"status":"succeeded","at":"2026-01-02T10:00:00Z"`)
	got, dropped := decoded(t, `,"commands":[`+strings.Join(slices.Repeat([]string{final}, 8), ",")+`]`)
	if len(got.Answers) != 8 || len(dropped) != 0 {
		t.Errorf("%d answers, dropped %v", len(got.Answers), dropped)
	}
	older := strings.Replace(final, "succeeded", "failed", 1) // oldest first
	got, dropped = decoded(t, `,"commands":[`+older+`,`+strings.Join(slices.Repeat([]string{final}, 8), ",")+`]`)
	if len(got.Answers) != 8 || got.Answers[0].State != Succeeded || !slices.Equal(namesOf(dropped), []string{"commands"}) {
		t.Errorf("of nine: %d answers, dropped %v", len(got.Answers), dropped)
	}
	got, dropped = decoded(t, `,"commands":[null,7,{"command_id":7},`+answer(`"status":"received"`)+`,`+final+`]`)
	if len(got.Answers) != 1 || len(dropped) != 4 {
		t.Errorf("among unsound ones: %d answers, dropped %v", len(got.Answers), dropped)
	}
	if got, dropped = decoded(t, `,"commands":null`); got.Answers != nil || len(dropped) != 0 {
		t.Errorf("null: %v, dropped %v", got.Answers, dropped)
	}
}

func TestWhatIsKeptInTheRawIsNotSaidByTheVehicle(t *testing.T) {
	r := Report{At: now, Values: map[Field]any{Charging: nil, RawCharging: "plugged_in", RawDTCs: []string{"12-34"}, OEMData: map[string]any{"a": 1.0}}}
	const want = `{"oem_data":{"a":1},"telemetry":{"charging_status":null}}`
	if got := r.Nested(); string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// decoded reads a report of now with more members, which begin with a comma.
func decoded(t *testing.T, members string) (Report, []Dropped) {
	t.Helper()
	r, dropped, err := DecodeReport([]byte(`{"at":"2026-01-02T10:00:00Z"`+members+`}`), received)
	if err != nil {
		t.Fatalf("%.80s: %v", members, err)
	}
	return r, dropped
}
