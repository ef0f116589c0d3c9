package rental_test

import (
	"strings"
	"testing"
	"time"

	"motorpool/rental"
)

func TestFine_MakesASeparateCharge(t *testing.T) {
	for _, state := range []rental.BookingState{rental.Active, rental.Completed, rental.Cancelled} {
		d, now := active(t), start.Add(30*time.Hour)
		d.State = state
		change := do(t)(d.Fine(now, rental.Fee{Kind: "late_return", Amount: 2_550, Reason: "22 hours late"}))
		want := rental.Charge{Booking: 42, Kind: rental.FeeCharge, State: rental.Pending, Currency: "EUR", Amount: 2_550,
			Fee: "late_return", Reason: "22 hours late", NextAttempt: now, Created: now}
		if change.Booking != d.Booking || len(change.Charges) != 1 || change.Charges[0] != want || len(change.Amended) > 0 || change.Note != "22 hours late" {
			t.Errorf("%s: %+v", state, change)
		}
		if change.Details["kind"] != "late_return" || change.Details["amount"] != "25.50" || change.Details["currency"] != "EUR" {
			t.Errorf("the history tells %v", change.Details)
		}
	}
}

func TestWhenThereIsNoFee(t *testing.T) {
	refused(t, "upcoming", rental.BookingStateConflict, "The booking has not started; there is nothing to charge a fee for.")(
		upcoming().Fine(start, rental.Fee{Kind: "other", Amount: 1}))
	for _, amount := range []rental.Minor{0, -1} {
		_, err := active(t).Fine(start, rental.Fee{Kind: "other", Amount: amount})
		fieldIsWrong(t, err, "amount", "must be more than 0")
	}
}

func TestFine_FeeAboveTheLimitIsRefused(t *testing.T) {
	d := active(t)
	standard := 100*d.Price.HourlyRate + d.Price.Deposit
	for _, c := range []struct{ limit, amount rental.Minor }{{0, standard}, {5_000, 5_000}} {
		d.Terms.FeeLimit = c.limit
		do(t)(d.Fine(start, rental.Fee{Kind: "other", Amount: c.amount}))
		if _, err := d.Fine(start, rental.Fee{Kind: "other", Amount: c.amount + 1}); err == nil || !strings.Contains(err.Error(), "must be at most") {
			t.Errorf("limit %d: %v", c.limit, err)
		}
	}
}
