package telematics

import "time"

// Observation is one sign of a unit: that it was heard, and what it said.
type Observation struct {
	Unit     Unit
	Protocol Protocol  // in which the unit spoke; another than its record's does not count
	At       time.Time // of arrival
	Report   *Report   // nil: none
	Presence *Presence // nil: none
	Retained bool      // the presence is the MQTT broker's memory
	Awaited  bool      // a caller waits until every instance sees it
	Missed   bool      // likewise, and has waited for Redis already
	Asked    VehicleID // that was asked something, which the unit answers; zero: it says so by itself
}

// Observe returns the contact after an observation.
func (c Contact) Observe(o Observation) Contact {
	if o.Presence != nil {
		after, _ := c.Apply(*o.Presence, o.At, o.Retained)
		return after
	}
	if o.Report != nil {
		return c.Reported(o.At)
	}
	return c.Heard(o.At)
}
