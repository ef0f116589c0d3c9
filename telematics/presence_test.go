package telematics

import (
	"cmp"
	"reflect"
	"slices"
	"testing"
	"time"

	"motorpool/internal/assert"
)

// Abbreviations for the tables.
const (
	ms, second, minute = time.Millisecond, time.Second, time.Minute
	years              = 5 * 365 * 24 * time.Hour
)

// said is a presence message of a session.
func said(status PresenceStatus, session string, at time.Time) Presence {
	return Presence{Status: status, Session: session, At: at}
}

// arrival is a message of a unit, as the service receives it.
type arrival struct {
	status   PresenceStatus
	session  string
	at       time.Duration // by the unit's clock, after now; noTime: without a time
	after    PresenceMark  // of the one before it that its instance has received
	keys     []string      // nil: none given
	arrives  time.Duration // after now
	retained bool
	ignored  bool           // it changes nothing
	is       PresenceStatus // the connectivity then; empty: that of the message
}

// noTime is the time of a last will that the MQTT broker sends.
const noTime = time.Duration(1<<63 - 1)

func (a arrival) presence() Presence {
	p := Presence{Status: a.status, Session: a.session, Keys: a.keys, After: a.after}
	if a.at != noTime {
		p.At = now.Add(a.at)
	}
	return p
}

// arrive applies messages in turn.
func arrive(t *testing.T, c Contact, all ...arrival) Contact {
	t.Helper()
	for i, a := range all {
		then := now.Add(a.arrives)
		after, counted := c.Apply(a.presence(), then, a.retained)
		assert.Equal(t, counted, !a.ignored, "message %d is applied", i+1)
		if a.ignored {
			assert.DeepEqual(t, after, c, "contact after message %d, which is ignored", i+1)
			continue
		}
		assert.Equal(t, after.At(then), cmp.Or(a.is, a.status), "connectivity after message %d", i+1)
		assert.Equal(t, slices.Contains(after.Former, a.session), false, "message %d: the live session is a former one", i+1)
		if a.keys != nil {
			assert.DeepEqual(t, after.Keys, a.keys, "keys after message %d", i+1)
		}
		c = after
	}
	return c
}

// [PRE-1]
func TestApply_ByTheOrderInWhichAUnitSaidIt(t *testing.T) {
	will := func(session string, arrives time.Duration) arrival {
		return arrival{status: Offline, session: session, at: noTime, arrives: arrives}
	}
	online := func(session string, at, arrives time.Duration) arrival {
		return arrival{status: Online, session: session, at: at, arrives: arrives}
	}
	ignored := func(a arrival) arrival { a.ignored = true; return a }
	shown := func(a arrival, is PresenceStatus) arrival { a.is = is; return a }
	retained := func(a arrival) arrival { a.retained = true; return a }
	standby := func(a arrival) arrival { a.status = Standby; return a }
	keyed := func(a arrival, keys ...string) arrival { a.keys = keys; return a }
	after := func(a, before arrival) arrival {
		a.after = before.presence().Mark(now.Add(before.arrives), false)
		return a
	}
	live := keyed(online("live", 0, 0), "k1")
	first := online("first", 0, 2*second)
	past := online("past", -second, second) // what an instance that lags behind another one stores
	for name, all := range map[string][]arrival{
		"the last will of an older session is ignored": {
			online("a", 0, 0), online("b", second, second), ignored(will("a", 2*second)), will("b", 3*second),
		},
		"an older online is ignored":  {online("b", 0, 0), ignored(online("b", -ms, second)), online("b", 0, second)},
		"an older standby is ignored": {online("b", 0, 0), ignored(standby(online("b", -ms, second))), standby(online("b", 0, second))},
		"a last will keeps the time of the presence before it": {
			online("a", 0, 0), will("a", minute), ignored(retained(online("b", -second, minute+second))),
			online("b", minute, minute+second),
		},
		// The instance that stores them late is 100 ms behind.
		"a unit without times or sessions is back, though copies of its last will and its return are stored late": {
			online("", noTime, 0), will("", second), online("", noTime, 2*second),
			shown(will("", 900*ms), Online), after(online("", noTime, 1900*ms), online("", noTime, -100*ms)),
		},
		"retained messages show no order": {
			online("a", 0, 0), ignored(retained(online("b", -second, second))), ignored(standby(online("b", -second, second))),
		},
		"a copy of an online does not undo its last will": {
			online("a", 0, 0), will("a", second), ignored(online("a", 0, 2*second)), ignored(retained(online("a", 0, 2*second))),
		},
		"the past does not end the live session": {
			live, ignored(past), ignored(after(past, online("older", -minute, -minute))), ignored(standby(online("live", -second, second))),
			ignored(retained(past)), keyed(online("live", 2*second, 2*second), "k1", "k2"), will("live", 3*second),
		},
		// The older session seems to be newer. The instance that lags behind receives it first, all
		// the same.
		"a session is live again where an older one was stored late, and the clock went back between them": {
			online("second", -minute, second), first, after(online("second", -minute, 3*second), first), will("second", minute),
		},
		"a clock that goes back within a session hides no new keys": {
			online("a", 0, 0), keyed(after(online("a", -58*second, second), online("a", 0, 0)), "k2"),
		},
		"a clock that was two minutes ahead hides nothing": {
			online("before", 2*minute, 0), online("after", second, second), online("again", 2*second+2*minute, 2*second),
			will("again", 3*second),
		},
		"a clock that was an hour behind hides nothing": {
			online("before", -time.Hour, 0), online("after", second, second), online("again", 2*second-time.Hour, 2*second),
			will("again", 3*second),
		},
		"a clock that was years behind hides nothing": {
			online("before", -years, 0), online("after", second, second), online("again", 2*second-years, 2*second),
			will("again", 3*second),
		},
	} {
		t.Run(name, func(t *testing.T) { arrive(t, Contact{}, all...) })
	}
}

