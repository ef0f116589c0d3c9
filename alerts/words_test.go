package alerts

import "testing"

func TestWords_NameTheVehicleTheRuleAndWhatItSaw(t *testing.T) {
	for want, a := range map[string]Alert{
		"M-AB 1: 12 V battery is low (volts 11.7)": {
			Rule: Battery12VLow, Plate: "M-AB 1", Vehicle: 7, Facts: map[string]any{"volts": 11.7},
		},
		"vehicle 7: warning lamp (lamps oil abs, since km 12)": {
			Rule: Lamp, Vehicle: 7, Facts: map[string]any{
				"lamps": []any{"oil", "abs"}, "since_km": 12.0, "raw": map[string]any{}, "amount": 1200.0,
			},
		},
		"anna: opened or located many vehicles (vehicles 51)": {
			Rule: MassAccess, Person: "anna", Facts: map[string]any{"vehicles": 51},
		},
	} {
		if got := Words(a); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
