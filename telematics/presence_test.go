package telematics

import (
	"reflect"
	"testing"
	"time"

	"motorpool/internal/assert"
)

const second, minute = time.Second, time.Minute // abbreviations for the tables

// said is a presence message of a session.
func said(status PresenceStatus, session string, at time.Time) Presence {
	return Presence{Status: status, Session: session, At: at}
}

// [PRE-1]
func TestApply_LastWillOfAnOlderSessionIsIgnored(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	c, _ = c.Apply(said(Online, "b", now.Add(second)), now.Add(second), false)
	after, counted := c.Apply(said(Offline, "a", time.Time{}), now.Add(2*second), false)
	if counted || !reflect.DeepEqual(after, c) {
		t.Errorf("a last will of an older session was applied: %+v", after)
	}
	after, counted = c.Apply(said(Offline, "b", time.Time{}), now.Add(3*second), false)
	if !counted || after.At(now.Add(3*second)) != Offline {
		t.Errorf("the last will of the present session was not applied: %+v", after)
	}
}

// [PRE-1]
func TestApply_OlderPresenceIsIgnored(t *testing.T) {
	for _, status := range []PresenceStatus{Online, Standby} {
		c, _ := Contact{}.Apply(said(Online, "b", now), now, false)
		after, counted := c.Apply(said(status, "b", now.Add(-time.Millisecond)), now.Add(second), false)
		if counted || !reflect.DeepEqual(after, c) {
			t.Errorf("an older %s was applied: %+v", status, after)
		}
		after, counted = c.Apply(said(status, "b", now), now.Add(second), false)
		if !counted || after.Status != status {
			t.Errorf("a %s of the same time was not applied: %+v", status, after)
		}
	}
}

func TestApply_LastWillKeepsTheTimeOfThePresenceBeforeIt(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	c, _ = c.Apply(said(Offline, "a", time.Time{}), now.Add(minute), false)
	if _, counted := c.Apply(said(Online, "b", now.Add(-second)), now.Add(minute+second), true); counted {
		t.Error("an older retained online was applied after the last will")
	}
	c, counted := c.Apply(said(Online, "b", now.Add(minute)), now.Add(minute+second), false)
	if !counted || c.At(now.Add(minute+second)) != Online {
		t.Errorf("a new session was not applied: %+v", c)
	}
}

func TestContact_FirstPresenceCounts(t *testing.T) {
	for _, status := range []PresenceStatus{Online, Standby, Offline} {
		c, counted := Contact{}.Apply(said(status, "a", now), now, false)
		if !counted || c.At(now) != status {
			t.Errorf("%s: applied %t, connectivity %s", status, counted, c.At(now))
		}
	}
}

// [PRE-3]
func TestApply_CapabilitiesAndFirmwareAreReplacedOnlyIfGiven(t *testing.T) {
	p := said(Online, "a", now)
	p.Actions, p.Firmware = []Action{Lock}, "4.2.1"
	c, _ := Contact{}.Apply(p, now, false)
	c, _ = c.Apply(said(Standby, "a", now.Add(second)), now.Add(second), false)
	if !reflect.DeepEqual(c.Actions, []Action{Lock}) || c.Firmware != "4.2.1" {
		t.Errorf("removed by a presence without them: %+v", c)
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
		t.Errorf("an empty list was not applied: %+v", c)
	}
}

// [PRE-4]
func TestApply_KeysAreReplacedOnlyIfGiven(t *testing.T) {
	p := said(Online, "a", now)
	p.Keys = []string{"k1", "k2"}
	c, _ := Contact{}.Apply(p, now, false)
	c, _ = c.Apply(said(Standby, "a", now.Add(second)), now.Add(second), false)
	if !reflect.DeepEqual(c.Keys, p.Keys) {
		t.Errorf("removed by a presence without them: %+v", c)
	}
	ghost := said(Standby, "older", now.Add(-minute))
	ghost.Keys = []string{"k0"}
	if c, counted := c.Apply(ghost, now, true); counted || !reflect.DeepEqual(c.Keys, p.Keys) {
		t.Errorf("taken from a presence that is not applied: %+v", c)
	}
	p = said(Online, "a", now.Add(2*second))
	p.Keys = []string{}
	if c, _ = c.Apply(p, now.Add(2*second), false); c.Keys == nil || len(c.Keys) != 0 {
		t.Errorf("an empty list was not applied: %+v", c)
	}
}

