package delivery

import (
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
		seen.CountRefusal(contact, o)
		contact = o.Contact(contact)
	}
	seen.CountRefusal(contact, Observation{Unit: "u", At: at})
	if seen.Ghosts != 2 || seen.Overtaken != 1 || contact.Status != telematics.Offline {
		t.Errorf("%d ghosts, %d overtaken, contact %+v", seen.Ghosts, seen.Overtaken, contact)
	}
}
