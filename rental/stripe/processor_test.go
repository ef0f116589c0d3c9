package stripe_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/simulator/sandbox"
)

func TestCard_IsAttachedReadAndDetached(t *testing.T) {
	w := newWorld(t)
	first, second := w.card("pm_card_visa"), w.card("pm_card_visa")
	if first.Brand != "visa" || first.LastFour != "4242" || first.ExpYear < 2030 || first.ExpMonth != 12 || first.Fingerprint == "" {
		t.Errorf("card %+v, want a Visa 4242 until 12/2030 or later", first)
	}
	if first.Token == second.Token || first.Fingerprint != second.Fingerprint {
		t.Errorf("the same card twice: %+v and %+v, want two tokens and one fingerprint", first, second)
	}
	if other := w.card("pm_card_mastercard"); other.Fingerprint == first.Fingerprint || other.Brand != "mastercard" {
		t.Errorf("card %+v, want a Mastercard with another fingerprint", other)
	}
	card, owner, err := w.Card(t.Context(), first.Token)
	if err != nil || owner != w.customer || card != first {
		t.Errorf("card %+v of the customer %q, %v", card, owner, err)
	}
	if again, err := w.Attach(t.Context(), w.customer, first.Token); err != nil || again != first {
		t.Errorf("attached again: %+v, %v; want the same card", again, err)
	}
	for range 2 {
		assert.NoError(t, w.Detach(t.Context(), first.Token))
	}
	if _, owner, err := w.Card(t.Context(), first.Token); err != nil || owner != "" {
		t.Errorf("after Detach the customer is %q, %v; want none", owner, err)
	}
	assert.NoError(t, w.Detach(t.Context(), "pm_unknown"))
	_, err = w.Attach(t.Context(), w.customer, first.Token)
	w.wants(err, rental.Refused)
}

func TestProcessor_AnInvalidIDSendsNoRequest(t *testing.T) {
	w := newWorld(t)
	w.breaks(sandbox.Fault{Kind: sandbox.FailBefore, Times: -1})
	ctx := t.Context()
	for _, id := range []string{"", "..", "../customers", "a/b", "pm card", "pm%2f", strings.Repeat("a", 256)} {
		_, err := w.Attach(ctx, "cus_1", id)
		w.wants(err, rental.NotKnown)
		_, _, err = w.Card(ctx, id)
		w.wants(err, rental.NotKnown)
		_, err = w.Intent(ctx, id)
		w.wants(err, rental.NotKnown)
		_, err = w.Confirm(ctx, "k", id, "pm_1")
		w.wants(err, rental.NotKnown)
		_, err = w.Capture(ctx, "k", id, 1, "EUR")
		w.wants(err, rental.NotKnown)
		_, err = w.Cancel(ctx, "k", id)
		w.wants(err, rental.NotKnown)
		_, _, err = w.RefundOf(ctx, id, uuid.New())
		w.wants(err, rental.NotKnown)
		_, err = w.RefundByID(ctx, id)
		w.wants(err, rental.NotKnown)
		_, err = w.Refund(ctx, "k", rental.RefundRequest{Refund: uuid.New(), Intent: id, Amount: 1, Currency: "EUR"})
		w.wants(err, rental.NotKnown)
		_, err = w.CreateIntent(ctx, "k", rental.IntentRequest{Payment: uuid.New(), Customer: id, Amount: 1, Currency: "EUR"})
		w.wants(err, rental.NotKnown)
		assert.NoError(t, w.Detach(ctx, id), "Detach of the id %q", id)
	}
}

