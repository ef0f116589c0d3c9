package delivery

import (
	"time"

	"motorpool/telematics"
)

// Observation is one message of a unit, before it changes contact and snapshot.
type Observation struct {
	Unit telematics.Unit
	// The protocol of the message; if the unit is recorded with another one, it is ignored.
	Protocol telematics.Protocol
	At       time.Time            // of arrival
	Report   *telematics.Report   // nil: none
	Presence *telematics.Presence // nil: none
	Retained bool                 // the MQTT broker had retained the presence
	// The vehicle of the command that this message answers; zero: an unsolicited report.
	Asked telematics.VehicleID
}

// Contact returns the contact c as it is after the observation.
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

// Seen is the result of applying observations.
type Seen struct {
	Unknown []telematics.Unit // units assigned to no vehicle, each once
	// Units that sent another protocol than is recorded for them, each once; ignored.
	Foreign []telematics.Unit
	// Units whose observations were not applied, because another transaction holds them, each
	// once: apply them later.
	Locked  []telematics.Unit
	Changes []telematics.Change // new to the whole installation, not only to this instance

	Ghosts    int // last wills of older connections, ignored [PRE-1]
	Overtaken int // other presence older than the recorded one, ignored [PRE-1]
	// Units that have lost their connection and connected again, once for each time.
	Reconnected []telematics.Unit
}

// CountPresence counts the presence of an observation, compared to the contact before it: as a
// ghost, as overtaken, or as a reconnection.
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
