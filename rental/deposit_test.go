package rental_test

import (
	"testing"
	"time"

	"motorpool/rental"
)

func TestAPartOfWhatIsHeldIsTaken(t *testing.T) {
	for _, amount := range []rental.Minor{1, 5_000, 20_000} {
		d, now := active(t), start.Add(time.Hour)
		change := do(t)(d.CaptureDeposit(now, amount, "scratch on the door"))
		want := d.Charges[1]
		want.Goal, want.CaptureAmount, want.Reason, want.NextAttempt = rental.Capture, amount, "scratch on the door", now
		if len(change.Amended) != 1 || change.Amended[0] != want || len(change.Charges) > 0 || change.Booking != d.Booking || change.Note != "scratch on the door" {
			t.Errorf("%d: %+v", amount, change)
		}
		d = after(d, change)
		if d.Payment().Status != rental.PaymentPending {
			t.Errorf("%d: open, and %+v", amount, d.Payment())
		}
		refused(t, "a second capture", rental.BookingStateConflict, "No deposit of the booking is held.")(d.CaptureDeposit(now, 1, ""))
		carryOut(&d.Charges[1], now)
		refused(t, "a capture after it", rental.BookingStateConflict, "No deposit of the booking is held.")(d.CaptureDeposit(now, 1, ""))
		if d.Payment().Status != rental.PaymentPaid {
			t.Errorf("%d: taken, and %+v", amount, d.Payment())
		}
	}
}

func TestWhatIsNotHeldIsNotTaken(t *testing.T) {
	refused(t, "more than is held", rental.BookingStateConflict, "No more than 200.00 EUR is held.")(active(t).CaptureDeposit(start, 20_001, ""))
	refused(t, "upcoming", rental.BookingStateConflict, "No deposit of the booking is held.")(upcoming().CaptureDeposit(start, 1, ""))
	for _, state := range []rental.ChargeState{rental.Pending, rental.Unknown, rental.RequiresAction, rental.Declined, rental.Failed, rental.Captured, rental.Released} {
		d := active(t)
		d.Charges[1].State = state
		refused(t, string(state), rental.BookingStateConflict, "No deposit of the booking is held.")(d.CaptureDeposit(start, 1, ""))
	}
	d := active(t)
	d = after(d, do(t)(d.Finish(start.Add(time.Hour))))
	refused(t, "to be released", rental.BookingStateConflict, "No deposit of the booking is held.")(d.CaptureDeposit(start, 1, ""))
	for _, amount := range []rental.Minor{0, -1} {
		_, err := active(t).CaptureDeposit(start, amount, "")
		fieldIsWrong(t, err, "amount", "must be more than 0")
	}
}

// Where the processor rounds, it may hold a little more than was asked for.
func TestNoMoreIsTakenThanWasAskedToBeHeld(t *testing.T) {
	d := active(t)
	d.Charges[1].Settled = d.Charges[1].Amount + 5
	refused(t, "what was rounded up", rental.BookingStateConflict, "No more than 200.00 EUR is held.")(d.CaptureDeposit(start, 20_005, ""))
	do(t)(d.CaptureDeposit(start, 20_000, ""))
}
