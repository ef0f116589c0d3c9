package telematics

import "time"

// Halt stops all commands of an agency, or of all agencies, before they are published.
type Halt struct {
	Agency AgencyID // zero: of all agencies
	Why    string
	By     string
	Since  time.Time
}

// Halts are the halts in force.
type Halts []Halt

// Stops returns the halt that stops an agency's commands, if there is one.
func (hs Halts) Stops(agency AgencyID) (Halt, bool) {
	for _, h := range hs {
		if h.Agency == 0 || h.Agency == agency {
			return h, true
		}
	}
	return Halt{}, false
}
