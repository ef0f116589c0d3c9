package alerts

import (
	"os"
	"strings"
	"testing"

	"motorpool/internal/require"
)

func TestWords_NameTheVehicleTheRuleAndWhatItSaw(t *testing.T) {
	for want, a := range map[string]Alert{
		"M-AB 1: 12 V battery is low (11.7 V)": {
			Rule: Battery12VLow, Plate: "M-AB 1", Vehicle: 7, Facts: map[string]any{"volts": 11.7},
		},
		"vehicle 7: warning lamp (tire failure, abs)": {
			Rule: Lamp, Vehicle: 7, Facts: map[string]any{"lamps": []any{"tire_failure", "abs"}, "raw": map[string]any{}},
		},
		"M-AB 1: service is due (overdue by 120 km)": {Rule: ServiceDue, Plate: "M-AB 1", Facts: map[string]any{"km": -120.0}},
		"M-AB 1: alarm of its unit (it is towed)":    {Rule: UnitAlarm, Plate: "M-AB 1", Facts: map[string]any{"kind": "towing"}},
		"M-AB 1: alarm of its unit (unlocked by x)": {
			Rule: UnitAlarm, Plate: "M-AB 1", Facts: map[string]any{"kind": "unlocked_by_x"},
		},
		"M-AB 1: outside the operating area": {
			Rule: OutsideArea, Plate: "M-AB 1", Facts: map[string]any{"position": map[string]any{}},
		},
		"M-AB 1: moved without a booking (1250000 m)": {
			Rule: MovedWithoutBooking, Plate: "M-AB 1", Facts: map[string]any{"metres": 1_250_000.0},
		},
		"M-AB 1: the clock of its unit is wrong (behind by 1795859474.1 s)": {
			Rule: UnitClock, Plate: "M-AB 1", Facts: map[string]any{"ahead_s": -1795859474.1},
		},
		"M-AB 1: the clock of its unit is wrong (ahead by 7.5 s)": {
			Rule: UnitClock, Plate: "M-AB 1", Facts: map[string]any{"ahead_s": 7.5},
		},
		"M-AB 1: parked and free, but open": {Rule: LeftOpen, Plate: "M-AB 1", Facts: map[string]any{}},
		"anna: opened or located many vehicles (51 within an hour)": {
			Rule: MassAccess, Person: "anna", Facts: map[string]any{"vehicles": 51},
		},
	} {
		if got := Words(a); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A rule without words would say nothing.
func TestWords_EachRuleHasSome(t *testing.T) {
	for _, d := range Defaults() {
		if words[d.Rule] == "" {
			t.Errorf("%s has no words", d.Rule)
		}
	}
	if len(words) != len(Defaults()) {
		t.Error("there are words of a rule that does not exist")
	}
}

// The console says them in the language of the person.
func TestKinds_HaveWordsInTheConsole(t *testing.T) {
	for _, language := range []string{"en", "de"} {
		texts, err := os.ReadFile("../console/src/texts/" + language + ".ts")
		require.NoError(t, err)
		for kind := range kinds {
			if !strings.Contains(string(texts), kind+": '") && !strings.Contains(string(texts), "'"+kind+"': '") {
				t.Errorf("%s.ts has no words for an alarm %q", language, kind)
			}
		}
	}
}