// [PRE-2]
func TestContact_OnlineIsUnknownTenMinutesAfterTheLastMessage(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	for after, want := range map[time.Duration]PresenceStatus{
		0: Online, 10 * minute: Online, 10*minute + 1: Absent, 24 * time.Hour: Absent,
	} {
		assert.Equal(t, c.At(now.Add(after)), want, "after %v", after)
	}
	c = c.Heard(now.Add(9 * minute))
	assert.Equal(t, c.At(now.Add(19*minute)), Online, "seen 10 minutes ago")
}

func TestContact_StandbyAndOfflineDoNotExpire(t *testing.T) {
	for _, status := range []PresenceStatus{Standby, Offline} {
		c, _ := Contact{}.Apply(said(status, "a", now), now, false)
		assert.Equal(t, c.At(now.Add(24*time.Hour)), status, "%s, after a day", status)
	}
}

func TestContact_UnitWithReportsButNoPresenceIsOnline(t *testing.T) {
	var c Contact
	assert.Equal(t, c.At(now), Absent, "never seen")
	c = c.Heard(now)
	if c.At(now.Add(minute)) != Online || c.At(now.Add(11*minute)) != Absent {
		t.Errorf("seen a minute ago: %s, 11 minutes ago: %s; want online, absent", c.At(now.Add(minute)), c.At(now.Add(11*minute)))
	}
}

func TestContact_LastSeenNeverGoesBack(t *testing.T) {
	c := Contact{}.Heard(now).Heard(now.Add(-minute))
	if !c.LastSeen.Equal(now) {
		t.Error("last seen", c.LastSeen, "want it unchanged by an older message")
	}
}

func TestContact_UnitSeenAfterItsLastWillIsOnline(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	c, _ = c.Apply(said(Offline, "a", time.Time{}), now.Add(minute), false)
	if !c.LastSeen.Equal(now) {
		t.Errorf("the last will, which the MQTT broker sends, counted as a sign of life: %v", c.LastSeen)
	}
	c = c.Heard(now.Add(2 * minute))
	if c.At(now.Add(2*minute)) != Online || c.At(now.Add(13*minute)) != Absent {
		t.Errorf("seen after its last will: %s, later %s; want online, absent", c.At(now.Add(2*minute)), c.At(now.Add(13*minute)))
	}
}

func TestApply_RetainedOnlineIsDatedByTheUnit(t *testing.T) {
	c, counted := Contact{}.Apply(said(Online, "a", now.Add(-time.Hour)), now, true)
	if !counted || !c.LastSeen.Equal(now.Add(-time.Hour)) || c.At(now) != Absent {
		t.Errorf("applied %t, last seen %v, connectivity %s", counted, c.LastSeen, c.At(now))
	}
	// Dated by a clock that is ahead.
	c, _ = c.Apply(said(Online, "b", now.Add(3*minute)), now, true)
	if !c.LastSeen.Equal(now) {
		t.Errorf("last seen in the future: %v", c.LastSeen)
	}
}

func TestApply_RetainedLastWillIsNoSignOfLife(t *testing.T) {
	for name, at := range map[string]time.Time{
		"without a time":           {},
		"of an hour ago":           now.Add(-time.Hour),
		"by a clock that is ahead": now.Add(4 * minute),
	} {
		c, _ := Contact{}.Apply(said(Offline, "a", at), now, true)
		for range 3 { // the MQTT broker delivers it for each subscription
			c, _ = c.Apply(said(Offline, "a", at), now.Add(10*minute), true)
			if got := c.At(now.Add(10 * minute)); got != Offline {
				t.Errorf("%s: connectivity %s, last seen %v; want offline", name, got, c.LastSeen)
			}
			if !c.Unreachable(now.Add(10 * minute)) {
				t.Errorf("%s: reachable, last seen %v", name, c.LastSeen)
			}
		}
	}
}