func TestApply_RepeatedLastWillDoesNotOverrideALaterMessage(t *testing.T) {
	c := arrive(t, Contact{}, arrival{status: Online, session: "a"}, arrival{status: Offline, session: "a", at: noTime, arrives: second})
	c, _ = c.Heard(now.Add(minute)).Apply(said(Offline, "a", time.Time{}), now.Add(2*minute), true)
	assert.Equal(t, c.At(now.Add(2*minute)), Online, "connectivity")
}

// [PRE-3] [PRE-4]
func TestApply_CapabilitiesFirmwareAndKeysAreReplacedOnlyIfGiven(t *testing.T) {
	p := said(Online, "a", now)
	p.Actions, p.Firmware, p.Keys = []Action{Lock}, "4.2.1", []string{"k1", "k2"}
	c, _ := Contact{}.Apply(p, now, false)
	kept := func(what string) {
		t.Helper()
		if !reflect.DeepEqual(c.Actions, []Action{Lock}) || c.Firmware != "4.2.1" || !reflect.DeepEqual(c.Keys, []string{"k1", "k2"}) {
			t.Errorf("%s: %+v", what, c)
		}
	}
	c, _ = c.Apply(said(Standby, "a", now.Add(second)), now.Add(second), false)
	kept("removed by a presence without them")
	ghost := said(Standby, "older", now.Add(-minute))
	ghost.Keys = []string{"k0"}
	c, counted := c.Apply(ghost, now, true)
	assert.Equal(t, counted, false, "a presence of an older session is applied")
	kept("taken from a presence that is not applied")
	p = said(Offline, "a", time.Time{})
	p.Actions, p.Firmware = []Action{}, "0"
	c, _ = c.Apply(p, now.Add(2*second), false)
	kept("taken from a last will")
	p = said(Online, "b", now.Add(minute))
	p.Actions, p.Keys = []Action{}, []string{}
	if c, _ = c.Apply(p, now.Add(minute), false); c.Actions == nil || len(c.Actions) != 0 || c.Keys == nil || len(c.Keys) != 0 {
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

func TestApply_CopiesOfAContactShareNoFormerSessions(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	c, _ = c.Apply(said(Online, "b", now), now, false)
	one, _ := c.Apply(said(Online, "c", now), now, false)
	other, _ := c.Apply(said(Online, "d", now), now, false)
	if !reflect.DeepEqual(one.Former, []string{"b", "a"}) || !reflect.DeepEqual(other.Former, []string{"b", "a"}) {
		t.Errorf("former sessions %v and %v, want b and a for both", one.Former, other.Former)
	}
}
