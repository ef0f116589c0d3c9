package telematics

import (
	"reflect"
	"testing"
	"time"
)

const second, minute = time.Second, time.Minute // read better in tables

// said is a presence message of a session.
func said(status PresenceStatus, session string, at time.Time) Presence {
	return Presence{Status: status, Session: session, At: at}
}

// [PRE-1]
func TestALastWillOfAnOlderConnectionIsAGhost(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	c, _ = c.Apply(said(Online, "b", now.Add(second)), now.Add(second), false)
	after, counted := c.Apply(said(Offline, "a", time.Time{}), now.Add(2*second), false)
	if counted || !reflect.DeepEqual(after, c) {
		t.Errorf("the ghost counted: %+v", after)
	}
	after, counted = c.Apply(said(Offline, "b", time.Time{}), now.Add(3*second), false)
	if !counted || after.At(now.Add(3*second)) != Offline {
		t.Errorf("the last will of the present connection did not count: %+v", after)
	}
}

// [PRE-1]
func TestAnOvertakenPresenceIsIgnored(t *testing.T) {
	for _, status := range []PresenceStatus{Online, Standby} {
		c, _ := Contact{}.Apply(said(Online, "b", now), now, false)
		after, counted := c.Apply(said(status, "b", now.Add(-time.Millisecond)), now.Add(second), false)
		if counted || !reflect.DeepEqual(after, c) {
			t.Errorf("an older %s counted: %+v", status, after)
		}
		after, counted = c.Apply(said(status, "b", now), now.Add(second), false)
		if !counted || after.Status != status {
			t.Errorf("a %s of the same instant did not count: %+v", status, after)
		}
	}
}

func TestALastWillKeepsTheTimeOfThePresenceBeforeIt(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	c, _ = c.Apply(said(Offline, "a", time.Time{}), now.Add(minute), false)
	if _, counted := c.Apply(said(Online, "b", now.Add(-second)), now.Add(minute+second), true); counted {
		t.Error("an overtaken online from the broker's memory counted after the last will")
	}
	c, counted := c.Apply(said(Online, "b", now.Add(minute)), now.Add(minute+second), false)
	if !counted || c.At(now.Add(minute+second)) != Online {
		t.Errorf("a new connection did not count: %+v", c)
	}
}

func TestContact_FirstPresenceCounts(t *testing.T) {
	for _, status := range []PresenceStatus{Online, Standby, Offline} {
		c, counted := Contact{}.Apply(said(status, "a", now), now, false)
		if !counted || c.At(now) != status {
			t.Errorf("%s: counted %t, reads %s", status, counted, c.At(now))
		}
	}
}

// [PRE-3]
func TestCapabilitiesAndFirmwareAreReplacedOnlyByWhatIsSaid(t *testing.T) {
	p := said(Online, "a", now)
	p.Actions, p.Firmware = []Action{Lock}, "4.2.1"
	c, _ := Contact{}.Apply(p, now, false)
	c, _ = c.Apply(said(Standby, "a", now.Add(second)), now.Add(second), false)
	if !reflect.DeepEqual(c.Actions, []Action{Lock}) || c.Firmware != "4.2.1" {
		t.Errorf("forgotten by a presence that did not say: %+v", c)
	}
	p = said(Offline, "a", time.Time{})
	p.Actions, p.Firmware = []Action{}, "0"
	c, _ = c.Apply(p, now.Add(2*second), false)
	if !reflect.DeepEqual(c.Actions, []Action{Lock}) || c.Firmware != "4.2.1" {
		t.Errorf("taken from a last will: %+v", c)
	}
	p = said(Online, "b", now.Add(minute))
	p.Actions = []Action{}
	if c, _ = c.Apply(p, now.Add(minute), false); c.Actions == nil || len(c.Actions) != 0 {
		t.Errorf("an empty list was not believed: %+v", c)
	}
}

// [PRE-4]
func TestKeysAreReplacedOnlyByWhatIsSaid(t *testing.T) {
	p := said(Online, "a", now)
	p.Keys = []string{"k1", "k2"}
	c, _ := Contact{}.Apply(p, now, false)
	c, _ = c.Apply(said(Standby, "a", now.Add(second)), now.Add(second), false)
	if !reflect.DeepEqual(c.Keys, p.Keys) {
		t.Errorf("forgotten by a presence that did not say: %+v", c)
	}
	ghost := said(Standby, "older", now.Add(-minute))
	ghost.Keys = []string{"k0"}
	if c, counted := c.Apply(ghost, now, true); counted || !reflect.DeepEqual(c.Keys, p.Keys) {
		t.Errorf("taken from a presence that does not count: %+v", c)
	}
	p = said(Online, "a", now.Add(2*second))
	p.Keys = []string{}
	if c, _ = c.Apply(p, now.Add(2*second), false); c.Keys == nil || len(c.Keys) != 0 {
		t.Errorf("an empty list was not believed: %+v", c)
	}
}

