package rental_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/rental"
	"motorpool/telematics"
)

var chargeStates = []rental.ChargeState{
	rental.Pending, rental.Unknown, rental.RequiresAction, rental.Declined, rental.Failed, rental.Authorized,
	rental.Paid, rental.Captured, rental.Released, rental.Waived,
}

var chargeKinds = []rental.ChargeKind{
	rental.StartCharge, rental.DepositCharge, rental.ExtensionCharge, rental.FeeCharge, rental.RefundCharge,
}

// reachable returns the states that a charge can reach in any number of steps.
func reachable(c rental.Charge) []rental.ChargeState {
	found := []rental.ChargeState{c.State}
	for i := 0; i < len(found); i++ {
		for _, next := range chargeStates {
			if (rental.Charge{Kind: c.Kind, State: found[i]}).MayBecome(next) && !slices.Contains(found, next) {
				found = append(found, next)
			}
		}
	}
	return found
}

func TestMayBecome_FromPending(t *testing.T) {
	pays := []rental.ChargeState{
		rental.Pending, rental.Unknown, rental.RequiresAction, rental.Declined, rental.Failed, rental.Paid,
		rental.Waived,
	}
	for kind, want := range map[rental.ChargeKind][]rental.ChargeState{
		rental.StartCharge:     append([]rental.ChargeState{rental.Released}, pays...),
		rental.ExtensionCharge: append([]rental.ChargeState{rental.Released}, pays...), rental.FeeCharge: pays,
		rental.EndCharge: append([]rental.ChargeState{rental.Released}, pays...),
		rental.DepositCharge: {
			rental.Pending, rental.Unknown, rental.RequiresAction, rental.Declined, rental.Failed, rental.Authorized, rental.Captured,
			rental.Released, rental.Waived,
		},
		rental.RefundCharge: {rental.Pending, rental.Unknown, rental.Failed, rental.Paid},
	} {
		got := reachable(rental.Charge{Kind: kind, State: rental.Pending})
		slices.Sort(got)
		slices.Sort(want)
		assert.EqualSlices(t, got, want, "%s: reaches", kind)
	}
}

func TestMayBecome_FinalStatesStay(t *testing.T) {
	for _, kind := range chargeKinds {
		for _, state := range []rental.ChargeState{rental.Paid, rental.Captured, rental.Released, rental.Waived} {
			want := []rental.ChargeState{state}
			if kind == rental.RefundCharge && state == rental.Paid {
				want = append(want, rental.Failed) // the bank returned it
			}
			if got := reachable(rental.Charge{Kind: kind, State: state}); !slices.Equal(got, want) || !state.IsFinal() ||
				!(rental.Charge{Kind: kind, State: state}).MayBecome(state) {
				t.Errorf("%s %s: reaches %v, want %v, and itself", kind, state, got, want)
			}
		}
	}
	if got := reachable(rental.Charge{Kind: rental.RefundCharge, State: rental.Failed}); len(got) != 1 {
		t.Errorf("a failed refund may become %v", got)
	}
}

// A call without an answer is queried, and any outcome may be found; as it may be of a payment that
// the record has lost.
func TestMayBecome_AnyOutcomeThatIsFound(t *testing.T) {
	for kind, ends := range map[rental.ChargeKind][]rental.ChargeState{
		rental.StartCharge: {rental.RequiresAction, rental.Declined, rental.Failed, rental.Paid},
		rental.DepositCharge: {
			rental.RequiresAction, rental.Declined, rental.Failed, rental.Authorized, rental.Captured, rental.Released,
		},
		rental.RefundCharge: {rental.Failed, rental.Paid},
	} {
		for _, from := range []rental.ChargeState{rental.Pending, rental.Unknown} {
			for _, end := range ends {
				if !(rental.Charge{Kind: kind, State: from}).MayBecome(end) {
					t.Errorf("%s: a charge that is %s cannot become %s", kind, from, end)
				}
			}
		}
	}
}

func TestIsFinal_AgreesWithMayBecome(t *testing.T) {
	for _, from := range chargeStates {
		final := true
		for _, to := range chargeStates {
			final = final && (!from.MayBecome(to) || from == to)
		}
		if from.IsFinal() != final || !from.MayBecome(from) || from.MayBecome("lost") {
			t.Errorf("%s: final %v, or it cannot stay, or it may become an unknown state", from, from.IsFinal())
		}
	}
}