func TestApply_DatedLastWillSetsLastSeen(t *testing.T) {
	for _, retained := range []bool{false, true} {
		c, _ := Contact{}.Apply(said(Offline, "a", now.Add(-time.Hour)), now, retained)
		if !c.LastSeen.Equal(now.Add(-time.Hour)) || c.At(now) != Offline || !c.Unreachable(now) {
			t.Errorf("retained %t: last seen %v, connectivity %s", retained, c.LastSeen, c.At(now))
		}
	}
}

func TestApply_RepeatedLastWillDoesNotOverrideALaterMessage(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	c, _ = c.Apply(said(Offline, "a", time.Time{}), now.Add(second), false)
	c = c.Heard(now.Add(minute))
	c, _ = c.Apply(said(Offline, "a", time.Time{}), now.Add(2*minute), true)
	if got := c.At(now.Add(2 * minute)); got != Online {
		t.Error("connectivity", got, "want online")
	}
}

func TestContact_UnreachableAMinuteAfterStandbyOrOffline(t *testing.T) {
	cases := []struct {
		status PresenceStatus
		silent time.Duration
		away   bool
	}{
		{Standby, minute, false}, {Standby, minute + 1, true},
		{Offline, minute, false}, {Offline, minute + 1, true},
		{Online, minute + 1, false}, {Online, time.Hour, false}, // unknown: commands are sent
	}
	for _, c := range cases {
		contact := Contact{Status: c.status, LastSeen: now, ChangedAt: now}
		assert.Equal(t, contact.Unreachable(now.Add(c.silent)), c.away, "%s, silent for %v: unreachable", c.status, c.silent)
	}
	if (Contact{}).Unreachable(now) {
		t.Error("a unit that was never seen is unreachable, want commands sent to it")
	}
}

func TestSignalQuality_FollowsTheReferencePower(t *testing.T) {
	for rsrp, want := range map[float64]string{
		-31: "strong", -95: "strong", -95.1: "moderate", -105: "moderate", -105.1: "weak", -115: "weak", -115.1: "none", -156: "none",
	} {
		if got := SignalQuality(&rsrp); got == nil || *got != want {
			t.Errorf("%v dBm: %v, want %s", rsrp, got, want)
		}
	}
	if got := SignalQuality(nil); got != nil {
		t.Errorf("without a value: %s, want none", *got)
	}
}

func TestApply_WrongClockDoesNotHidePresence(t *testing.T) {
	for name, wrong := range map[string]time.Duration{
		"two minutes ahead": 2 * time.Minute, "an hour behind": -time.Hour, "years behind": -5 * 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			arrived := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
			c := Contact{}
			for i, p := range []Presence{
				{Status: Online, Session: "before", At: arrived.Add(wrong)},
				// The clock was set between the two sessions.
				{Status: Online, Session: "after", At: arrived.Add(time.Second)},
				{Status: Online, Session: "again", At: arrived.Add(2*time.Second + wrong)},
				{Status: Offline, Session: "again"},
			} {
				var counted bool
				if c, counted = c.Apply(p, arrived.Add(time.Duration(i)*time.Second), false); !counted {
					t.Errorf("presence %d (%s, %s) was not applied", i, p.Status, p.Session)
				}
			}
			assert.Equal(t, c.At(arrived.Add(4*time.Second)), Offline, "after its last will the unit")
		})
	}
}

func TestApply_RetainedPresenceWithoutATimeIsNoSignOfLife(t *testing.T) {
	seen := now.Add(-time.Hour)
	for name, before := range map[string]Contact{
		"never seen":  {},
		"seen before": {Status: Online, Session: "a", SaidAt: seen, ChangedAt: seen, LastSeen: seen},
	} {
		after, counted := before.Apply(said(Online, "b", time.Time{}), now, true)
		if !counted || !after.LastSeen.Equal(before.LastSeen) || after.At(now) != Absent {
			t.Errorf("%s: %+v, connectivity %s; want the last time seen unchanged", name, after, after.At(now))
		}
	}
}