// [PRE-2]
func TestOnlineWithoutAMessageForTenMinutesReadsAsUnknown(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	for after, want := range map[time.Duration]PresenceStatus{0: Online, 10 * minute: Online, 10*minute + 1: Absent, 24 * time.Hour: Absent} {
		if got := c.At(now.Add(after)); got != want {
			t.Errorf("after %v: %s, want %s", after, got, want)
		}
	}
	c = c.Heard(now.Add(9 * minute))
	if got := c.At(now.Add(19 * minute)); got != Online {
		t.Errorf("heard 10 minutes ago: %s", got)
	}
}

func TestAnnouncedSleepAndALastWillDoNotAge(t *testing.T) {
	for _, status := range []PresenceStatus{Standby, Offline} {
		c, _ := Contact{}.Apply(said(status, "a", now), now, false)
		if got := c.At(now.Add(24 * time.Hour)); got != status {
			t.Errorf("%s after a day: %s", status, got)
		}
	}
}

func TestAUnitThatWasHeardButNeverSpokeOfItselfIsOnline(t *testing.T) {
	var c Contact
	if got := c.At(now); got != Absent {
		t.Errorf("never seen: %s", got)
	}
	c = c.Heard(now)
	if c.At(now.Add(minute)) != Online || c.At(now.Add(11*minute)) != Absent {
		t.Errorf("heard a minute ago: %s, 11 minutes ago: %s", c.At(now.Add(minute)), c.At(now.Add(11*minute)))
	}
}

func TestHearingNeverGoesBackInTime(t *testing.T) {
	c := Contact{}.Heard(now).Heard(now.Add(-minute))
	if !c.LastSeen.Equal(now) {
		t.Error(c.LastSeen)
	}
}

func TestAUnitHeardAfterItsLastWillIsBack(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	c, _ = c.Apply(said(Offline, "a", time.Time{}), now.Add(minute), false)
	if !c.LastSeen.Equal(now) {
		t.Errorf("the last will, which the MQTT broker speaks, was a sign of life: %v", c.LastSeen)
	}
	c = c.Heard(now.Add(2 * minute))
	if c.At(now.Add(2*minute)) != Online || c.At(now.Add(13*minute)) != Absent {
		t.Errorf("heard after its last will: %s, later %s", c.At(now.Add(2*minute)), c.At(now.Add(13*minute)))
	}
}

func TestARetainedOnlineTellsWhenTheUnitSpoke(t *testing.T) {
	c, counted := Contact{}.Apply(said(Online, "a", now.Add(-time.Hour)), now, true)
	if !counted || !c.LastSeen.Equal(now.Add(-time.Hour)) || c.At(now) != Absent {
		t.Errorf("counted %t, last seen %v, reads %s", counted, c.LastSeen, c.At(now))
	}
	c, _ = c.Apply(said(Online, "b", now.Add(3*minute)), now, true) // by a clock that runs ahead
	if !c.LastSeen.Equal(now) {
		t.Errorf("seen in the future: %v", c.LastSeen)
	}
}

func TestARetainedLastWillIsNoSignOfLife(t *testing.T) {
	for name, at := range map[string]time.Time{
		"without a time":            {},
		"of an hour ago":            now.Add(-time.Hour),
		"by a clock that runs fast": now.Add(4 * minute),
	} {
		c, _ := Contact{}.Apply(said(Offline, "a", at), now, true)
		for range 3 { // the MQTT broker repeats it at every subscription
			c, _ = c.Apply(said(Offline, "a", at), now.Add(10*minute), true)
			if got := c.At(now.Add(10 * minute)); got != Offline {
				t.Errorf("%s: reads %s, last seen %v", name, got, c.LastSeen)
			}
			if !c.Unreachable(now.Add(10 * minute)) {
				t.Errorf("%s: not away, last seen %v", name, c.LastSeen)
			}
		}
	}
}

