package telematics_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
	"unicode/utf8"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
)

func TestPrintable_RemovesWhatControlsATerminalOrTheOrderOfText(t *testing.T) {
	for text, want := range map[string]string{
		"M-IM 42": "M-IM 42", "TÜ-AB 1": "TÜ-AB 1", "רכב 7": "רכב 7", "👩‍🔧": "👩‍🔧", "": "",
		"\x1b]52;c;cm0gLXJm\x07":           " ]52;c;cm0gLXJm ",
		"\x1b[2Jgone":                      " [2Jgone",
		"\u009b2J\u009d0;x\u009c":          " 2J 0;x ",
		"a\tb\nc\r\nd\u2028e":              "a b c  d e",
		"M-\u202e24 MI\u202c":              "M-24 MI",
		"a\u2066b\u2069\u200e\u200f\u061c": "ab",
		"M\u200b-1\ufeff\u2060":            "M-1",
		"\U000e0041x\x7f\x00":              "x  ",
		"T\xdc-AB":                         "T\ufffd-AB",
	} {
		got := telematics.Printable(text)
		if got != want || telematics.Printable(got) != got {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("a\u202eb\x1b[2J", `{"a":"\u009b"}`)
	f.Fuzz(func(t *testing.T, text, raw string) {
		if got := telematics.Printable(text); !utf8.ValidString(got) || telematics.Printable(got) != got {
			t.Errorf("%q becomes %q", text, got)
		}
		var before, after any
		if json.Unmarshal([]byte(raw), &before) != nil {
			return
		}
		escaped := telematics.EscapeJSON([]byte(raw))
		if err := json.Unmarshal(escaped, &after); err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%q becomes %q, another value: %v", raw, escaped, err)
		}
	})
}

func TestEscapeJSON_KeepsTheValue(t *testing.T) {
	value := map[string]string{"a": "\x1b[2J\u009b2J\u202e\U000e0041\x7fä\u2028"}
	text, err := json.Marshal(value)
	require.NoError(t, err)
	var again map[string]string
	escaped := telematics.EscapeJSON(text)
	if err := json.Unmarshal(escaped, &again); err != nil || !reflect.DeepEqual(again, value) ||
		telematics.Printable(string(escaped)) != string(escaped) {
		t.Errorf("%q becomes %q: %v", text, escaped, err)
	}
}

// hostile is a dialect whose messages all have hostile texts.
type hostile struct{ telematics.Dialect }

const evil = "a\x1b]52;c;x\x07\u202eb"

func (hostile) DecodeReport(telematics.Message, time.Time) (telematics.Report, []telematics.Dropped, error) {
	return telematics.Report{
		Values: map[telematics.Field]any{
			telematics.Firmware: evil, telematics.SpeedKmh: 1.0, telematics.RawDTCs: []string{evil, "\x1b"}, telematics.Gear: nil,
			telematics.OEMData: map[string]any{evil: []any{evil, 1.0, map[string]any{"k": evil}}},
		},
		Alarms: []telematics.Alarm{{Kind: evil, Text: evil}}, Answers: []telematics.Answer{{Reason: evil, Detail: evil}},
	}, nil, nil
}

func (h hostile) DecodeAnswer(m telematics.Message, at time.Time) (telematics.Answer, []telematics.Dropped, error) {
	r, _, _ := h.DecodeReport(m, at)
	return telematics.Answer{Reason: evil, Detail: evil, Report: &r}, nil, nil
}

func (hostile) DecodePresence(telematics.Message, time.Time) (telematics.Presence, error) {
	return telematics.Presence{Firmware: evil, Session: evil}, nil
}

func TestMessage_TextsOfUnitsArePrintable(t *testing.T) {
	const good = "a ]52;c;x b"
	m := telematics.Message{Dialect: hostile{}}
	want := telematics.Report{
		Values: map[telematics.Field]any{
			telematics.Firmware: good, telematics.SpeedKmh: 1.0, telematics.RawDTCs: []string{good, " "}, telematics.Gear: nil,
			telematics.OEMData: map[string]any{good: []any{good, 1.0, map[string]any{"k": good}}},
		},
		Alarms: []telematics.Alarm{{Kind: good, Text: good}}, Answers: []telematics.Answer{{Reason: good, Detail: good}},
	}
	if r, _, _ := m.DecodeReport(time.Time{}); !reflect.DeepEqual(r, want) {
		t.Errorf("report %+v, want %+v", r, want)
	}
	if a, _, _ := m.DecodeAnswer(time.Time{}); a.Detail != good || a.Reason != good || !reflect.DeepEqual(*a.Report, want) {
		t.Errorf("answer %+v", a)
	}
	// The session is compared, and not shown.
	if p, _ := m.DecodePresence(time.Time{}); p.Firmware != good || p.Session != evil {
		t.Errorf("presence %+v", p)
	}
}

// unnamedAlarm is a dialect whose message is an alarm of a kind.
type unnamedAlarm struct {
	telematics.Dialect
	kind string
}

func (u unnamedAlarm) DecodeReport(telematics.Message, time.Time) (telematics.Report, []telematics.Dropped, error) {
	return telematics.Report{Alarms: []telematics.Alarm{{Kind: u.kind, Text: "moved"}}}, nil, nil
}

// An alarm without a name, as of the topic notify/alert/ of an OVMS module, is one nevertheless.
func TestMessage_AnAlarmHasAName(t *testing.T) {
	for kind, want := range map[string]string{
		"": "unnamed", " ": "unnamed", "..": "unnamed", "\x07\u200b": "unnamed", "vehicle.alert.": "vehicle.alert", "a.b": "a.b",
	} {
		r, _, _ := telematics.Message{Dialect: unnamedAlarm{kind: kind}}.DecodeReport(time.Time{})
		if got := r.Alarms[0]; got.Kind != want || got.Text != "moved" {
			t.Errorf("alarm %q is %+v, want the kind %s", kind, got, want)
		}
	}
}

func TestWords_AreOfPeople(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                              "0 ms",
		120 * time.Microsecond:         "0.12 ms",
		350 * time.Millisecond:         "350 ms",
		999900 * time.Microsecond:      "1 s",
		time.Second:                    "1 s",
		4249 * time.Millisecond:        "4.2 s",
		59960 * time.Millisecond:       "1 min",
		72 * time.Second:               "1 min 12 s",
		time.Hour - time.Millisecond:   "1 h",
		72 * time.Minute:               "1 h 12 min",
		-90 * time.Second:              "-1 min 30 s",
		24 * time.Hour:                 "24 h",
		48*time.Hour - time.Second:     "2 days",
		100*time.Hour + 10*time.Minute: "4 days 4 h",
	} {
		assert.Equal(t, telematics.Words(d), want, "%v in words", d)
	}
}
