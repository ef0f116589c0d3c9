package rental

import (
	"fmt"
	"time"
)

// Begin hands the vehicle over: the rental is charged, and the deposit held. It may be early, where no other booking has a claim on
// the vehicle until the start, or late; the price stays as agreed.
func (d Dossier) Begin(now time.Time) (Change, error) {
	switch {
	case d.State != Upcoming:
		return Change{}, Forbids(BookingStateConflict, fmt.Sprintf("The booking is %s; only an upcoming one can be started.", d.State))
	case !now.Before(d.End):
		return Change{}, Forbids(BookingStateConflict, "The booking's time is over; it cannot be started any more.")
	case d.InOther:
		return Change{}, NotAvailable("The vehicle is still in the hands of another booking.")
	case d.Before:
		return Change{}, NotAvailable("The vehicle has another booking before this booking's start.")
	case d.Vehicle.AgencyID != d.Agency: // an import has moved it: no command of this client may open it
		return Change{}, NotAvailable("The vehicle belongs to another agency by now.")
	case d.Vehicle.Withdrawn():
		return Change{}, NotAvailable(fmt.Sprintf("The vehicle is withdrawn (%s).", d.Vehicle.Status))
	case d.Card == nil:
		return Change{}, NoMethod()
	}
	b := d.Booking
	b.State, b.ActualStart = Active, now
	c := Change{Booking: b, Charges: []Charge{d.charge(StartCharge, b.Price.Rental(), now)}}
	if b.Price.Deposit > 0 {
		deposit := d.charge(DepositCharge, b.Price.Deposit, now)
		deposit.Goal = Hold
		c.Charges = append(c.Charges, deposit)
	}
	return c, nil
}
