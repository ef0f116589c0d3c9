package telematics

import (
	"strings"
	"testing"
	"time"
)

func TestWhatIsDroppedOfAReportSaysWhatIsWrongWithIt(t *testing.T) {
	for value, want := range map[string]Fault{
		`"at":"tomorrow"`:                                    WrongTime,
		`"at":"2026-01-02T10:06:00Z"`:                        WrongTime,
		`"at":"2019-01-01T00:00:00Z"`:                        WrongTime,
		`"x":1`:                                              WrongTime, // not said
		`"telemetry":{"speed_kmh":"fast"}`:                   WrongType,
		`"telemetry":{"is_locked":1}`:                        WrongType,
		`"telemetry":{"doors":{"trunk":true}}`:               WrongType,
		`"diagnostics":{"warning_lamps":"oil"}`:              WrongType,
		`"oem_data":[]`:                                      WrongType,
		`"location":{"timestamp":"yesterday"}`:               WrongType,
		`"telemetry":{"speed_kmh":401}`:                      OutOfRange,
		`"telemetry":{"fuel_level_percent":-1}`:              OutOfRange,
		`"location":{"timestamp":"1999-01-01T00:00:00Z"}`:    OutOfRange,
		`"connectivity":{"firmware_version":"` + long + `"}`: OutOfRange,
		`"telemetry":{"ignition":"maybe"}`:                   UnknownWord,
		`"telemetry":{"doors":{"trunk":"ajar"}}`:             UnknownWord,
		`"diagnostics":{"warning_lamps":["Oil!"]}`:           UnknownWord,
		`"location":{"latitude":48}`:                         "",
		`"telemetry":7`:                                      "",
	} {
		message := `{"at":"2026-01-02T10:00:00Z",` + value + `}`
		if want == WrongTime {
			message = `{` + value + `}`
		}
		_, dropped, err := DecodeReport([]byte(message), now)
		if err != nil || len(dropped) != 1 || dropped[0].Fault != want || dropped[0].Reason == "" {
			t.Errorf("%s: dropped %+v, %v; want fault %q", value, dropped, err, want)
		}
	}
}

var long = strings.Repeat("4", maxText+1)

func TestPresenceThatDoesNotCountIsCounted(t *testing.T) {
	at := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	var seen Seen
	var contact Contact
	for _, p := range []Presence{
		{Status: Offline, Session: "z"}, // of a unit of which nothing is known: it counts
		{Status: Online, Session: "a", At: at},
		{Status: Offline, Session: "z"}, // a ghost
		{Status: Online, Session: "b", At: at.Add(time.Second)},
		{Status: Standby, Session: "a", At: at}, // overtaken
		{Status: Offline, Session: "a"},         // a ghost
		{Status: Offline, Session: "b"},
	} {
		o := Observation{Unit: "u", At: at.Add(2 * time.Second), Presence: &p}
		seen.Weigh(contact, o)
		contact = contact.Observe(o)
	}
	seen.Weigh(contact, Observation{Unit: "u", At: at})
	if seen.Ghosts != 2 || seen.Overtaken != 1 || contact.Status != Offline {
		t.Errorf("%d ghosts, %d overtaken, contact %+v", seen.Ghosts, seen.Overtaken, contact)
	}
}