func TestRetryAfter_FollowsTheUnitsReportInterval(t *testing.T) {
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
		"no interval known":              {nil, 5 * time.Minute, 30 * time.Second},
		"due in a minute":                {steady, time.Minute, time.Minute},
		"one report missed":              {steady, 150 * time.Second, 90 * time.Second},
		"due now":                        {steady, 119 * time.Second, 5 * time.Second},
		"rare reports":                   {[]time.Duration{40 * time.Minute}, 2 * time.Minute, 10 * time.Minute},
		"a burst does not count":         {append(steady, 100*time.Millisecond), 0, 2 * time.Minute},
		"one late report changes little": {append(steady, 10*time.Minute), 0, 3 * time.Minute},
	} {
		c, now := reports(test.gaps...)
		assert.Equal(t, c.RetryAfter(now.Add(test.away)), test.want, "%s", name)
	}
	overtaken, now := reports(steady...)
	if again := overtaken.Reported(now.Add(-time.Minute)); again.Gap != overtaken.Gap || again.LastSeen != overtaken.LastSeen {
		t.Errorf("an older report changed the contact: %+v", again)
	}
}

// [PRE-1]
func TestApply_ClockSetBackBetweenSessionsBeginsANewOne(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "before", now), now, false)
	c, _ = c.Apply(said(Offline, "before", time.Time{}), now.Add(second), false)
	began := now.Add(10 * second)
	online := said(Online, "after", now.Add(-minute)) // within the five minutes of [PRE-1]
	online.After = PresenceMark{"before", now}
	online.Actions, online.Firmware = []Action{Lock}, "4.2.2"
	c, counted := c.Apply(online, began, false)
	if !counted || c.Session != "after" || !reflect.DeepEqual(c.Actions, []Action{Lock}) || c.Firmware != "4.2.2" {
		t.Fatalf("the new session was not applied: %t, %+v", counted, c)
	}
	c, counted = c.Apply(said(Standby, "after", now.Add(-minute+second)), began.Add(second), false)
	if !counted || c.Status != Standby {
		t.Errorf("its standby was not applied: %+v", c)
	}
	dead := began.Add(2 * second)
	c, counted = c.Apply(said(Offline, "after", time.Time{}), dead, false)
	if !counted || c.At(dead) != Offline || !c.Unreachable(dead.Add(UnreachableAfter+second)) {
		t.Errorf(
			"its last will applied %t, connectivity %s, unreachable %t", counted, c.At(dead),
			c.Unreachable(dead.Add(UnreachableAfter+second)),
		)
	}
}

// [PRE-1] An instance that was frozen delivers messages that others delivered long before.
func TestApply_FormerSessionIsIgnored(t *testing.T) {
	sessions := []string{"one", "two", "three", "four", "five"}
	c := Contact{}
	for i, session := range sessions {
		// The clock goes back with each session.
		p := said(Online, session, now.Add(-time.Duration(i)*second))
		p.After = PresenceMark{c.Session, c.SaidAt}
		c, _ = c.Apply(p, now, false)
	}
	for _, session := range sessions[:len(sessions)-1] {
		for _, status := range []PresenceStatus{Online, Standby, Offline} {
			for _, retained := range []bool{false, true} {
				after, counted := c.Apply(said(status, session, now.Add(second)), now.Add(minute), retained)
				if counted || !reflect.DeepEqual(after, c) {
					t.Errorf("%s of session %s, retained %t, was applied: %+v", status, session, retained, after)
				}
			}
		}
	}
	if c.Session != "five" || len(c.Former) != formerSessions {
		t.Errorf("contact %+v, want session five and the maximum of former ones", c)
	}
}

// [PRE-1] Retained messages do not show an order.
func TestApply_OlderRetainedOnlineOfAnUnknownSessionIsIgnored(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	if after, counted := c.Apply(said(Online, "b", now.Add(-second)), now.Add(second), true); counted {
		t.Errorf("an older retained online of an unknown session was applied: %+v", after)
	}
	if after, counted := c.Apply(said(Standby, "b", now.Add(-second)), now.Add(second), false); counted {
		t.Errorf("an older standby of an unknown session was applied: %+v", after)
	}
}

func TestApply_CopiesOfAContactShareNoFormerSessions(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	c, _ = c.Apply(said(Online, "b", now), now, false)
	one, _ := c.Apply(said(Online, "c", now), now, false)
	other, _ := c.Apply(said(Online, "d", now), now, false)
	if !reflect.DeepEqual(one.Former, []string{"b", "a"}) || !reflect.DeepEqual(other.Former, []string{"b", "a"}) {
		t.Errorf("former sessions %v and %v, want b and a for both", one.Former, other.Former)
	}
}

