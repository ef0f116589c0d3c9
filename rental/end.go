package rental

import (
	"fmt"
	"time"
)

// Finish takes the vehicle back. The deposit is released, unless a part of it is to be captured: the processor releases the
// rest then. Early or late, the price stays as agreed.
func (d Dossier) Finish(now time.Time) (Change, error) {
	if d.State != Active {
		return Change{}, Forbids(BookingNotActive, fmt.Sprintf("The booking is %s; only an active one can be ended.", d.State))
	}
	b := d.Booking
	b.State, b.ActualEnd = Completed, now
	c := Change{Booking: b}
	if deposit, ok := d.deposit(); ok && deposit.Goal == Hold && !deposit.State.IsFinal() {
		deposit.Goal, deposit.NextAttempt = Release, now
		c.Amended = []Charge{deposit}
	}
	return c, nil
}
