package telematics

import (
	"slices"
	"testing"

	"motorpool/internal/assert"
)

// [PRE-3]
func TestTwin_DeclaredActionsReplaceThoseOfTheRecord(t *testing.T) {
	record := Vehicle{Actions: []Action{Lock, Unlock}}
	cases := []struct {
		name     string
		declared []Action
		want     []Action
	}{
		{"not declared: as the record allows", nil, []Action{Lock, Unlock}},
		{"declared: as declared", []Action{Lock, OpenTopCase}, []Action{Lock, OpenTopCase}},
		{"declared as none: none", []Action{}, []Action{}},
	}
	for _, c := range cases {
		twin := Twin{Vehicle: record, Contact: Contact{Actions: c.declared}}
		assert.EqualSlices(t, twin.Commands(), c.want, "%s: commands", c.name)
		for _, a := range ControlActions {
			assert.Equal(t, twin.Supports(a), slices.Contains(c.want, a), "%s: supports %s", c.name, a)
		}
		if !twin.Supports(ReportState) {
			t.Errorf("%s: does not support report-state", c.name)
		}
	}
}

func TestPowertrain_BurnsOrPlugsInOrBoth(t *testing.T) {
	for p, want := range map[Powertrain][2]bool{
		Combustion: {true, false}, Electric: {false, true}, PlugInHybrid: {true, true},
	} {
		if p.Burns() != want[0] || p.PlugsIn() != want[1] {
			t.Errorf("%s: burns %t, plugs in %t; want %v", p, p.Burns(), p.PlugsIn(), want)
		}
	}
	if len(Powertrains) != 3 || len(VehicleStatuses) != 5 || len(PresenceStatuses) != 4 || len(Signals) != 3 {
		t.Error("a list of words is incomplete")
	}
}
