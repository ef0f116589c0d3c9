package telematics

import "time"

// Address is what a geocoder said of a position. It belongs to the place, not to a
// vehicle: whichever stands there next has it too.
type Address struct {
	ID       int64 // grows with each that is kept
	Position Position
	Text     string // empty: there is none
	AskedAt  time.Time
}

// Parked is where a vehicle stands.
type Parked struct {
	Agency   AgencyID
	Position Position
	Off      bool // its ignition is known to be off: it stays
}