func TestALastWillThatSaysWhenTheUnitSpokeIsBelieved(t *testing.T) {
	for _, retained := range []bool{false, true} {
		c, _ := Contact{}.Apply(said(Offline, "a", now.Add(-time.Hour)), now, retained)
		if !c.LastSeen.Equal(now.Add(-time.Hour)) || c.At(now) != Offline || !c.Unreachable(now) {
			t.Errorf("retained %t: last seen %v, reads %s", retained, c.LastSeen, c.At(now))
		}
	}
}

func TestARepeatedLastWillDoesNotSilenceAUnitThatWasHeardSince(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	c, _ = c.Apply(said(Offline, "a", time.Time{}), now.Add(second), false)
	c = c.Heard(now.Add(minute))
	c, _ = c.Apply(said(Offline, "a", time.Time{}), now.Add(2*minute), true)
	if got := c.At(now.Add(2 * minute)); got != Online {
		t.Error(got)
	}
}

func TestContact_AwayAfterAMinuteOfAnnouncedOrWilledSilence(t *testing.T) {
	cases := []struct {
		status PresenceStatus
		silent time.Duration
		away   bool
	}{
		{Standby, minute, false}, {Standby, minute + 1, true},
		{Offline, minute, false}, {Offline, minute + 1, true},
		{Online, minute + 1, false}, {Online, time.Hour, false}, // unknown: worth asking
	}
	for _, c := range cases {
		contact := Contact{Status: c.status, LastSeen: now, ChangedAt: now}
		if got := contact.Unreachable(now.Add(c.silent)); got != c.away {
			t.Errorf("%s, silent for %v: away %t", c.status, c.silent, got)
		}
	}
	if (Contact{}).Unreachable(now) {
		t.Error("a unit that was never seen counts as away: it is worth asking")
	}
}

func TestSignalQualityFollowsTheReferencePower(t *testing.T) {
	for rsrp, want := range map[float64]string{
		-31: "strong", -95: "strong", -95.1: "moderate", -105: "moderate", -105.1: "weak", -115: "weak", -115.1: "none", -156: "none",
	} {
		if got := SignalQuality(&rsrp); got == nil || *got != want {
			t.Errorf("%v dBm: %v, want %s", rsrp, got, want)
		}
	}
	if got := SignalQuality(nil); got != nil {
		t.Errorf("not reported: %s", *got)
	}
}

func TestAWrongClockDoesNotSilenceAUnit(t *testing.T) {
	for name, wrong := range map[string]time.Duration{
		"two minutes ahead": 2 * time.Minute, "an hour behind": -time.Hour, "years behind": -5 * 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			arrived := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
			c := Contact{}
			for i, p := range []Presence{
				{Status: Online, Session: "before", At: arrived.Add(wrong)},
				// The clock was set.
				{Status: Online, Session: "after", At: arrived.Add(time.Second)},
				{Status: Online, Session: "again", At: arrived.Add(2*time.Second + wrong)},
				{Status: Offline, Session: "again"},
			} {
				var counted bool
				if c, counted = c.Apply(p, arrived.Add(time.Duration(i)*time.Second), false); !counted {
					t.Errorf("presence %d (%s, %s) was ignored", i, p.Status, p.Session)
				}
			}
			if got := c.At(arrived.Add(4 * time.Second)); got != Offline {
				t.Errorf("after its last will the unit is %s", got)
			}
		})
	}
}

func TestARetainedPresenceWithoutATimeIsNoSignOfLife(t *testing.T) {
	seen := now.Add(-time.Hour)
	for name, before := range map[string]Contact{
		"never heard":  {},
		"heard before": {Status: Online, Session: "a", SaidAt: seen, ChangedAt: seen, LastSeen: seen},
	} {
		after, counted := before.Apply(said(Online, "b", time.Time{}), now, true)
		if !counted || !after.LastSeen.Equal(before.LastSeen) || after.At(now) != Absent {
			t.Errorf("%s: %+v, %s", name, after, after.At(now))
		}
	}
}

