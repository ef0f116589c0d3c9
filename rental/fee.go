package rental

import (
	"time"
)

// Fee is what an administrator adds to what a booking costs.
type Fee struct {
	Kind   string
	Amount Minor
	Reason string
}

// Fine charges a fee of a booking that is not upcoming: one that was cancelled may cost a fee, too.
func (d Dossier) Fine(now time.Time, f Fee) (Change, error) {
	if f.Amount <= 0 {
		return Change{}, wrong("amount", "must be more than 0")
	}
	if d.State == Upcoming {
		return Change{}, Forbids(BookingStateConflict, "The booking has not started; there is nothing to charge a fee for.")
	}
	c := d.charge(FeeCharge, f.Amount, now)
	c.Fee, c.Reason = f.Kind, f.Reason
	return Change{Booking: d.Booking, Charges: []Charge{c}, Note: f.Reason,
		Details: map[string]any{"kind": f.Kind, "amount": d.Price.Currency.Format(f.Amount), "currency": string(d.Price.Currency)}}, nil
}
