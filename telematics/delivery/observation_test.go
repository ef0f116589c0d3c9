package delivery

import (
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
)

var at = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)

func TestObservation_RetainedPresenceIsNoSignOfLife(t *testing.T) {
	heard := Observation{Unit: "u", At: at, Report: &telematics.Report{At: at}}.Contact(telematics.Contact{})
	if !heard.LastSeen.Equal(at) {
		t.Errorf("contact after a report: %+v", heard)
	}
	online := telematics.Presence{Status: telematics.Online, Session: "a", At: at.Add(-time.Minute)}
	if c := (Observation{At: at, Presence: &online}).Contact(telematics.Contact{}); !c.LastSeen.Equal(at) || c.Status != telematics.Online {
		t.Errorf("contact after a presence: %+v", c)
	}
	if c := (Observation{
		At: at, Presence: &online, Retained: true,
	}).Contact(telematics.Contact{}); !c.LastSeen.Equal(at.Add(-time.Minute)) {
		t.Errorf("contact after a retained presence: %+v", c)
	}
}

func TestCountPresence_CountsGhostsAndOvertakenPresence(t *testing.T) {
	var seen Seen
	var contact telematics.Contact
	for _, p := range []telematics.Presence{
		// No presence of the unit is recorded, so it counts.
		{Status: telematics.Offline, Session: "z"},
		{Status: telematics.Online, Session: "a", At: at},
		{Status: telematics.Offline, Session: "z"}, // of an unknown session: a ghost
		{Status: telematics.Online, Session: "b", At: at.Add(time.Second)},
		// Older than the recorded one: overtaken.
		{Status: telematics.Standby, Session: "a", At: at},
		{Status: telematics.Offline, Session: "a"}, // of a former session: a ghost
		{Status: telematics.Offline, Session: "b"},
	} {
		o := Observation{Unit: "u", At: at.Add(2 * time.Second), Presence: &p}
		seen.CountPresence(contact, o)
		contact = o.Contact(contact)
	}
	seen.CountPresence(contact, Observation{Unit: "u", At: at})
	if seen.Ghosts != 2 || seen.Overtaken != 1 || contact.Status != telematics.Offline {
		t.Errorf("%d ghosts, %d overtaken, contact %+v; want 2, 1 and offline", seen.Ghosts, seen.Overtaken, contact)
	}
	// For the sessions a and b.
	assert.EqualSlices(t, seen.Reconnected, []telematics.Unit{"u", "u"}, "reconnected")
}

func TestCountPresence_ReconnectIsAnotherSessionOrTheEndOfOffline(t *testing.T) {
	say := func(status telematics.PresenceStatus, session string) telematics.Presence {
		return telematics.Presence{Status: status, Session: session}
	}
	for name, c := range map[string]struct {
		said []telematics.Presence
		want int
	}{
		"the first connection": {[]telematics.Presence{say(telematics.Online, "a")}, 0},
		"standby and online in one session": {
			[]telematics.Presence{say(telematics.Online, "a"), say(telematics.Standby, "a"), say(telematics.Online, "a")}, 0,
		},
		"offline, and not reconnected": {[]telematics.Presence{say(telematics.Online, "a"), say(telematics.Offline, "a")}, 0},
		"reconnected after the last will": {
			[]telematics.Presence{say(telematics.Online, "a"), say(telematics.Offline, "a"), say(telematics.Online, "b")}, 1,
		},
		"reconnected before the last will": {
			[]telematics.Presence{say(telematics.Online, "a"), say(telematics.Online, "b"), say(telematics.Offline, "a")}, 1,
		},
		"reconnected in a protocol without sessions": {[]telematics.Presence{
			say(telematics.Online, ""), say(telematics.Offline, ""), say(telematics.Online, ""), say(telematics.Online, ""),
		}, 1},
	} {
		var seen Seen
		var contact telematics.Contact
		for _, p := range c.said {
			o := Observation{Unit: "u", At: at, Presence: &p}
			seen.CountPresence(contact, o)
			contact = o.Contact(contact)
		}
		assert.Equal(t, len(seen.Reconnected), c.want, "%s: reconnects", name)
	}
}
