package telematics

import (
	"strings"
	"testing"
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