func TestPayment_IsPreparedThenConfirmed(t *testing.T) {
	w := newWorld(t)
	card, r := w.card("pm_card_visa"), w.request(13_200, "EUR")
	prepared := w.prepare(r)
	if prepared.Status != rental.IntentPrepared || prepared.Amount != 0 || prepared.Attempt != "" || prepared.Secret == "" ||
		prepared.Decline != nil {
		t.Errorf("intent %v, want it prepared, with a secret and no attempt", prepared)
	}
	if again := w.prepare(r); again.ID != prepared.ID {
		t.Errorf("the same key prepared two intents: %v and %v", prepared, again)
	}
	paid, err := w.Confirm(t.Context(), "confirm", prepared.ID, card.Token)
	if err != nil || paid.Status != rental.IntentSucceeded || paid.Amount != 13_200 || paid.Attempt == "" {
		t.Fatalf("intent %v, %v; want 13200 paid", paid, err)
	}
	looked, err := w.Intent(t.Context(), prepared.ID)
	if err != nil || looked != paid {
		t.Errorf("queried as %v, %v; want the same intent", looked, err)
	}
	if m := w.only(); m.Charge != r.Payment.String() || m.Captured != 13_200 || m.Attempts != 1 || m.Currency != "EUR" {
		t.Errorf("payment %+v, want 13200 EUR in one attempt", m)
	}
	_, err = w.Confirm(t.Context(), "confirm-2", prepared.ID, card.Token)
	if f := w.failure(err, rental.WrongState); f.Intent == nil || f.Intent.Status != rental.IntentSucceeded {
		t.Errorf("failure %+v, want it with the succeeded intent", f)
	}
}

func TestHold_IsCapturedInPartOrReleased(t *testing.T) {
	w := newWorld(t)
	card := w.card("pm_card_amex")
	hold := func() rental.Intent {
		r := w.request(20_000, "EUR")
		r.Hold = true
		held, err := w.Confirm(t.Context(), uuid.NewString(), w.prepare(r).ID, card.Token)
		if err != nil || held.Status != rental.IntentHeld || held.Amount != 20_000 {
			t.Fatalf("intent %v, %v; want 20000 held", held, err)
		}
		return held
	}
	first, second := hold(), hold()
	if _, err := w.Capture(t.Context(), "too-much", first.ID, 20_001, "EUR"); err == nil {
		t.Error("more was captured than was held")
	} else {
		w.wants(err, rental.Refused)
	}
	taken, err := w.Capture(t.Context(), "capture", first.ID, 5_000, "EUR")
	if err != nil || taken.Status != rental.IntentSucceeded || taken.Amount != 5_000 {
		t.Errorf("intent %v, %v; want 5000 captured", taken, err)
	}
	freed, err := w.Cancel(t.Context(), "cancel", second.ID)
	if err != nil || freed.Status != rental.IntentCanceled || freed.Amount != 0 {
		t.Errorf("intent %v, %v; want it canceled", freed, err)
	}
	_, err = w.Cancel(t.Context(), "cancel-2", first.ID)
	w.wants(err, rental.WrongState)
	_, err = w.Capture(t.Context(), "capture-2", second.ID, 1, "EUR")
	w.wants(err, rental.WrongState)
}

