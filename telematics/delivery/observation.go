package delivery

import (
	"time"

	"motorpool/telematics"
)

// Observation is one sign of a unit: that it was heard, and what it said.
type Observation struct {
	Unit telematics.Unit
	// The protocol in which the unit spoke; another than its record's does not count.
	Protocol telematics.Protocol
	At       time.Time            // of arrival
	Report   *telematics.Report   // nil: none
	Presence *telematics.Presence // nil: none
	Retained bool                 // the presence is the MQTT broker's memory
	// The vehicle that got the command which this answers; zero: the unit reports unasked.
	Asked telematics.VehicleID
}

// Contact returns a contact after the observation.
func (o Observation) Contact(c telematics.Contact) telematics.Contact {
	if o.Presence != nil {
		after, _ := c.Apply(*o.Presence, o.At, o.Retained)
		return after
	}
	if o.Report != nil {
		return c.Reported(o.At)
	}
	return c.Heard(o.At)
}

// Seen is what observations have led to.
type Seen struct {
	Unknown []telematics.Unit // that belong to no vehicle, each once
	// Units that spoke another protocol than their record names, each once; it is ignored.
	Foreign []telematics.Unit
	Changes []telematics.Change // new to the whole installation, not only to this instance

	Ghosts    int // last wills of older connections, which did not count [PRE-1]
	Overtaken int // other presence that was older than what is known, and did not count [PRE-1]
	// Units that have lost their connection and have another one, once for each time.
	Reconnected []telematics.Unit
}

// CountPresence counts what the presence of an observation says of a contact: that it does not
// count, or that the unit has connected again.
func (s *Seen) CountPresence(c telematics.Contact, o Observation) {
	if o.Presence == nil {
		return
	}
	switch c.Refuses(*o.Presence, o.At, o.Retained) {
	case telematics.Ghost:
		s.Ghosts++
	case telematics.Overtaken:
		s.Overtaken++
	default:
		if c.Reconnects(*o.Presence) {
			s.Reconnected = append(s.Reconnected, o.Unit)
		}
	}
}