func TestCaptureDeposit_AmendsTheHold(t *testing.T) {
	for _, amount := range []rental.Minor{1, 5_000, 20_000} {
		d, now := active(t), start.Add(time.Hour)
		change := do(t)(d.CaptureDeposit(now, amount, "scratch on the door"))
		want := d.Charges[1]
		want.Goal, want.CaptureAmount, want.Reason, want.NextAttempt = rental.Capture, amount, "scratch on the door", now
		if len(change.Amended) != 1 || change.Amended[0] != want || len(change.Charges) > 0 || change.Booking != d.Booking ||
			change.Note != "scratch on the door" {
			t.Errorf("capture of %d: change %+v, want the deposit alone amended", amount, change)
		}
		d = after(d, change)
		if d.Payment().Status != rental.PaymentPending {
			t.Errorf("capture of %d pending: payment %+v, want pending", amount, d.Payment())
		}
		assert.Equal(t, d.Limits().Capture, 0, "capture of %d pending: can be captured", amount)
		refused(
			t, "a second capture while one is pending", rental.BookingStateConflict,
			"No deposit of the booking is held.",
		)(d.CaptureDeposit(now, 1, ""))
		carryOut(&d.Charges[1], now)
		refused(
			t, "a second capture after the first", rental.BookingStateConflict, "No deposit of the booking is held.",
		)(d.CaptureDeposit(now, 1, ""))
		if d.Payment().Status != rental.PaymentPaid {
			t.Errorf("capture of %d done: payment %+v, want paid", amount, d.Payment())
		}
	}
}

func TestCaptureDeposit_OnlyWhatIsHeld(t *testing.T) {
	refused(t, "more than is held", rental.BookingStateConflict, "Only 200.00 EUR is held.")(active(t).CaptureDeposit(start, 20_001, ""))
	refused(t, "upcoming", rental.BookingStateConflict, "No deposit of the booking is held.")(upcoming().CaptureDeposit(start, 1, ""))
	for _, state := range []rental.ChargeState{
		rental.Pending, rental.Unknown, rental.RequiresAction, rental.Declined, rental.Failed, rental.Captured, rental.Released,
	} {
		d := active(t)
		d.Charges[1].State = state
		refused(t, string(state), rental.BookingStateConflict, "No deposit of the booking is held.")(d.CaptureDeposit(start, 1, ""))
	}
	d := active(t)
	d.Charges[1].Settled = d.Charges[1].Amount + 5 // as a processor holds that rounds
	refused(t, "more than was requested", rental.BookingStateConflict, "Only 200.00 EUR is held.")(d.CaptureDeposit(start, 20_005, ""))
	d = after(d, do(t)(d.Finish(start.Add(time.Hour))))
	refused(t, "to be released", rental.BookingStateConflict, "No deposit of the booking is held.")(d.CaptureDeposit(start, 1, ""))
	for _, amount := range []rental.Minor{0, -1} {
		_, err := active(t).CaptureDeposit(start, amount, "")
		fieldIsWrong(t, err, "amount", "must be more than 0")
	}
}

func TestLimits_AreWhatIsAccepted(t *testing.T) {
	d := active(t)
	if limits := d.Limits(); limits.Capture != 20_000 || limits.Fee != d.FeeLimit() || limits.Fee == 0 {
		t.Errorf("active: limits %+v", limits)
	}
	do(t)(d.CaptureDeposit(start, d.Limits().Capture, ""))
	refused(t, "a capture above the limit", rental.BookingStateConflict, "Only 200.00 EUR is held.")(
		d.CaptureDeposit(start, d.Limits().Capture+1, ""),
	)
	do(t)(d.Fine(start, rental.Fee{Amount: d.Limits().Fee}))
	if _, err := d.Fine(start, rental.Fee{Amount: d.Limits().Fee + 1}); err == nil {
		t.Error("a fee above the limit was charged")
	}
	do(t)(d.Refund(start, d.Limits().Refund, ""))
	if _, err := d.Refund(start, d.Limits().Refund+1, ""); err == nil {
		t.Error("a refund above the limit was made")
	}
	d.Terms.FeeLimit = 5_000
	if limit := d.Limits().Fee; limit != 5_000 {
		t.Errorf("the limit of a fee is %d, want the agency's 5000", limit)
	}
	assert.Equal(t, upcoming().Limits(), (rental.Limits{}), "upcoming: limits")
}

