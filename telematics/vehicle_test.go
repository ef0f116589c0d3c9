package telematics

import (
	"slices"
	"testing"
)

// [PRE-3]
func TestWhatAUnitDeclaresReplacesWhatTheRecordGrants(t *testing.T) {
	record := Vehicle{Actions: []Action{Lock, Unlock}}
	cases := []struct {
		name     string
		declared []Action
		want     []Action
	}{
		{"a unit that never said is held to the record", nil, []Action{Lock, Unlock}},
		{"a unit that said is believed", []Action{Lock, OpenTopCase}, []Action{Lock, OpenTopCase}},
		{"a unit that said that it has none is believed too", []Action{}, []Action{}},
	}
	for _, c := range cases {
		twin := Twin{Vehicle: record, Contact: Contact{Actions: c.declared}}
		if got := twin.Commands(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		for _, a := range ControlActions {
			if twin.Supports(a) != slices.Contains(c.want, a) {
				t.Errorf("%s: supports %s: %t", c.name, a, twin.Supports(a))
			}
		}
		if !twin.Supports(ReportState) {
			t.Errorf("%s: cannot report its state", c.name)
		}
	}
}

func TestAPowertrainBurnsOrPlugsInOrBoth(t *testing.T) {
	for p, want := range map[Powertrain][2]bool{
		Combustion: {true, false}, Electric: {false, true}, PlugInHybrid: {true, true},
	} {
		if p.Burns() != want[0] || p.PlugsIn() != want[1] {
			t.Errorf("%s: burns %t plugs in %t", p, p.Burns(), p.PlugsIn())
		}
	}
	if len(Powertrains) != 3 || len(VehicleStatuses) != 5 || len(PresenceStatuses) != 4 || len(Signals) != 3 {
		t.Error("a list of words is not complete")
	}
}