func TestRefundOf_FindsTheRefundOfACharge(t *testing.T) {
	w := newWorld(t)
	paid := w.paid(13_200, "EUR", w.card("pm_card_visa").Token)
	var last rental.ChargeID
	for n := range 130 { // more than a page
		last = uuid.New()
		made, err := w.Refund(
			t.Context(), fmt.Sprint("refund-", n),
			rental.RefundRequest{Refund: last, Intent: paid.ID, Amount: 100, Currency: "EUR"},
		)
		if err != nil || made.Status != rental.RefundSucceeded || made.Amount != 100 {
			t.Fatalf("refund %+v, %v; want 100 refunded", made, err)
		}
		if n == 0 {
			defer func(first rental.ChargeID) {
				if found, ok, err := w.RefundOf(t.Context(), paid.ID, first); err != nil || !ok || found != made {
					t.Errorf("found %+v, %v, %v; want the first refund", found, ok, err)
				}
			}(last)
		}
	}
	found, ok, err := w.RefundOf(t.Context(), paid.ID, last)
	if err != nil || !ok {
		t.Fatalf("found %+v, %v, %v; want the last refund", found, ok, err)
	}
	if byID, err := w.RefundByID(t.Context(), found.ID); err != nil || byID != found {
		t.Errorf("by its id: %+v, %v; want the same refund", byID, err)
	}
	if _, ok, err := w.RefundOf(t.Context(), paid.ID, uuid.New()); err != nil || ok {
		t.Errorf("a charge without a refund: found %v, %v", ok, err)
	}
	_, err = w.Refund(t.Context(), "too-much", rental.RefundRequest{Refund: uuid.New(), Intent: paid.ID, Amount: 201, Currency: "EUR"})
	w.wants(err, rental.Refused)
	if _, err = w.Refund(t.Context(), "rest",
		rental.RefundRequest{Refund: uuid.New(), Intent: paid.ID, Amount: 200, Currency: "EUR"}); err != nil {
		t.Error(err)
	}
	_, err = w.Refund(t.Context(), "once-more", rental.RefundRequest{Refund: uuid.New(), Intent: paid.ID, Amount: 1, Currency: "EUR"})
	w.wants(err, rental.WrongState)
	if m := w.only(); m.Refunded != m.Captured {
		t.Errorf("payment %+v, want all of it refunded", m)
	}
	_, err = w.Refund(t.Context(), "of-nothing", rental.RefundRequest{Refund: uuid.New(), Intent: "pi_none", Amount: 1, Currency: "EUR"})
	w.wants(err, rental.NotKnown)
	_, err = w.RefundByID(t.Context(), "re_none")
	w.wants(err, rental.NotKnown)
}

func TestRefund_MaySucceedOrFailLater(t *testing.T) {
	for token, want := range map[string][2]rental.RefundStatus{
		"pm_card_pendingRefund": {rental.RefundPending, rental.RefundSucceeded},
		"pm_card_refundFail":    {rental.RefundSucceeded, rental.RefundFailed},
	} {
		w := newWorld(t)
		paid, charge := w.paid(1_000, "EUR", w.card(token).Token), uuid.New()
		made, err := w.Refund(t.Context(), "refund", rental.RefundRequest{Refund: charge, Intent: paid.ID, Amount: 1_000, Currency: "EUR"})
		if err != nil || made.Status != want[0] {
			t.Fatalf("%s: refund %+v, %v", token, made, err)
		}
		for deadline := time.Now().Add(time.Minute); made.Status != want[1] &&
			time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if made, err = w.RefundByID(t.Context(), made.ID); err != nil {
				t.Fatal(err)
			}
		}
		if made.Status != want[1] || (made.Why == "") != (made.Status != rental.RefundFailed) {
			t.Errorf("%s: later the refund is %+v", token, made)
		}
		if made.Status != rental.RefundFailed {
			continue
		}
		again, err := w.Refund(
			t.Context(), "refund-2",
			rental.RefundRequest{Refund: charge, Intent: paid.ID, Amount: 1_000, Currency: "EUR"},
		)
		require.NoError(t, err)
		if found, ok, err := w.RefundOf(t.Context(), paid.ID, charge); err != nil || !ok || found.ID != again.ID {
			t.Errorf("found %+v, %v, %v; want the refund that did not fail", found, ok, err)
		}
	}
}

