package telematics

import "testing"

func TestParseSerial_NamesOfTheServiceAreRefused(t *testing.T) {
	for serial, want := range map[string]bool{
		"354762111234567": true, "car_1": true, "probe-claim-1": false, "probe-": false, "probe1": true, "a b": false,
	} {
		if _, err := ParseSerial(serial); (err == nil) != want {
			t.Errorf("%q: %v, want it accepted: %t", serial, err, want)
		}
	}
}
