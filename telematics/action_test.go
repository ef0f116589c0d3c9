package telematics

import (
	"slices"
	"testing"
	"time"

	"motorpool/internal/assert"
)

func TestAction_HasALaneAndAnEffect(t *testing.T) {
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
	if len(cases) != len(actions) {
		t.Errorf("%d actions, want %d", len(actions), len(cases))
	}
	for _, c := range cases {
		a, err := ParseAction(string(c.action))
		if err != nil || a != c.action {
			t.Errorf("ParseAction(%q) = %q, %v", c.action, a, err)
		}
		if a.Lane() != c.lane || a.Immobilizes() != c.immobilizes || a.Opens() != c.opens {
			t.Errorf("%s: lane %s immobilizes %t opens %t, want %+v", a, a.Lane(), a.Immobilizes(), a.Opens(), c)
		}
		if a.traits().effect < harmless {
			t.Errorf("%s: no effect is said", a)
		}
		assert.Equal(t, slices.Contains(ControlActions, a), a != ReportState, "%s is a control action", a)
	}
}

func TestParseAction_UnknownOneIsRefused(t *testing.T) {
	for _, s := range []string{"", "Lock", "lock ", "self-destruct"} {
		if a, err := ParseAction(s); err == nil {
			t.Errorf("ParseAction(%q) = %q", s, a)
		}
	}
}

func TestValidate_Parameters(t *testing.T) {
	horn := func(d time.Duration) *Attention { return &Attention{Signal: Horn, Duration: d} }
	cases := []struct {
		name   string
		action Action
		params *Attention
		sound  bool
	}{
		{"no parameters for an action without any", Lock, nil, true},
		{"parameters for an action without any", Lock, horn(DefaultPulse), false},
		{"attention without parameters", AttentionSignal, nil, false},
		{"the default pulse", AttentionSignal, horn(DefaultPulse), true},
		{"the shortest pulse", AttentionSignal, horn(time.Millisecond), true},
		{"the longest pulse", AttentionSignal, horn(5000 * time.Millisecond), true},
		{"no pulse", AttentionSignal, horn(0), false},
		{"a negative pulse", AttentionSignal, horn(-time.Second), false},
		{"too long a pulse", AttentionSignal, horn(5001 * time.Millisecond), false},
		{"a fraction of a millisecond", AttentionSignal, horn(time.Second + 500*time.Microsecond), false},
		{"lights", AttentionSignal, &Attention{Signal: Lights, Duration: DefaultPulse}, true},
		{"both", AttentionSignal, &Attention{Signal: Both, Duration: DefaultPulse}, true},
		{"an unknown signal", AttentionSignal, &Attention{Signal: "siren", Duration: DefaultPulse}, false},
		{"no signal", AttentionSignal, &Attention{Duration: DefaultPulse}, false},
	}
	for _, c := range cases {
		if err := c.action.Validate(c.params); (err == nil) != c.sound {
			t.Errorf("%s: %v, want it valid: %t", c.name, err, c.sound)
		}
	}
}

// [CMD-7]
func TestForbids_ImmobilizingOrOpeningAMovingVehicle(t *testing.T) {
	forbidden := map[Action]bool{
		DisableDriving: true, LockAndDisableDriving: true,
		Unlock: true, UnlockAndEnableDriving: true, OpenTopCase: true,
	}
	at := func(kmh float64, age time.Duration) Snapshot {
		return Snapshot{SpeedKmh: {Value: kmh, At: now.Add(-age)}}
	}
	blind := map[Action]bool{DisableDriving: true, LockAndDisableDriving: true}
	cases := []struct {
		name     string
		snapshot Snapshot
		want     map[Action]bool
	}{
		{"at 50 km/h", at(50, time.Second), forbidden},
		{"just above 5 km/h", at(5.1, 0), forbidden},
		{"at 5 km/h", at(5, 0), nil},
		{"at 0 km/h", at(0, 0), nil},
		{"at 50 km/h 30 s ago", at(50, 30*time.Second), forbidden},
		{"at 50 km/h more than 30 s ago", at(50, 30*time.Second+time.Millisecond), nil},
		{"whose speed has just become null", Snapshot{SpeedKmh: {At: now}}, blind},
		{"whose speed became null a minute ago", Snapshot{SpeedKmh: {At: now.Add(-time.Minute)}}, nil},
		{"without a snapshot", nil, nil},
		{"at 50 km/h by the clock of another instance", at(50, -time.Second), forbidden},
		{"at 50 km/h in the future", at(50, -290*time.Second), blind},
		{"at 0 km/h in the future", at(0, -290*time.Second), blind},
	}
	for _, c := range cases {
		for _, listed := range actions {
			action := listed.action
			err := c.snapshot.Forbids(action, now)
			if want := c.want[action]; (err != nil) != want {
				t.Errorf("a vehicle %s: %s forbidden: %v, want %t", c.name, action, err, want)
			}
			if err != nil && (err.Code != VehicleStateConflict || err.Detail != Moving || err.Outcome != NotExecuted || !err.Retryable) {
				t.Errorf("error %+v, want a retryable conflict because it is moving", err)
			}
		}
	}
}
