package rental_test

import (
	"testing"
	"time"

	"motorpool/rental"
)

// expensive is a booking that paid 132, an extension of 33, and a fee of 25.50: 190.50 in three charges, in addition to the deposit.
func expensive(t *testing.T) rental.Dossier {
	d := active(t)
	d = after(d, do(t)(d.Extend(start.Add(time.Hour), start.Add(10*time.Hour))))
	d = after(d, do(t)(d.Fine(start.Add(2*time.Hour), rental.Fee{Kind: "other", Amount: 2_550})))
	for _, i := range []int{2, 3} {
		carryOut(&d.Charges[i], start.Add(3*time.Hour))
	}
	return d
}

func TestARefundGivesTheNewestChargesBackFirst(t *testing.T) {
	for amount, want := range map[rental.Minor][]rental.Minor{ // of the fee, of the extension, of the start
		1: {1}, 2_550: {2_550}, 2_551: {2_550, 1}, 5_850: {2_550, 3_300}, 5_851: {2_550, 3_300, 1}, 19_050: {2_550, 3_300, 13_200}, 0: {2_550, 3_300, 13_200},
	} {
		d, now := expensive(t), start.Add(20*time.Hour)
		change := do(t)(d.Refund(now, amount, "goodwill"))
		if len(change.Charges) != len(want) || len(change.Amended) > 0 || change.Booking != d.Booking || change.Note != "goodwill" {
			t.Fatalf("%d: %+v", amount, change)
		}
		of := []rental.ChargeID{d.Charges[3].ID, d.Charges[2].ID, d.Charges[0].ID}
		for i, c := range change.Charges {
			if want := (rental.Charge{Booking: 42, Kind: rental.RefundCharge, State: rental.Pending, Currency: "EUR", Amount: want[i],
				Refunds: of[i], Reason: "goodwill", NextAttempt: now, Created: now}); c != want {
				t.Errorf("%d: %+v, want %+v", amount, c, want)
			}
		}
	}
	if change := do(t)(expensive(t).Refund(start, 0, "all")); change.Details["amount"] != "190.50" || change.Details["currency"] != "EUR" {
		t.Errorf("the history tells %v", change.Details)
	}
}

func TestNoMoreIsRefundedThanWasPaid(t *testing.T) {
	d := expensive(t)
	refused(t, "too much", rental.RefundExceedsPaid, "No more than 190.50 EUR of what was paid can still be refunded.")(d.Refund(start, 19_051, ""))
	d = after(d, do(t)(d.Refund(start, 19_000, "")))
	refused(t, "too much once more", rental.RefundExceedsPaid, "No more than 0.50 EUR of what was paid can still be refunded.")(d.Refund(start, 51, ""))
	d = after(d, do(t)(d.Refund(start, 0, "")))
	refused(t, "nothing left", rental.RefundExceedsPaid, "No more than 0.00 EUR of what was paid can still be refunded.")(d.Refund(start, 0, ""))
	refused(t, "nothing paid", rental.RefundExceedsPaid, "No more than 0.00 EUR of what was paid can still be refunded.")(upcoming().Refund(start, 0, ""))
	_, err := d.Refund(start, -1, "")
	fieldIsWrong(t, err, "amount", "must be more than 0")
}

// What a refund leaves depends on what has moved, and on refunds that may still move.
func TestWhatCanBeRefunded(t *testing.T) {
	for what, c := range map[string]struct {
		with func(d *rental.Dossier)
		left rental.Minor
	}{
		"all paid":             {func(d *rental.Dossier) {}, 19_050},
		"fee not paid":         {func(d *rental.Dossier) { d.Charges[3].State = rental.Declined }, 16_500},
		"fee unknown":          {func(d *rental.Dossier) { d.Charges[3].State = rental.Unknown }, 16_500},
		"less was paid":        {func(d *rental.Dossier) { d.Charges[0].Settled = 10_000 }, 15_850},
		"deposit captured":     {func(d *rental.Dossier) { d.Charges[1].State, d.Charges[1].Settled = rental.Captured, 5_000 }, 24_050},
		"deposit released":     {func(d *rental.Dossier) { d.Charges[1].State = rental.Released }, 19_050},
		"a refund pending":     {refund(rental.Pending, 2_000), 17_050},
		"a refund unknown":     {refund(rental.Unknown, 2_000), 17_050},
		"a refund done":        {refund(rental.Paid, 2_000), 17_050},
		"a refund failed":      {refund(rental.Failed, 2_000), 19_050},
		"refunds of the whole": {refund(rental.Paid, 2_550), 16_500},
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
		if sum != c.left {
			t.Errorf("%s: %d, want %d", what, sum, c.left)
		}
	}
}

func refund(state rental.ChargeState, amount rental.Minor) func(*rental.Dossier) {
	return func(d *rental.Dossier) {
		d.Charges = append(d.Charges, rental.Charge{Kind: rental.RefundCharge, State: state, Amount: amount, Settled: amount, Refunds: d.Charges[3].ID})
	}
}

// Where the processor rounds, a refund may have given back another amount than was asked for: what has moved counts.
func TestWhatARefundHasGivenBackIsNotGivenBackAgain(t *testing.T) {
	d := active(t)
	d.Price.Currency = "BHD"
	d.Charges = d.Charges[:1]
	d.Charges[0].Currency, d.Charges[0].Amount, d.Charges[0].Settled = "BHD", 12_345, 12_350
	d.Charges = append(d.Charges, rental.Charge{Kind: rental.RefundCharge, State: rental.Paid, Amount: 5_005, Settled: 5_010, Refunds: d.Charges[0].ID})
	if change := do(t)(d.Refund(start, 0, "")); len(change.Charges) != 1 || change.Charges[0].Amount != 7_340 {
		t.Errorf("%+v", change.Charges)
	}
	d.Charges[1].Settled = 5_000
	if change := do(t)(d.Refund(start, 0, "")); len(change.Charges) != 1 || change.Charges[0].Amount != 7_350 {
		t.Errorf("%+v", change.Charges)
	}
}
