package telematics

import (
	"slices"
	"testing"
	"time"
)

func TestEveryActionHasItsLaneAndItsEffect(t *testing.T) {
	cases := []struct {
		action             Action
		lane               Lane
		immobilizes, opens bool
	}{
		{"lock", "access", false, false},
		{"unlock", "access", false, true},
		{"enable-driving", "access", false, false},
		{"disable-driving", "access", true, false},
		{"unlock-and-enable-driving", "access", false, true},
		{"lock-and-disable-driving", "access", true, false},
		{"attention", "attention", false, false},
		{"open-top-case", "top_case", false, true},
		{"report-state", "refresh", false, false},
	}
	if len(cases) != len(lanes) {
		t.Errorf("%d actions have a lane, want %d", len(lanes), len(cases))
	}
	for _, c := range cases {
		a, err := ParseAction(string(c.action))
		if err != nil || a != c.action {
			t.Errorf("ParseAction(%q) = %q, %v", c.action, a, err)
		}
		if a.Lane() != c.lane || a.Immobilizes() != c.immobilizes || a.Opens() != c.opens {
			t.Errorf("%s: lane %s immobilizes %t opens %t, want %+v", a, a.Lane(), a.Immobilizes(), a.Opens(), c)
		}
		if ordered := slices.Contains(ControlActions, a); ordered != (a != ReportState) {
			t.Errorf("%s can be ordered by an administrator: %t", a, ordered)
		}
	}
}

func TestAnUnknownActionIsRefused(t *testing.T) {
	for _, s := range []string{"", "Lock", "lock ", "self-destruct"} {
		if a, err := ParseAction(s); err == nil {
			t.Errorf("ParseAction(%q) = %q", s, a)
		}
	}
}

func TestParametersAreValidated(t *testing.T) {
	horn := func(d time.Duration) *Attention { return &Attention{Signal: Horn, Duration: d} }
	cases := []struct {
		name   string
		action Action
		params *Attention
		sound  bool
	}{
		{"no parameters where none are due", Lock, nil, true},
		{"parameters where none are due", Lock, horn(DefaultPulse), false},
		{"attention without parameters", AttentionSignal, nil, false},
		{"the default pulse", AttentionSignal, horn(DefaultPulse), true},
		{"the shortest pulse", AttentionSignal, horn(time.Millisecond), true},
		{"the longest pulse", AttentionSignal, horn(5000 * time.Millisecond), true},
		{"no pulse", AttentionSignal, horn(0), false},
		{"a negative pulse", AttentionSignal, horn(-time.Second), false},
		{"too long a pulse", AttentionSignal, horn(5001 * time.Millisecond), false},
		{"half a millisecond more", AttentionSignal, horn(time.Second + 500*time.Microsecond), false},
		{"lights", AttentionSignal, &Attention{Signal: Lights, Duration: DefaultPulse}, true},
		{"both", AttentionSignal, &Attention{Signal: Both, Duration: DefaultPulse}, true},
		{"an unknown signal", AttentionSignal, &Attention{Signal: "siren", Duration: DefaultPulse}, false},
		{"no signal", AttentionSignal, &Attention{Duration: DefaultPulse}, false},
	}
	for _, c := range cases {
		if err := c.action.Validate(c.params); (err == nil) != c.sound {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