func TestFine_MakesASeparateCharge(t *testing.T) {
	for _, state := range []rental.BookingState{rental.Active, rental.Completed, rental.Cancelled} {
		d, now := active(t), start.Add(30*time.Hour)
		d.State = state
		change := do(t)(d.Fine(now, rental.Fee{Kind: "late_return", Amount: 2_550, Reason: "22 hours late"}))
		want := rental.Charge{Booking: 42, Kind: rental.FeeCharge, State: rental.Pending, Currency: "EUR", Amount: 2_550,
			Fee: "late_return", Reason: "22 hours late", NextAttempt: now, Created: now}
		if change.Booking != d.Booking || len(change.Charges) != 1 || change.Charges[0] != want || len(change.Amended) > 0 ||
			change.Note != "22 hours late" {
			t.Errorf("%s: change %+v, want one fee charge", state, change)
		}
		if change.Details["kind"] != "late_return" || change.Details["amount"] != "25.50" || change.Details["currency"] != "EUR" {
			t.Errorf("the audit details are %v", change.Details)
		}
	}
}

func TestFine_RefusedBeforeTheStartOrWithoutAnAmount(t *testing.T) {
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
	for _, c := range []struct {
		limit, amount rental.Minor
		currency      rental.Currency // of the agency
	}{{0, standard, "EUR"}, {5_000, 5_000, "EUR"}, {5_000, standard, "JPY"}} {
		d.Terms.FeeLimit, d.Terms.Currency = c.limit, c.currency
		do(t)(d.Fine(start, rental.Fee{Kind: "other", Amount: c.amount}))
		if _, err := d.Fine(start, rental.Fee{Kind: "other", Amount: c.amount + 1}); err == nil ||
			!strings.Contains(err.Error(), "must be at most") {
			t.Errorf("a fee above the limit %d: error %v", c.limit, err)
		}
	}
	d.Price, d.Terms.FeeLimit = rental.Price{Tariff: rental.Tariff{Currency: "EUR"}}, 0
	do(t)(d.Fine(start, rental.Fee{Kind: "cleaning", Amount: 5_000})) // a free vehicle
}

// expensive is a booking that paid 132, an extension of 33 and a fee of 25.50: 190.50 in three
// charges, in addition to the deposit.
func expensive(t *testing.T) rental.BookingDetails {
	d := active(t)
	d = after(d, do(t)(d.Extend(start.Add(time.Hour), start.Add(10*time.Hour), telematics.Client)))
	d = after(d, do(t)(d.Fine(start.Add(2*time.Hour), rental.Fee{Kind: "other", Amount: 2_550})))
	for _, i := range []int{2, 3} {
		carryOut(&d.Charges[i], start.Add(3*time.Hour))
	}
	return d
}

func TestRefund_NewestChargesFirst(t *testing.T) {
	// The refunds of the fee, the extension and the start.
	for amount, want := range map[rental.Minor][]rental.Minor{
		1: {1}, 2_550: {2_550}, 2_551: {2_550, 1}, 5_850: {2_550, 3_300}, 5_851: {2_550, 3_300, 1}, 19_050: {2_550, 3_300, 13_200},
		0: {2_550, 3_300, 13_200},
	} {
		d, now := expensive(t), start.Add(20*time.Hour)
		change := do(t)(d.Refund(now, amount, "goodwill"))
		if len(change.Charges) != len(want) || len(change.Amended) > 0 || change.Booking != d.Booking || change.Note != "goodwill" {
			t.Fatalf("refund of %d: change %+v", amount, change)
		}
		of := []rental.ChargeID{d.Charges[3].ID, d.Charges[2].ID, d.Charges[0].ID}
		for i, c := range change.Charges {
			if want := (rental.Charge{Booking: 42, Kind: rental.RefundCharge, State: rental.Pending, Currency: "EUR", Amount: want[i],
				Refunds: of[i], Reason: "goodwill", NextAttempt: now, Created: now}); c != want {
				t.Errorf("refund of %d: charge %+v, want %+v", amount, c, want)
			}
		}
	}
	if change := do(t)(expensive(t).Refund(start, 0, "all")); change.Details["amount"] != "190.50" || change.Details["currency"] != "EUR" {
		t.Errorf("the audit details are %v", change.Details)
	}
}