// [PRE-1] An instance lags behind another one, and stores what the unit sent before.
func TestApply_PresenceOfThePastDoesNotEndTheLiveSession(t *testing.T) {
	live := said(Online, "live", now)
	live.Keys = []string{"k1"}
	c, _ := Contact{}.Apply(live, now, false)
	afterOlder := said(Online, "past", now.Add(-second))
	afterOlder.After = PresenceMark{"older", now.Add(-minute)}
	for name, late := range map[string]struct {
		Presence
		retained bool
	}{
		"the first that its instance received": {said(Online, "past", now.Add(-second)), false},
		"received after an older one":          {afterOlder, false},
		"of the same session":                  {said(Standby, "live", now.Add(-second)), false},
		"retained":                             {said(Online, "past", now.Add(-second)), true},
	} {
		after, counted := c.Apply(late.Presence, now.Add(second), late.retained)
		if counted || !reflect.DeepEqual(after, c) {
			t.Errorf("%s: applied %t: %+v", name, counted, after)
		}
	}
	more := said(Online, "live", now.Add(2*second))
	more.Keys = []string{"k1", "k2"}
	c, counted := c.Apply(more, now.Add(2*second), false)
	if !counted || !reflect.DeepEqual(c.Keys, more.Keys) {
		t.Errorf("new keys of the live session: applied %t, %+v", counted, c)
	}
	dead := now.Add(3 * second)
	if c, counted = c.Apply(said(Offline, "live", time.Time{}), dead, false); !counted || c.At(dead) != Offline {
		t.Errorf("the last will of the live session: applied %t, connectivity %s", counted, c.At(dead))
	}
}

// [PRE-1] The unit's clock went back between two sessions, so the older one seems to be newer. The
// instance that lags behind receives the newer one after the older one, all the same.
func TestApply_SessionIsLiveAgainWhereAnOlderOneWasStoredLate(t *testing.T) {
	first, second := said(Online, "first", now), said(Online, "second", now.Add(-minute))
	c, _ := Contact{}.Apply(second, now.Add(time.Second), false)
	c, counted := c.Apply(first, now.Add(2*time.Second), false)
	if !counted || c.Session != "first" {
		t.Fatalf("the older session, dated later, was not applied: %+v", c)
	}
	second.After = first.Mark(now.Add(2*time.Second), false)
	c, counted = c.Apply(second, now.Add(3*time.Second), false)
	if !counted || c.Session != "second" || !reflect.DeepEqual(c.Former, []string{"first"}) {
		t.Fatalf("the newer session was not applied: %+v", c)
	}
	if c, counted = c.Apply(said(Offline, "second", time.Time{}), now.Add(minute), false); !counted || c.At(now.Add(minute)) != Offline {
		t.Errorf("its last will: applied %t, connectivity %s", counted, c.At(now.Add(minute)))
	}
}

// [PRE-1] A clock that goes back within a session must not hide new keys.
func TestApply_ClockSetBackWithinASessionDoesNotHideNewKeys(t *testing.T) {
	online := said(Online, "a", now)
	c, _ := Contact{}.Apply(online, now, false)
	again := said(Online, "a", now.Add(-58*second))
	again.Keys, again.After = []string{"k2"}, online.Mark(now, false)
	c, counted := c.Apply(again, now.Add(second), false)
	if !counted || !reflect.DeepEqual(c.Keys, again.Keys) {
		t.Errorf("applied %t: %+v", counted, c)
	}
}

// An instance that lags behind stores a copy of the online after the last will.
func TestApply_CopyOfAnOnlineDoesNotUndoItsLastWill(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	c, _ = c.Apply(said(Offline, "a", time.Time{}), now.Add(second), false)
	for _, retained := range []bool{false, true} {
		if after, counted := c.Apply(said(Online, "a", now), now.Add(2*second), retained); counted ||
			after.At(now.Add(2*second)) != Offline {
			t.Errorf("retained %t: applied %t, connectivity %s", retained, counted, after.At(now.Add(2*second)))
		}
	}
}
