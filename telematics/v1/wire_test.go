package v1

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/telematics"
)

func TestDecodeAnswer_InvalidAnswerIsRefused(t *testing.T) {
	long := strings.Repeat("x", 257)
	for _, message := range []string{
		``, `null`, `[]`, `7`, `"received"`, `{`, `{}`, `{"status":"succeeded"}`,
		`{"command_id":"1","status":"succeeded"}`,
		answer(`"status":"sent"`), answer(`"status":"accepted"`), answer(`"status":"unknown"`), answer(`"status":"Succeeded"`),
		answer(`"status":1`),
		answer(`"status":"failed","reason":"` + long + `"`), answer(`"status":"failed","detail":"` + long + `"`),
		answer(`"status":"failed","reason":"\u0000"`), answer(`"status":"failed","detail":"a\u0000"`),
		answer(`"status":"succeeded","detail":"` + strings.Repeat("x", telematics.MaxMessage) + `"`),
		"\xff\xfe\x00", answer(`"status":"succeeded"`) + `{}`,
	} {
		if a, _, err := DecodeAnswer([]byte(message), received); err == nil {
			t.Errorf("%.80q is decoded as %+v, want an error", message, a)
		}
	}
}

func TestDecodeAnswer_InvalidReportIsDroppedAndTheAnswerKept(t *testing.T) {
	cases := []struct {
		report  string
		want    *telematics.Report
		dropped []string
	}{
		{`null`, nil, nil},
		{`7`, nil, []string{"report"}},
		{`{}`, &telematics.Report{At: received, Values: map[telematics.Field]any{}}, []string{"at"}},
		{
			`{"at":"2026-01-02T10:00:00Z","telemetry":{"is_locked":"yes","speed_kmh":0}}`,
			&telematics.Report{At: now, Values: map[telematics.Field]any{telematics.SpeedKmh: 0.0}},
			[]string{"telemetry.is_locked"},
		},
		{
			`{"at":"2026-01-02T10:00:00Z","commands":[` + answer(`"status":"succeeded"`) + `]}`,
			&telematics.Report{At: now, Values: map[telematics.Field]any{}}, nil,
		},
	}
	for _, c := range cases {
		got, dropped, err := DecodeAnswer([]byte(answer(`"status":"succeeded","at":"2026-01-02T10:00:00Z","report":`+c.report)), received)
		want := telematics.Answer{Command: aCommand, State: telematics.Succeeded, At: now, Report: c.want}
		if err != nil || !reflect.DeepEqual(got, want) || !slices.Equal(namesOf(dropped), c.dropped) {
			t.Errorf("%s: decoded as %+v, dropped %v, %v", c.report, got, dropped, err)
		}
	}
}

func TestDecodePresence_InvalidPresenceIsRefused(t *testing.T) {
	long := strings.Repeat("x", 257)
	for _, message := range []string{
		``, `null`, `[]`, `{}`, `{"status":"unknown"}`, `{"status":"Online"}`, `{"status":1}`,
		`{"status":"online","session":"` + long + `"}`, `{"status":"online","session":"\u0000"}`,
		`{"status":"online","firmware_version":"` + long + `"}`, `{"status":"online","firmware_version":"\u0000"}`,
		`{"status":"online","capabilities":"lock"}`,
		`{"status":"online","x":"` + strings.Repeat("x", telematics.MaxMessage) + `"}`,
	} {
		if p, err := DecodePresence([]byte(message), received); err == nil {
			t.Errorf("%.80q is decoded as %+v, want an error", message, p)
		}
	}
}

func TestDecodePresence_UnknownCapabilitiesAreLeftOut(t *testing.T) {
	for list, want := range map[string][]telematics.Action{
		`null`:                     nil,
		`[]`:                       {},
		`["fly"]`:                  {},
		`["lock","fly","unlock"]`:  {telematics.Lock, telematics.Unlock},
		`["lock","lock","unlock"]`: {telematics.Lock, telematics.Unlock},
	} {
		p, err := DecodePresence([]byte(`{"status":"online","capabilities":`+list+`}`), received)
		if err != nil || !reflect.DeepEqual(p.Actions, want) {
			t.Errorf("capabilities %s: %#v, %v; want %#v", list, p.Actions, err, want)
		}
	}
}

// [PRE-4]
func TestDecodePresence_InvalidKeysAreDroppedAndThePresenceKept(t *testing.T) {
	many := func(n int) string {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprintf(`"k%02d"`, i)
		}
		return "[" + strings.Join(ids, ",") + "]"
	}
	for list, want := range map[string][]string{
		`null`: nil, `[]`: {}, `["b","a","b"]`: {"a", "b"}, `["` + strings.Repeat("x", 128) + `"]`: {strings.Repeat("x", 128)},
		`7`: nil, `"a"`: nil, `{}`: nil, `["a",7]`: nil, `["a",null]`: nil, `["a",""]`: nil, `["a\u0000"]`: nil, `["a",["b"]]`: nil,
		`["` + strings.Repeat("x", 129) + `"]`: nil, many(17): nil,
	} {
		p, err := DecodePresence([]byte(`{"status":"online","session":"s","keys":`+list+`}`), received)
		if err != nil || p.Session != "s" || !reflect.DeepEqual(p.Keys, want) {
			t.Errorf("keys %.80s: %#v, %v", list, p.Keys, err)
		}
	}
	if p, err := DecodePresence([]byte(`{"status":"online","keys":`+many(16)+`}`), received); err != nil ||
		len(p.Keys) != telematics.MaxKeys {
		t.Errorf("the most keys that are allowed: %v, %v", p.Keys, err)
	}
}

func TestDecodePresence_ImplausibleTimeIsDropped(t *testing.T) {
	for message, want := range map[string]time.Time{
		`{"status":"online"}`:                                {},
		`{"status":"online","at":"1970-01-01T00:00:00Z"}`:    {},
		`{"status":"online","at":"2026-01-02T10:00:00Z"}`:    now,
		`{"status":"standby","at":"soon"}`:                   {},
		`{"status":"offline"}`:                               {},
		`{"status":"offline","at":"soon"}`:                   {},
		`{"status":"offline","at":"2031-01-01T00:00:00Z"}`:   {},
		`{"status":"offline","at":"2026-01-02T10:00:00Z"}`:   now,
		`{"status":"offline","at":"2019-01-02T10:00:00Z"}`:   {},
		`{"status":"offline","at":"","session":"something"}`: {},
	} {
		p, err := DecodePresence([]byte(message), received)
		if err != nil || !p.At.Equal(want) {
			t.Errorf("%s: time %v, %v; want %v", message, p.At, err, want)
		}
	}
}

func TestEncode_PanicsOnAValueThatCannotBeEncoded(t *testing.T) {
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, "v1: encode") {
			t.Errorf("recovered %s, want a panic of v1", p)
		}
	}()
	encode(make(chan int))
}

// answer returns an answer to aCommand with additional members.
func answer(members string) string {
	return fmt.Sprintf(`{"command_id":"%s",%s}`, aCommand, members)
}

func namesOf(dropped []telematics.Dropped) []string {
	var names []string
	for _, d := range dropped {
		names = append(names, d.Field)
	}
	return names
}
