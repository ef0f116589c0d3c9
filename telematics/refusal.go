package telematics

import "time"

// refusal is why a presence message does not count [PRE-1].
type refusal string

const (
	ghost     refusal = "ghost"     // the last will of an older connection
	overtaken refusal = "overtaken" // said before what is known
)

// refuses says why a presence message, said at an instant, does not count; empty: it does.
func (c Contact) refuses(p Presence, said time.Time) refusal {
	switch current := c.Status != ""; {
	case p.Status == Offline && current && p.Session != c.Session:
		return ghost
	case p.Status != Offline && current && said.Before(c.SaidAt):
		return overtaken
	}
	return ""
}

// Weigh counts an observation of a contact that will not count.
func (s *Seen) Weigh(c Contact, o Observation) {
	if o.Presence == nil {
		return
	}
	switch c.refuses(*o.Presence, c.saidAt(*o.Presence, o.At, o.Retained)) {
	case ghost:
		s.Ghosts++
	case overtaken:
		s.Overtaken++
	}
}
