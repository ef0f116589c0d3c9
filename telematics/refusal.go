package telematics

import (
	"slices"
	"time"
)

// refusal is why a presence message does not count [PRE-1].
type refusal string

const (
	ghost     refusal = "ghost"     // the last will of an older connection
	overtaken refusal = "overtaken" // said before what is known
)

// refuses says why a presence message, said at an instant, does not count; empty: it does.
//
// A live online of an unknown session begins that session, whatever its time: the clock of the unit may have gone
// back since the connection before. The MQTT broker delivers one topic in order, so of two sessions the later one
// is heard last. Only an instance that lags behind another one hands in the older one later; the record recognises
// it as a former session. What the MQTT broker retains is no proof of order, and has to be as new as what is known.
func (c Contact) refuses(p Presence, said time.Time, retained bool) refusal {
	known := p.Session == c.Session || slices.Contains(c.Former, p.Session)
	switch {
	case c.Status == "":
		return ""
	case p.Status == Offline && p.Session != c.Session:
		return ghost
	case p.Status == Offline:
		return ""
	case known && p.Session != c.Session:
		return overtaken
	case p.Status == Online && !retained && !known:
		return ""
	case said.Before(c.SaidAt):
		return overtaken
	}
	return ""
}

// Weigh counts an observation of a contact that will not count.
func (s *Seen) Weigh(c Contact, o Observation) {
	if o.Presence == nil {
		return
	}
	switch c.refuses(*o.Presence, c.saidAt(*o.Presence, o.At, o.Retained), o.Retained) {
	case ghost:
		s.Ghosts++
	case overtaken:
		s.Overtaken++
	}
}
