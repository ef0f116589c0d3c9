package audit

import "motorpool/telematics"

// PresenceOf is what the MQTT broker retains of a unit, and what is recorded, each as a text of
// status, session, keys and capabilities.
type PresenceOf struct {
	Unit               telematics.Unit
	Retained, Recorded string
}

// presenceIsRecorded checks that after all faults the record has what the broker retains: the
// latest message of each unit. Nothing is exempt.
func presenceIsRecorded(chk *checker) {
	for _, p := range chk.Presence {
		chk.must(p.Retained == p.Recorded, subject{}, "the broker retains of unit %s: %s; recorded is: %s", p.Unit, p.Retained, p.Recorded)
	}
}
