package rental

import "time"

// Terms are an agency's rules for bookings.
type Terms struct {
	Currency     Currency
	Tax          TaxRate
	CancelCutoff time.Duration // before the start, from which on a booking cannot be cancelled
	Buffer       time.Duration // between two bookings of a vehicle, that an extension must leave
}

// Rate is what a vehicle costs. A vehicle without a rate cannot be booked.
type Rate struct {
	Hourly  Minor
	Deposit Minor
}
