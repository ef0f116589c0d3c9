package rental_test

import (
	"testing"
	"time"

	"motorpool/rental"
)

func TestABookingIsCancelledUntilTheCutoff(t *testing.T) {
	const late = "The booking starts in less than 1h0m0s; it cannot be cancelled any more."
	const over = "The booking should have started; it cannot be cancelled any more."
	for _, c := range []struct {
		state  rental.BookingState
		cutoff time.Duration
		now    time.Time
		why    string // empty: it can
	}{
		{rental.Upcoming, time.Hour, start.Add(-48 * time.Hour), ""},
		{rental.Upcoming, time.Hour, start.Add(-time.Hour - 1), ""},
		{rental.Upcoming, time.Hour, start.Add(-time.Hour), late},
		{rental.Upcoming, time.Hour, start.Add(-1), late},
		{rental.Upcoming, time.Hour, start, over},
		{rental.Upcoming, 0, start.Add(-1), ""},
		{rental.Upcoming, 0, start, over},
		{rental.Upcoming, 0, start.Add(100 * time.Hour), over},
		{rental.Active, 0, start.Add(-time.Hour), "The booking is active; only an upcoming one can be cancelled."},
		{rental.Completed, 0, start.Add(-time.Hour), "The booking is completed; only an upcoming one can be cancelled."},
		{rental.Cancelled, 0, start.Add(-time.Hour), "The booking is cancelled; only an upcoming one can be cancelled."},
	} {
		d := upcoming()
		d.State, d.Terms.CancelCutoff = c.state, c.cutoff
		what := string(c.state) + " at " + c.now.Sub(start).String()
		if d.CanCancel(c.now) != (c.why == "") {
			t.Errorf("%s: can be cancelled: %v", what, d.CanCancel(c.now))
		}
		if c.why != "" {
			refused(t, what, rental.BookingNotCancellable, c.why)(d.Cancel(c.now))
			continue
		}
		change := do(t)(d.Cancel(c.now))
		want := d.Booking
		want.State = rental.Cancelled
		if change.Booking != want || len(change.Charges)+len(change.Amended) > 0 {
			t.Errorf("%s: %+v", what, change)
		}
	}
}
