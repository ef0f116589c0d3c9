package rental

import (
	"fmt"
	"time"
)

// CanCancel reports whether the client may still cancel: the booking is upcoming, and the agency's cutoff before its start is
// not reached.
func (d Dossier) CanCancel(now time.Time) bool {
	return d.State == Upcoming && now.Before(d.Start.Add(-d.Terms.CancelCutoff))
}

// Cancel gives the booking up before it began.
func (d Dossier) Cancel(now time.Time) (Change, error) {
	if !d.CanCancel(now) {
		return Change{}, Forbids(BookingNotCancellable, d.whyNotCancelled(now))
	}
	b := d.Booking
	b.State = Cancelled
	return Change{Booking: b}, nil
}

func (d Dossier) whyNotCancelled(now time.Time) string {
	switch {
	case d.State != Upcoming:
		return fmt.Sprintf("The booking is %s; only an upcoming one can be cancelled.", d.State)
	case now.Before(d.Start):
		return fmt.Sprintf("The booking starts in less than %v; it cannot be cancelled any more.", d.Terms.CancelCutoff)
	default:
		return "The booking should have started; it cannot be cancelled any more."
	}
}
