package rental

import (
	"fmt"
	"time"
)

// CaptureDeposit takes a part of the deposit, or all of it, while it is held: before the booking ends, and once.
func (d Dossier) CaptureDeposit(now time.Time, amount Minor, reason string) (Change, error) {
	if amount <= 0 {
		return Change{}, wrong("amount", "must be more than 0")
	}
	deposit, ok := d.deposit()
	if !ok || deposit.State != Authorized || deposit.Goal != Hold {
		return Change{}, Forbids(BookingStateConflict, "No deposit of the booking is held.")
	}
	if held := min(deposit.Settled, deposit.Amount); amount > held { // the processor may round up
		return Change{}, Forbids(BookingStateConflict, fmt.Sprintf("No more than %s %s is held.", d.Price.Currency.Format(held), d.Price.Currency))
	}
	deposit.Goal, deposit.CaptureAmount, deposit.Reason, deposit.NextAttempt = Capture, amount, reason, now
	return Change{Booking: d.Booking, Amended: []Charge{deposit}, Note: reason,
		Details: map[string]any{"amount": d.Price.Currency.Format(amount), "currency": string(d.Price.Currency)}}, nil
}

func (d Dossier) deposit() (Charge, bool) {
	for _, c := range d.Charges {
		if c.Kind == DepositCharge {
			return c, true
		}
	}
	return Charge{}, false
}
