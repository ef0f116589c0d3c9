package rental

import (
	"fmt"
	"time"
)

// Fee is what an administrator adds to what a booking costs.
type Fee struct {
	Kind   string
	Amount Minor
	Reason string
}

// feeLimitHours is how many hours of the booking's own rate one fee may cost, on top of the deposit, where the agency sets no
// limit: 1,700 EUR at 15 EUR an hour and 200 EUR of deposit. It catches a misplaced decimal point in any currency.
const feeLimitHours = 100

// FeeLimit is the highest single fee.
func (d Dossier) FeeLimit() Minor {
	if d.Terms.FeeLimit > 0 {
		return d.Terms.FeeLimit
	}
	return feeLimitHours*d.Price.HourlyRate + d.Price.Deposit
}

// Fine charges a fee of a booking that is not upcoming: one that was cancelled may cost a fee, too.
func (d Dossier) Fine(now time.Time, f Fee) (Change, error) {
	if f.Amount <= 0 {
		return Change{}, wrong("amount", "must be more than 0")
	}
	if limit := d.FeeLimit(); f.Amount > limit {
		c := d.Price.Currency
		return Change{}, wrong("amount", fmt.Sprintf("must be at most %s %s, the agency's limit for one fee (fee_limit in its fleet file)", c.Format(limit), c))
	}
	if d.State == Upcoming {
		return Change{}, Forbids(BookingStateConflict, "The booking has not started; there is nothing to charge a fee for.")
	}
	c := d.charge(FeeCharge, f.Amount, now)
	c.Fee, c.Reason = f.Kind, f.Reason
	return Change{Booking: d.Booking, Charges: []Charge{c}, Note: f.Reason,
		Details: map[string]any{"kind": f.Kind, "amount": d.Price.Currency.Format(f.Amount), "currency": string(d.Price.Currency)}}, nil
}
