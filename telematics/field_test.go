package telematics

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"motorpool/internal/require"
)

func TestFieldOf_TextOfNoFieldIsNotKnown(t *testing.T) {
	for _, text := range []string{"", "telemetry", "telemetry.doors", "location.address", "connectivity.last_seen"} {
		if f, known := FieldOf(text); known {
			t.Errorf("%q is the field %s, want none", text, f)
		}
	}
	for _, f := range Fields {
		var found Field
		text, _ := f.MarshalText()
		if err := found.UnmarshalText(text); err != nil || found != f {
			t.Errorf("%s is found as %v, %v", f, found, err)
		}
	}
}

func TestParseValue_WordsMustBeInTheVocabulary(t *testing.T) {
	door, window, belt := []string{"open", "closed"}, []string{"open", "closed", "partially_open"}, []string{"fastened", "unfastened"}
	vocabulary := map[Field][]string{
		Ignition: {"on", "off"}, Gear: {"P", "R", "N", "D"}, ParkBrake: {"engaged", "released"},
		Charging: {"charging", "disconnected", "fault"}, Sunroof: {"open", "closed", "tilted"}, KeyStatus: {"in", "out"},
		DoorFrontLeft: door, DoorFrontRight: door, DoorRearLeft: door, DoorRearRight: door, DoorTrunk: door,
		WindowFrontLeft: window, WindowFrontRight: window, WindowRearLeft: window, WindowRearRight: window,
		SeatbeltDriver: belt, SeatbeltPassenger: belt,
	}
	all := []string{"", "OPEN", "ajar", "unknown", "null", "open "}
	for _, words := range vocabulary {
		all = append(all, words...)
	}
	for field, words := range vocabulary {
		for _, word := range all {
			v, err := ParseValue(field, encode(word))
			if sound := slices.Contains(words, word); (err == nil) != sound || sound && v != word {
				t.Errorf("%s: %q is parsed as %v, %v; want it accepted: %t", field, word, v, err, sound)
			}
		}
		if v, err := ParseValue(field, json.RawMessage(`1`)); err == nil {
			t.Errorf("%s: 1 is parsed as %v, want an error", field, v)
		}
	}
}

func TestParseValue_OtherValuesMustHaveTheirForm(t *testing.T) {
	long := strings.Repeat("x", 257)
	cases := []struct {
		field Field
		json  string
		sound bool
	}{
		{SpeedKmh, `1e999`, false},
		{SpeedKmh, `-1e999`, false},
		{SpeedKmh, `"1"`, false},
		{SpeedKmh, `true`, false},
		{SpeedKmh, `[1]`, false},
		{SpeedKmh, `{}`, false},
		{SpeedKmh, `NaN`, false},
		{SpeedKmh, ``, false},
		{SpeedKmh, `0x10`, false},
		{IsLocked, `"true"`, false},
		{IsLocked, `1`, false},
		{EngineRuns, `true`, true},
		{Firmware, `""`, true},
		{Firmware, `"` + long[:256] + `"`, true},
		{Firmware, `"` + long + `"`, false},
		{Firmware, `"a\u0000b"`, false},
		{Firmware, `4.2`, false},
		{DTCs, `[]`, true},
		{DTCs, `["P0420","C1234","B2AAA","U3FFF"]`, true},
		{DTCs, `["P0420",null]`, false},
		{
			DTCs, `["p0420"]`, false,
		},
		{DTCs, `["P4420"]`, false},
		{DTCs, `["P042"]`, false},
		{DTCs, `["P04200"]`, false},
		{DTCs, `["P0420\n"]`, false},
		{DTCs, `"P0420"`, false},
		{DTCs, `{}`, false},
		{DTCs, list(128, "P0420"), true},
		{DTCs, list(129, "P0420"), false},
		{
			WarningLamps, `["tire_failure","abs"]`, true,
		},
		{WarningLamps, `["Tire"]`, false},
		{WarningLamps, `["1st"]`, false},
		{WarningLamps, `[""]`, false},
		{WarningLamps, `["` + long[:64] + `"]`, true},
		{WarningLamps, `["` + long[:65] + `"]`, false},
		{RawDTCs, `["12-34"]`, true},
		{RawDTCs, `["` + strings.Repeat("ü", 129) + `"]`, false},
		{RawCharging, `"plugged_in"`, true},
		{
			LocatedAt, `"2026-01-02T10:00:00Z"`, true,
		},
		{LocatedAt, `"2019-12-31T23:59:59Z"`, false},
		{LocatedAt, `"2020-01-01T00:00:00Z"`, true},
		{
			LocatedAt, `"2026-01-02"`, false,
		},
		{LocatedAt, `"2026-01-02T10:00:00"`, false},
		{LocatedAt, `1767348000`, false},
		{LocatedAt, `"yesterday"`, false},
		{OEMData, `{}`, true},
		{OEMData, `[]`, false},
		{OEMData, `"x"`, false},
		{OEMData, `{"n":1e999}`, false},
		{OEMData, `{"a":"\u0000"}`, false},
		{OEMData, `{"\u0000":1}`, false},
		{OEMData, `{"a":["x",{"b":"\u0000"}]}`, false},
		{OEMData, nest(`{"a":`, `{}`, `}`, 16), true},
		{OEMData, nest(`{"a":`, `1`, `}`, 17), false},
		{OEMData, `{"a":` + nest(`[`, `1`, `]`, 15) + `}`, true},
		{OEMData, `{"a":` + nest(`[`, `1`, `]`, 16) + `}`, false},
	}
	for _, c := range cases {
		if v, err := ParseValue(c.field, json.RawMessage(c.json)); (err == nil) != c.sound {
			t.Errorf("%s: %.60s is parsed as %v, %v; want it accepted: %t", c.field, c.json, v, err, c.sound)
		}
	}
}

// Cards and keys have ids of 56 and 64 bits.
func TestParseValue_IntegersOfOEMDataKeepTheirDigits(t *testing.T) {
	const said = `{"card":9007199254740993,"more":[-9223372036854775808,18446744073709551615,1.5,7]}`
	v, err := ParseValue(OEMData, json.RawMessage(said))
	require.NoError(t, err)
	if text, err := json.Marshal(v); err != nil || string(text) != said {
		t.Errorf("parsed as %s, %v; want %s", text, err, said)
	}
}

func TestParseValue_EmptyListIsNotNull(t *testing.T) {
	v, err := ParseValue(DTCs, json.RawMessage(`[]`))
	if list, ok := v.([]string); err != nil || !ok || list == nil || len(list) != 0 {
		t.Errorf("parsed as %#v, %v; want an empty list", v, err)
	}
}

func list(n int, element string) string {
	return fmt.Sprintf(`["%s"]`, strings.Join(slices.Repeat([]string{element}, n), `","`))
}

func nest(open, core, end string, depth int) string {
	return strings.Repeat(open, depth) + core + strings.Repeat(end, depth)
}

func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}
