package stripe_test

import (
	"testing"

	"github.com/google/uuid"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/simulator/sandbox"
)

func TestDecline_HasTheReason(t *testing.T) {
	for token, want := range map[string]rental.Decline{
		"pm_card_visa_chargeDeclined":                  {Code: "generic_decline"},
		"pm_card_visa_chargeDeclinedInsufficientFunds": {Code: "insufficient_funds"},
		"pm_card_visa_chargeDeclinedLostCard":          {Code: "lost_card", Hard: true},
		"pm_card_visa_chargeDeclinedStolenCard":        {Code: "stolen_card", Hard: true},
		"pm_card_chargeDeclinedExpiredCard":            {Code: "expired_card"},
		"pm_card_chargeDeclinedIncorrectCvc":           {Code: "incorrect_cvc"},
		"pm_card_chargeDeclinedProcessingError":        {Code: "processing_error"},
	} {
		t.Run(token, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.Attach(t.Context(), w.customerOf(), token)
			got := *w.failure(err, rental.CardRefused).Decline
			if got.Message == "" {
				t.Error("the decline has no message")
			}
			if got.Message = ""; got != want {
				t.Errorf("decline %+v, want %+v", got, want)
			}
		})
	}
}

func TestDecline_PaymentCanBeRetried(t *testing.T) {
	w := newWorld(t)
	bad, good := w.card("pm_card_chargeCustomerFail"), w.card("pm_card_mastercard")
	prepared := w.prepare(w.request(1_000, "EUR"))
	_, err := w.Confirm(t.Context(), "attempt-1", prepared.ID, bad.Token)
	f := w.failure(err, rental.CardRefused)
	if f.Decline.Code != "generic_decline" || f.Decline.Hard || f.Decline.Action {
		t.Errorf("decline %+v, want a soft generic_decline", f.Decline)
	}
	if f.Intent == nil || f.Intent.ID != prepared.ID || f.Intent.Status != rental.IntentPrepared || f.Intent.Attempt == "" ||
		f.Intent.Decline == nil {
		t.Fatalf("intent %+v, want it prepared, with the attempt and its decline", f.Intent)
	}
	looked, err := w.Intent(t.Context(), prepared.ID)
	if err != nil || looked.Attempt != f.Intent.Attempt || *looked.Decline != *f.Decline {
		t.Errorf("queried as %v, %v; want the same attempt and decline", looked, err)
	}
	// The same key repeats the same attempt.
	_, err = w.Confirm(t.Context(), "attempt-1", prepared.ID, bad.Token)
	if again := w.failure(err, rental.CardRefused); again.Intent.Attempt != f.Intent.Attempt {
		t.Errorf("intent %+v, want the same attempt", again.Intent)
	}
	paid, err := w.Confirm(t.Context(), "attempt-2", prepared.ID, good.Token)
	if err != nil || paid.Status != rental.IntentSucceeded || paid.Attempt == f.Intent.Attempt || paid.Decline != nil {
		t.Errorf("intent %v, %v; want it succeeded by another attempt", paid, err)
	}
	if m := w.only(); m.Attempts != 2 || m.Approved != 1 || m.Captured != 1_000 {
		t.Errorf("payment %+v, want two attempts and 1000 once", m)
	}
}

func TestDecline_HardByItsCodeOrTheIssuersAdvice(t *testing.T) {
	w := newWorld(t)
	card := w.card("pm_card_visa")
	for behaviour, hard := range map[sandbox.Behaviour]bool{
		{Decline: "insufficient_funds"}:                           false,
		{Decline: "call_issuer"}:                                  false,
		{Decline: "call_issuer", Advice: "try_again_later"}:       false,
		{Decline: "call_issuer", Advice: "do_not_try_again"}:      true,
		{Decline: "do_not_try_again"}:                             true,
		{Decline: "pickup_card"}:                                  true,
		{Decline: "restricted_card"}:                              true,
		{Decline: "stolen_card"}:                                  true,
		{Decline: "revocation_of_authorization"}:                  true,
		{Decline: "generic_decline", Advice: "confirm_card_data"}: false,
	} {
		require.NoError(t, w.there.SetCard(card.Token, behaviour))
		prepared := w.prepare(w.request(1_000, "EUR"))
		_, err := w.Confirm(t.Context(), uuid.NewString(), prepared.ID, card.Token)
		f := w.failure(err, rental.CardRefused)
		looked, lookErr := w.Intent(t.Context(), prepared.ID)
		if lookErr != nil || f.Decline.Hard != hard || looked.Decline.Hard != hard || looked.Decline.Code != behaviour.Decline ||
			*f.Intent.Decline != *f.Decline {
			t.Errorf("behaviour %+v: decline %+v, queried as %+v, %v", behaviour, f.Decline, looked.Decline, lookErr)
		}
	}
}

func TestDecline_OwnerConfirmsThePayment(t *testing.T) {
	w := newWorld(t)
	card := w.card("pm_card_authenticationRequired")
	prepared := w.prepare(w.request(1_000, "EUR"))
	_, err := w.Confirm(t.Context(), "attempt-1", prepared.ID, card.Token)
	f := w.failure(err, rental.CardRefused)
	if f.Decline.Code != "authentication_required" || !f.Decline.Action || f.Decline.Hard || f.Intent.Status != rental.IntentAction {
		t.Errorf("decline %+v of the intent %v, want an action of the owner", f.Decline, f.Intent)
	}
	waiting, err := w.Intent(t.Context(), prepared.ID)
	if err != nil || waiting.Status != rental.IntentAction || !waiting.Decline.Action || waiting.Secret == "" {
		t.Errorf("queried as %v, %v; want it waiting for the owner", waiting, err)
	}
	w.byOwner(waiting)
	paid, err := w.Intent(t.Context(), prepared.ID)
	if err != nil || paid.Status != rental.IntentSucceeded || paid.Amount != 1_000 || paid.Decline != nil {
		t.Errorf("intent %v, %v; want 1000 paid", paid, err)
	}
}

func TestDecline_DetachedCardIsHard(t *testing.T) {
	w := newWorld(t)
	gone := w.card("pm_card_visa")
	require.NoError(t, w.Detach(t.Context(), gone.Token))
	prepared := w.prepare(w.request(1_000, "EUR"))
	for _, token := range []string{gone.Token, "pm_unknown", "", "../pm"} {
		_, err := w.Confirm(t.Context(), uuid.NewString(), prepared.ID, token)
		if f := w.failure(err, rental.CardRefused); !f.Decline.Hard || f.Decline.Action {
			t.Errorf("%s: decline %+v, want a hard one", token, f.Decline)
		}
	}
	_, err := w.Confirm(t.Context(), uuid.NewString(), "pi_unknown", gone.Token)
	w.wants(err, rental.NotKnown)
	if m := w.only(); m.Attempts != 0 {
		t.Errorf("payment %+v, want no attempt", m)
	}
}
