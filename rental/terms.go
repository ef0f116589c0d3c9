package rental

import "time"

// Terms are an agency's rules for bookings.
type Terms struct {
	Currency     Currency
	Tax          TaxRate
	CancelCutoff time.Duration // before the start, from which on a booking cannot be cancelled
	Buffer       time.Duration // between two bookings of a vehicle, that an extension must leave
	UnlockGrace  time.Duration // after the end, in which the client can still unlock the vehicle
	FeeLimit     Minor         // the highest single fee; zero: see Dossier.FeeLimit
}

// DefaultUnlockGrace is that of an agency whose fleet file names none: a client who is late can still drive the car back.
const DefaultUnlockGrace = time.Hour

// Rate is what a vehicle costs. A vehicle without a rate cannot be booked.
type Rate struct {
	Hourly  Minor
	Deposit Minor
}
