package stripe_test

import (
	"testing"

	"github.com/google/uuid"

	"motorpool/internal/require"
	"motorpool/rental"
)

func TestAmounts_InTheUnitsOfTheCurrency(t *testing.T) {
	w := newWorld(t)
	card := w.card("pm_card_visa")
	for _, c := range []struct {
		currency rental.Currency
		amount   rental.Minor
		there    int64        // the amount of the request to Stripe
		charged  rental.Minor // the amount that the adapter returns
	}{
		{"EUR", 13_200, 13_200, 13_200},
		{"USD", 50, 50, 50},
		{"HUF", 17_550, 17_550, 17_550},
		{"JPY", 500, 500, 500},
		{"KRW", 12_345, 12_345, 12_345},
		{"ISK", 5, 500, 5},
		{"UGX", 12_000, 1_200_000, 12_000},
		{"BHD", 5_120, 5_120, 5_120},
		{"BHD", 5_124, 5_120, 5_120},
		{"BHD", 5_125, 5_130, 5_130},
		{"KWD", 9, 10, 10},
		{"KWD", 4, 10, 10},
		{"MGA", 49, 1, 100},
		{"TND", 1_995, 2_000, 2_000},
		{"MGA", 1_249, 12, 1_200},
		{"MGA", 1_250, 13, 1_300},
	} {
		r := w.request(c.amount, c.currency)
		paid, err := w.Confirm(t.Context(), uuid.NewString(), w.prepare(r).ID, card.Token)
		if err != nil || paid.Amount != c.charged {
			t.Errorf("%d %s: intent %v, %v", c.amount, c.currency, paid, err)
			continue
		}
		for _, m := range w.there.Ledger() {
			if m.Charge == r.Payment.String() && (m.Captured != c.there || m.Currency != string(c.currency)) {
				t.Errorf("%d %s: Stripe has %+v", c.amount, c.currency, m)
			}
		}
		back, err := w.Refund(
			t.Context(), uuid.NewString(),
			rental.RefundRequest{Refund: uuid.New(), Intent: paid.ID, Amount: c.charged, Currency: c.currency},
		)
		if err != nil || back.Amount != c.charged {
			t.Errorf("refund of %d %s: %+v, %v", c.amount, c.currency, back, err)
		}
	}
}

func TestAmounts_PartOfAHoldIsRoundedLikeTheHold(t *testing.T) {
	w := newWorld(t)
	card := w.card("pm_card_visa")
	for _, c := range []struct {
		currency          rental.Currency
		hold, part, taken rental.Minor
	}{
		{"BHD", 20_003, 20_000, 20_000},
		{"BHD", 20_000, 19_999, 20_000},
		{"BHD", 20_000, 55, 60},
		{"ISK", 30_000, 29_999, 29_999},
		{"JPY", 30_000, 1, 1},
	} {
		r := w.request(c.hold, c.currency)
		r.Hold = true
		held, err := w.Confirm(t.Context(), uuid.NewString(), w.prepare(r).ID, card.Token)
		require.NoError(t, err)
		taken, err := w.Capture(t.Context(), uuid.NewString(), held.ID, c.part, c.currency)
		if err != nil || taken.Amount != c.taken {
			t.Errorf("capture of %d %s of %d: %v, %v", c.part, c.currency, c.hold, taken, err)
		}
	}
}

func TestAmounts_StripeRefusesWhatItCannotCharge(t *testing.T) {
	w := newWorld(t)
	for name, r := range map[string]rental.IntentRequest{
		"zero":                 w.request(0, "EUR"),
		"above Stripe's limit": w.request(100_000_000, "EUR"),
		"largest amount":       w.request(rental.MaxAmount, "UGX"),
	} {
		_, err := w.CreateIntent(t.Context(), uuid.NewString(), r)
		if f := w.failure(err, rental.Refused); f.Cause == nil {
			t.Errorf("%s: error %v without a cause", name, err)
		}
	}
	if all := w.there.Ledger(); len(all) != 0 {
		t.Errorf("payments %+v, want none", all)
	}
}

// Each part is rounded separately, and the sum must not exceed the payment.
func TestAmounts_PartialRefundsDoNotExceedThePayment(t *testing.T) {
	w := newWorld(t)
	card := w.card("pm_card_visa")
	for _, c := range []struct {
		currency     rental.Currency
		paid         rental.Minor
		parts, there []rental.Minor
	}{
		{"BHD", 12_345, []rental.Minor{5_005, 7_345}, []rental.Minor{5_000, 7_340}},
		{"BHD", 12_350, []rental.Minor{12_350}, []rental.Minor{12_350}},
		{"MGA", 1_300, []rental.Minor{650, 650}, []rental.Minor{600, 600}},
		{"ISK", 7, []rental.Minor{3, 4}, []rental.Minor{3, 4}},
	} {
		paid, err := w.Confirm(t.Context(), uuid.NewString(), w.prepare(w.request(c.paid, c.currency)).ID, card.Token)
		require.NoError(t, err)
		for i, part := range c.parts {
			back, err := w.Refund(
				t.Context(), uuid.NewString(),
				rental.RefundRequest{Refund: uuid.New(), Intent: paid.ID, Amount: part, Currency: c.currency},
			)
			if err != nil || back.Amount != c.there[i] {
				t.Errorf("refund of %d %s of %d: %+v, %v; want %d", part, c.currency, c.paid, back, err, c.there[i])
			}
		}
	}
	_, err := w.Refund(t.Context(), "least", rental.RefundRequest{Refund: uuid.New(), Intent: "pi_1", Amount: 9, Currency: "BHD"})
	_ = w.failure(err, rental.TooSmall)
}
