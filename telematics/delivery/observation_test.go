package delivery

import (
	"slices"
	"testing"
	"time"

	"motorpool/telematics"
)

var at = time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)

func TestAnObservationIsASignOfLifeUnlessItIsTheMQTTBrokersMemory(t *testing.T) {
	heard := Observation{Unit: "u", At: at, Report: &telematics.Report{At: at}}.Contact(telematics.Contact{})
	if !heard.LastSeen.Equal(at) {
		t.Errorf("a report: %+v", heard)
	}
	online := telematics.Presence{Status: telematics.Online, Session: "a", At: at.Add(-time.Minute)}
	if c := (Observation{At: at, Presence: &online}).Contact(telematics.Contact{}); !c.LastSeen.Equal(at) || c.Status != telematics.Online {
		t.Errorf("a presence: %+v", c)
	}
	if c := (Observation{At: at, Presence: &online, Retained: true}).Contact(telematics.Contact{}); !c.LastSeen.Equal(at.Add(-time.Minute)) {
		t.Errorf("a retained presence: %+v", c)
	}
}

func TestPresenceThatDoesNotCountIsCounted(t *testing.T) {
	var seen Seen
	var contact telematics.Contact
	for _, p := range []telematics.Presence{
		// Nothing is recorded of the unit: it counts.
		{Status: telematics.Offline, Session: "z"},
		{Status: telematics.Online, Session: "a", At: at},
		{Status: telematics.Offline, Session: "z"}, // a ghost
		{Status: telematics.Online, Session: "b", At: at.Add(time.Second)},
		{Status: telematics.Standby, Session: "a", At: at}, // overtaken
		{Status: telematics.Offline, Session: "a"},         // a ghost
		{Status: telematics.Offline, Session: "b"},
	} {
		o := Observation{Unit: "u", At: at.Add(2 * time.Second), Presence: &p}
		seen.CountPresence(contact, o)
		contact = o.Contact(contact)
	}
	seen.CountPresence(contact, Observation{Unit: "u", At: at})
	if seen.Ghosts != 2 || seen.Overtaken != 1 || contact.Status != telematics.Offline {
		t.Errorf("%d ghosts, %d overtaken, contact %+v", seen.Ghosts, seen.Overtaken, contact)
	}
	// With the sessions a and b.
	if want := []telematics.Unit{"u", "u"}; !slices.Equal(seen.Reconnected, want) {
		t.Errorf("reconnected %v, want %v", seen.Reconnected, want)
	}
}

func TestCountPresence_AReconnectIsAnotherSessionOrTheEndOfOffline(t *testing.T) {
	say := func(status telematics.PresenceStatus, session string) telematics.Presence {
		return telematics.Presence{Status: status, Session: session}
	}
	for name, c := range map[string]struct {
		said []telematics.Presence
		want int
	}{
		"the first connection":                 {[]telematics.Presence{say(telematics.Online, "a")}, 0},
		"awake, in the same connection":        {[]telematics.Presence{say(telematics.Online, "a"), say(telematics.Standby, "a"), say(telematics.Online, "a")}, 0},
		"offline, and not back":                {[]telematics.Presence{say(telematics.Online, "a"), say(telematics.Offline, "a")}, 0},
		"back, after the last will":            {[]telematics.Presence{say(telematics.Online, "a"), say(telematics.Offline, "a"), say(telematics.Online, "b")}, 1},
		"back, before the last will":           {[]telematics.Presence{say(telematics.Online, "a"), say(telematics.Online, "b"), say(telematics.Offline, "a")}, 1},
		"back, in a protocol without sessions": {[]telematics.Presence{say(telematics.Online, ""), say(telematics.Offline, ""), say(telematics.Online, ""), say(telematics.Online, "")}, 1},
	} {
		var seen Seen
		var contact telematics.Contact
		for _, p := range c.said {
			o := Observation{Unit: "u", At: at, Presence: &p}
			seen.CountPresence(contact, o)
			contact = o.Contact(contact)
		}
		if len(seen.Reconnected) != c.want {
			t.Errorf("%s: %d reconnects, want %d", name, len(seen.Reconnected), c.want)
		}
	}
}