func TestProcessor_FindsAPaymentByItsIdentity(t *testing.T) {
	w := newWorld(t)
	card := w.card("pm_card_visa")
	r := w.request(1_000, "EUR")
	if in, found, err := w.IntentOf(t.Context(), r); found || err != nil {
		t.Fatalf("before it is made: %v, %v, %v", in, found, err)
	}
	// The first is paid; of the second only the creation had a response.
	paid, err := w.Confirm(t.Context(), uuid.NewString(), w.prepare(r).ID, card.Token)
	require.NoError(t, err)
	_, err = w.CreateIntent(t.Context(), uuid.NewString(), r)
	require.NoError(t, err)
	if in, found, err := w.IntentOf(t.Context(), r); !found || err != nil || in.ID != paid.ID || in.Status != rental.IntentSucceeded {
		t.Errorf("found %v, %v, %v; want %v", in, found, err, paid)
	}
	other, err := w.CreateCustomer(t.Context(), uuid.NewString(), rental.Client{ID: 9})
	require.NoError(t, err)
	of := r
	of.Customer = other
	if in, found, err := w.IntentOf(t.Context(), of); found || err != nil {
		t.Errorf("of another customer: %v, %v, %v", in, found, err)
	}
	of = r
	of.Amount, of.Currency = 2_000, "USD"
	if in, found, err := w.IntentOf(t.Context(), of); !found || err != nil || in.Requested != 1_000 || in.Currency != "EUR" {
		t.Errorf("for another amount: %+v, %v, %v; want what it was made for", in, found, err)
	}
}

// An amount that Stripe cannot charge exactly is still the amount that was requested.
func TestProcessor_FindsARoundedPaymentWithItsAmount(t *testing.T) {
	w := newWorld(t)
	r := w.request(5_125, "KWD")
	w.prepare(r)
	if in, found, err := w.IntentOf(t.Context(), r); !found || err != nil || in.Requested != r.Amount || in.Currency != r.Currency {
		t.Errorf("found %+v, %v, %v; want it for %d %s", in, found, err, r.Amount, r.Currency)
	}
}

func TestProcessor_ListsPaymentsPageByPage(t *testing.T) {
	w := newWorld(t)
	card := w.card("pm_card_visa")
	r := w.request(1_000, "EUR")
	taken, err := w.Confirm(t.Context(), uuid.NewString(), w.prepare(r).ID, card.Token)
	require.NoError(t, err)
	_, err = w.Refund(t.Context(), uuid.NewString(),
		rental.RefundRequest{Refund: uuid.New(), Intent: taken.ID, Amount: 300, Currency: "EUR"})
	require.NoError(t, err)
	hold := w.request(1_000, "EUR")
	hold.Hold = true
	held, err := w.Confirm(t.Context(), uuid.NewString(), w.prepare(hold).ID, card.Token)
	require.NoError(t, err)
	const prepared = 100
	for range prepared {
		w.prepare(w.request(1_000, "EUR"))
	}
	since := time.Now().Add(-time.Minute)
	all, next, err := w.Intents(t.Context(), since, "")
	if err != nil || len(all) != 100 || next == "" {
		t.Fatalf("%d payments on the first page, next %q, %v; want 100 and another page", len(all), next, err)
	}
	rest, next, err := w.Intents(t.Context(), since, next)
	if err != nil || len(rest) != 2 || next != "" {
		t.Fatalf("%d payments on the second page, next %q, %v; want 2 and no other page", len(rest), next, err)
	}
	if i := all[0]; i.Status != rental.IntentPrepared || i.Remains() != 0 {
		t.Errorf("%+v is not prepared", i)
	}
	if i := rest[0]; i.ID != held.ID || i.Payment != hold.Payment || i.Remains() != 1_000 {
		t.Errorf("%+v, want the held payment", i)
	}
	if i := rest[1]; i.ID != taken.ID || i.Payment != r.Payment || i.Customer != r.Customer || i.Currency != "EUR" || i.Remains() != 700 ||
		i.Metadata["booking"] != r.Metadata["booking"] || i.Created.Before(since) || i.Created.After(time.Now()) {
		t.Errorf("%+v, want the payment that was taken, and refunded in part", i)
	}
	if none, next, err := w.Intents(t.Context(), time.Now().Add(time.Minute), ""); err != nil || len(none) != 0 || next != "" {
		t.Errorf("since the future: %v, %q, %v; want none", none, next, err)
	}
}
