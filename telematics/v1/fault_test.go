package v1

import (
	"strings"
	"testing"

	"motorpool/telematics"
)

func TestWhatIsDroppedOfAReportSaysWhatIsWrongWithIt(t *testing.T) {
	for value, want := range map[string]telematics.Fault{
		`"at":"tomorrow"`:                                    telematics.WrongTime,
		`"at":"2026-01-02T10:06:00Z"`:                        telematics.WrongTime,
		`"at":"2019-01-01T00:00:00Z"`:                        telematics.WrongTime,
		`"x":1`:                                              telematics.WrongTime, // not said
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