func TestAUnitsHabitsSayWhenToLookAgain(t *testing.T) {
	start := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	reports := func(gaps ...time.Duration) (Contact, time.Time) {
		c, now := Contact{}, start
		c = c.Reported(now)
		for _, gap := range gaps {
			now = now.Add(gap)
			c = c.Reported(now)
		}
		return c, now
	}
	steady := []time.Duration{2 * time.Minute, 2 * time.Minute, 2 * time.Minute}
	for name, test := range map[string]struct {
		gaps []time.Duration
		away time.Duration
		want time.Duration
	}{
		"never seen twice":               {nil, 5 * time.Minute, 30 * time.Second},
		"due in a minute":                {steady, time.Minute, time.Minute},
		"it left one out":                {steady, 150 * time.Second, 90 * time.Second},
		"due now":                        {steady, 119 * time.Second, 5 * time.Second},
		"it comes rarely":                {[]time.Duration{40 * time.Minute}, 2 * time.Minute, 10 * time.Minute},
		"a burst says nothing":           {append(steady, 100*time.Millisecond), 0, 2 * time.Minute},
		"one late report changes little": {append(steady, 10*time.Minute), 0, 3 * time.Minute},
	} {
		c, now := reports(test.gaps...)
		if got := c.RetryAfter(now.Add(test.away)); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	overtaken, now := reports(steady...)
	if again := overtaken.Reported(now.Add(-time.Minute)); again.Gap != overtaken.Gap || again.LastSeen != overtaken.LastSeen {
		t.Errorf("a report that was overtaken changes the contact: %+v", again)
	}
}

// [PRE-1]
func TestAUnitWhoseClockWentBackBetweenTwoConnectionsBeginsANewSession(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "before", now), now, false)
	c, _ = c.Apply(said(Offline, "before", time.Time{}), now.Add(second), false)
	began := now.Add(10 * second)
	online := said(Online, "after", now.Add(-minute)) // within the five minutes of [PRE-1]
	online.Actions, online.Firmware = []Action{Lock}, "4.2.2"
	c, counted := c.Apply(online, began, false)
	if !counted || c.Session != "after" || !reflect.DeepEqual(c.Actions, []Action{Lock}) || c.Firmware != "4.2.2" {
		t.Fatalf("the session did not begin: counted %t, %+v", counted, c)
	}
	c, counted = c.Apply(said(Standby, "after", now.Add(-minute+second)), began.Add(second), false)
	if !counted || c.Status != Standby {
		t.Errorf("its standby did not count: %+v", c)
	}
	dead := began.Add(2 * second)
	c, counted = c.Apply(said(Offline, "after", time.Time{}), dead, false)
	if !counted || c.At(dead) != Offline || !c.Unreachable(dead.Add(UnreachableAfter+second)) {
		t.Errorf("its last will counted %t, the unit reads %s, away %t", counted, c.At(dead), c.Unreachable(dead.Add(UnreachableAfter+second)))
	}
}

// [PRE-1] An instance that was frozen hands in what others have handed in long before.
func TestPresenceOfAFormerSessionNeverCounts(t *testing.T) {
	sessions := []string{"one", "two", "three", "four", "five"}
	c := Contact{}
	for i, session := range sessions {
		// The clock goes back.
		c, _ = c.Apply(said(Online, session, now.Add(-time.Duration(i)*second)), now, false)
	}
	for _, session := range sessions[:len(sessions)-1] {
		for _, status := range []PresenceStatus{Online, Standby, Offline} {
			for _, retained := range []bool{false, true} {
				after, counted := c.Apply(said(status, session, now.Add(second)), now.Add(minute), retained)
				if counted || !reflect.DeepEqual(after, c) {
					t.Errorf("%s of %s, retained %t, counted: %+v", status, session, retained, after)
				}
			}
		}
	}
	if c.Session != "five" || len(c.Former) != formerSessions {
		t.Errorf("the contact is %+v", c)
	}
}

// [PRE-1] What the MQTT broker retains proves no order.
func TestARetainedOnlineOfAnUnknownSessionMustNotBeOlderThanTheCurrentOne(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	if after, counted := c.Apply(said(Online, "b", now.Add(-second)), now.Add(second), true); counted {
		t.Errorf("it counted: %+v", after)
	}
	if after, counted := c.Apply(said(Standby, "b", now.Add(-second)), now.Add(second), false); counted {
		t.Errorf("an older standby of a session that never began counted: %+v", after)
	}
}

func TestSessionsOfOneContactDoNotChangeThoseOfAnother(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	c, _ = c.Apply(said(Online, "b", now), now, false)
	one, _ := c.Apply(said(Online, "c", now), now, false)
	other, _ := c.Apply(said(Online, "d", now), now, false)
	if !reflect.DeepEqual(one.Former, []string{"b", "a"}) || !reflect.DeepEqual(other.Former, []string{"b", "a"}) {
		t.Errorf("former sessions %v and %v", one.Former, other.Former)
	}
}
