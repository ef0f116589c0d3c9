package telematics

import (
	"slices"
	"time"
)

// Refusal is why a presence message does not count [PRE-1].
type Refusal string

const (
	Ghost     Refusal = "ghost"     // the last will of an older connection
	Overtaken Refusal = "overtaken" // older than what is recorded
)

// Refuses returns why a presence message does not count; empty: it does.
func (c Contact) Refuses(p Presence, received time.Time, retained bool) Refusal {
	return c.refuses(p, c.saidAt(p, received, retained), retained)
}

// refuses says why a presence message, said at an instant, does not count; empty: it does.
//
// A live online of an unknown session begins that session, whatever its time: the clock of the unit may have gone
// back since the connection before. The MQTT broker delivers one topic in order, so of two sessions the later one
// is heard last. Only an instance that lags behind another one hands in the older one later; the record recognises
// it as a former session. What the MQTT broker retains is no proof of order, and has to be as new as what is known.
func (c Contact) refuses(p Presence, said time.Time, retained bool) Refusal {
	known := p.Session == c.Session || slices.Contains(c.Former, p.Session)
	switch {
	case c.Status == "":
		return ""
	case p.Status == Offline && p.Session != c.Session:
		return Ghost
	case p.Status == Offline:
		return ""
	case known && p.Session != c.Session:
		return Overtaken
	case p.Status == Online && !retained && !known:
		return ""
	case said.Before(c.SaidAt):
		return Overtaken
	}
	return ""
}
