package telematics

import "time"

// Halt keeps all commands of an agency, or of everybody, from leaving.
type Halt struct {
	Agency AgencyID // zero: of everybody
	Why    string
	By     string
	Since  time.Time
}

// Halts are the halts in force.
type Halts []Halt

// Stops returns the halt that keeps an agency's commands from leaving, if there is one.
func (hs Halts) Stops(agency AgencyID) (Halt, bool) {
	for _, h := range hs {
		if h.Agency == 0 || h.Agency == agency {
			return h, true
		}
	}
	return Halt{}, false
}
