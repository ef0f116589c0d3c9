package ingest

import (
	"slices"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// noteUnknown adds the observations of units that no vehicle has, and returns how many there are. A
// retained presence or a last will is counted, but not added: it comes from the MQTT broker, not
// from the unit.
func (in *Ingest) noteUnknown(unknown []telematics.Unit, observations []delivery.Observation) int {
	n := 0
	for _, o := range observations {
		if !slices.Contains(unknown, o.Unit) {
			continue
		}
		n++
		if !o.Retained && (o.Presence == nil || o.Presence.Status != telematics.Offline) {
			in.unknownUnits.add(o.Unit, telematics.UnknownUnit{Unit: o.Unit, FirstSeen: o.At, LastSeen: o.At, Messages: 1})
		}
	}
	return n
}