func TestRefundCharge_RefundsThatChargeAlone(t *testing.T) {
	for amount, want := range map[rental.Minor]rental.Minor{1: 1, 13_200: 13_200, 0: 13_200} {
		d, now := expensive(t), start.Add(20*time.Hour)
		change := do(t)(d.RefundCharge(now, d.Charges[0].ID, amount, "goodwill"))
		if len(change.Charges) != 1 || change.Charges[0].Amount != want || change.Charges[0].Refunds != d.Charges[0].ID {
			t.Errorf("refund of %d: charges %+v", amount, change.Charges)
		}
	}
	d := expensive(t)
	refused(t, "more than it took", rental.RefundExceedsPaid, "At most 132.00 EUR can still be refunded.")(
		d.RefundCharge(start, d.Charges[0].ID, 13_201, ""),
	)
	refused(t, "a hold", rental.RefundExceedsPaid, "At most 0.00 EUR can still be refunded.")(d.RefundCharge(start, d.Charges[1].ID, 0, ""))
	_, err := d.RefundCharge(start, rental.ChargeID{1}, 1, "")
	fieldIsWrong(t, err, "charge_id", "must be a charge of the booking")
}

// How much can be refunded depends on what was paid, and on refunds that are pending.
func TestRefund_LimitByChargesAndRefunds(t *testing.T) {
	for what, c := range map[string]struct {
		with func(d *rental.BookingDetails)
		left rental.Minor
	}{
		"all paid":         {func(d *rental.BookingDetails) {}, 19_050},
		"fee not paid":     {func(d *rental.BookingDetails) { d.Charges[3].State = rental.Declined }, 16_500},
		"fee unknown":      {func(d *rental.BookingDetails) { d.Charges[3].State = rental.Unknown }, 16_500},
		"less was paid":    {func(d *rental.BookingDetails) { d.Charges[0].Settled = 10_000 }, 15_850},
		"deposit captured": {func(d *rental.BookingDetails) { d.Charges[1].State, d.Charges[1].Settled = rental.Captured, 5_000 }, 24_050},
		"deposit released": {func(d *rental.BookingDetails) { d.Charges[1].State = rental.Released }, 19_050},
		"a refund pending": {refund(rental.Pending, 2_000), 17_050},
		"a refund unknown": {refund(rental.Unknown, 2_000), 17_050},
		"a refund done":    {refund(rental.Paid, 2_000), 17_050},
		"a refund failed":  {refund(rental.Failed, 2_000), 19_050},
		"more was refunded than requested, as the processor rounds": {func(d *rental.BookingDetails) {
			refund(rental.Paid, 2_000)(d)
			d.Charges[4].Settled = 2_005
		}, 17_045},
		"fee refunded": {refund(rental.Paid, 2_550), 16_500},
	} {
		d := expensive(t)
		c.with(&d)
		if _, err := d.Refund(start, c.left+1, ""); err == nil {
			t.Errorf("%s: more than %d was refunded", what, c.left)
		}
		change := do(t)(d.Refund(start, 0, ""))
		var sum rental.Minor
		for _, r := range change.Charges {
			sum += r.Amount
		}
		if limit := d.Limits().Refund; sum != c.left || limit != c.left {
			t.Errorf("%s: refunded %d, limit %d, want %d", what, sum, limit, c.left)
		}
	}
	_, err := active(t).Refund(start, -1, "")
	fieldIsWrong(t, err, "amount", "must be more than 0")
	refused(t, "nothing paid", rental.RefundExceedsPaid, "At most 0.00 EUR can still be refunded.")(upcoming().Refund(start, 0, ""))
}

func refund(state rental.ChargeState, amount rental.Minor) func(*rental.BookingDetails) {
	return func(d *rental.BookingDetails) {
		d.Charges = append(
			d.Charges,
			rental.Charge{Kind: rental.RefundCharge, State: state, Amount: amount, Settled: amount, Refunds: d.Charges[3].ID},
		)
	}
}
