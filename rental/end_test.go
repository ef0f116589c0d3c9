package rental_test

import (
	"testing"
	"time"

	"motorpool/rental"
)

func TestTheEndReleasesTheDepositAndChangesNoPrice(t *testing.T) {
	for what, now := range map[string]time.Time{"early": start.Add(time.Hour), "on time": start.Add(8 * time.Hour), "late": start.Add(80 * time.Hour)} {
		d := active(t)
		change := do(t)(d.Finish(now))
		b := d.Booking
		b.State, b.ActualEnd = rental.Completed, now
		if change.Booking != b || len(change.Charges) > 0 || len(change.Amended) != 1 {
			t.Fatalf("%s: %+v", what, change)
		}
		want := d.Charges[1]
		want.Goal, want.NextAttempt = rental.Release, now
		if change.Amended[0] != want {
			t.Errorf("%s: %+v, want %+v", what, change.Amended[0], want)
		}
	}
}

func TestOnlyAnActiveBookingIsEnded(t *testing.T) {
	for _, state := range []rental.BookingState{rental.Upcoming, rental.Completed, rental.Cancelled} {
		d := active(t)
		d.State = state
		refused(t, string(state), rental.BookingNotActive, "The booking is "+string(state)+"; only an active one can be ended.")(d.Finish(start.Add(time.Hour)))
	}
}

// Whatever has become of it, a deposit that is not held yet is not to be held any more.
func TestTheEndGivesADepositUpInEachState(t *testing.T) {
	for state, release := range map[rental.ChargeState]bool{
		rental.Pending: true, rental.Unknown: true, rental.RequiresAction: true, rental.Declined: true, rental.Failed: true, rental.Authorized: true,
		rental.Released: false, rental.Captured: false, // the processor was faster
	} {
		d := active(t)
		d.Charges[1].State = state
		if c := do(t)(d.Finish(start.Add(time.Hour))); (len(c.Amended) == 1) != release {
			t.Errorf("%s: %+v", state, c.Amended)
		}
	}
	d := active(t)
	d = after(d, do(t)(d.CaptureDeposit(start, 5_000, "scratch")))
	if c := do(t)(d.Finish(start.Add(time.Hour))); len(c.Amended) > 0 {
		t.Errorf("a capture in flight: %+v", c.Amended)
	}
	d.Charges = nil
	if c := do(t)(d.Finish(start.Add(time.Hour))); len(c.Amended) > 0 {
		t.Errorf("without a deposit: %+v", c.Amended)
	}
}
