package rentaltest

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/rental"
)

func whichCard(t *testing.T, r ChargeRecord) {
	client := r.Client()
	c := r.Add(client, due(rental.FeeCharge))
	job := mustTake(t, r.Here, c.ID)
	if job.Card != nil {
		t.Fatalf("a client without a card pays with %+v", job.Card)
	}
	must(
		t, settle(t, r.Here), job,
		rental.Result{State: rental.Declined, DeclineCode: "no_card", NextAttempt: time.Now().Add(-time.Second)},
	)
	first := r.GiveCard(client, NewCard())
	second := r.GiveCard(client, NewCard())
	job = mustTake(t, r.Here, c.ID)
	if job.Card == nil || job.Card.ID != first.ID {
		t.Fatalf("the default is %d, not %+v", first.ID, job.Card)
	}
	must(t, write(t, r.Here), job, confirming(job, newIntent()))
	r.SetDefault(client, second)
	must(t, settle(t, r.Here), job, rental.Result{State: rental.Unknown, NextAttempt: time.Now().Add(-time.Second)})
	if job = mustTake(t, r.Here, c.ID); job.Card == nil || job.Card.ID != first.ID {
		t.Errorf("what was asked with card %d goes on with %+v", first.ID, job.Card)
	}
}

func barredCard(t *testing.T, r ChargeRecord) {
	client, card, c := r.withCard(rental.FeeCharge)
	job := mustTake(t, r.Here, c.ID)
	must(t, write(t, r.Here), job, confirming(job, newIntent()))
	must(t, settle(t, r.Here), job, rental.Result{State: rental.Failed, Declined: true, Hard: true, DeclineCode: "stolen_card"})
	mustNotBeDue(t, r.Here, c.ID)
	other := r.newDefault(client)
	job = mustTake(t, r.Here, c.ID)
	if job.Card == nil || job.Card.ID != other.ID || job.Declines != 0 {
		t.Fatalf("job %+v, want it with card %d", job, other.ID)
	}
	must(t, write(t, r.Here), job, rental.Result{State: rental.Unknown, CountAttempt: true, Card: job.Card})
	must(
		t, settle(t, r.Here), job,
		rental.Result{
			State: rental.Declined, RefusedCard: other.Token, DeclineCode: "card_gone",
			NextAttempt: time.Now().Add(-time.Second),
		},
	)
	r.SetDefault(client, card)
	if job, ok := take(t, r.Here, c.ID, longLease); ok && job.Card != nil {
		t.Errorf("a card that must not be tried again is given out: %+v", job.Card)
	}
}

func newDefaultMeanwhile(t *testing.T, r ChargeRecord) {
	for _, asked := range []bool{false, true} {
		client, _, c := r.withCard(rental.FeeCharge)
		job := mustTake(t, r.Here, c.ID)
		must(t, write(t, r.Here), job, confirming(job, newIntent()))
		if !asked { // it waits for tomorrow when the worker takes it
			must(t, settle(t, r.Here), job, declinedFor(-time.Second))
			job = mustTake(t, r.Here, c.ID)
		}
		other := r.newDefault(client)
		if !asked {
			mustNot(t, write(t, r.Here), job, rental.Result{State: rental.Unknown, CountAttempt: true, Card: job.Card})
		} else {
			must(
				t, settle(t, r.Here), job,
				rental.Result{State: rental.Failed, Declined: true, Hard: true, NextAttempt: time.Now().Add(time.Hour)},
			)
		}
		again := mustTake(t, r.There, c.ID)
		if again.QueryOnly || again.Declines != 0 || again.Card == nil || again.Card.ID != other.ID {
			t.Errorf("asked %v: job %+v, want it with card %d", asked, again, other.ID)
		}
	}
}

func hopeless(t *testing.T, r ChargeRecord) {
	client, _, c := r.withCard(rental.FeeCharge)
	refusal := rental.Result{State: rental.Failed, DeclineCode: "refused", NotRetryable: true}
	must(t, settle(t, r.Here), mustTake(t, r.Here, c.ID), refusal) // before any card was tried
	mustNotBeDue(t, r.Here, c.ID)
	r.newDefault(client)
	must(t, settle(t, r.There), mustTake(t, r.There, c.ID), refusal)
	mustNotBeDue(t, r.Here, c.ID)
}

func newDefaultBefore(t *testing.T, r ChargeRecord) {
	client, _, c := r.withCard(rental.FeeCharge)
	job := mustTakeFor(t, r.Here, c.ID, shortLease)
	must(t, write(t, r.Here), job, confirming(job, newIntent()))
	other := r.newDefault(client)
	again := takeInTime(t, r.There, c.ID)
	must(t, write(t, r.There), again, rental.Result{State: rental.Unknown, CountAttempt: true, Card: job.Card})
	must(t, settle(t, r.There), again, declinedFor(time.Hour))
	if job := mustTake(t, r.Here, c.ID); job.QueryOnly || job.Card == nil || job.Card.ID != other.ID {
		t.Errorf("job %+v, want it with card %d", job, other.ID)
	}
}

// newDefaultAtLast sets another default after the card was chosen, and before the worker stores
// that it tries the card.
func newDefaultAtLast(t *testing.T, r ChargeRecord) {
	client, _, c := r.withCard(rental.FeeCharge)
	job := mustTake(t, r.Here, c.ID)
	other := r.newDefault(client)
	must(t, write(t, r.Here), job, confirming(job, newIntent()))
	must(t, settle(t, r.Here), job, declinedFor(time.Hour))
	if job := mustTake(t, r.There, c.ID); job.QueryOnly || job.Declines != 0 || job.Card == nil || job.Card.ID != other.ID {
		t.Errorf("job %+v, want it with card %d", job, other.ID)
	}
}

func anotherGoal(t *testing.T, r ChargeRecord) {
	for _, asked := range []bool{false, true} {
		_, _, c := r.withCard(rental.DepositCharge)
		job := mustTake(t, r.Here, c.ID)
		if asked {
			must(t, write(t, r.Here), job, confirming(job, newIntent()))
		}
		r.Amend(c, rental.Release, 0)
		if !asked {
			mustNot(t, write(t, r.Here), job, confirming(job, newIntent()))
		} else {
			must(t, settle(t, r.Here), job, rental.Result{State: rental.Authorized, Settled: c.Amount})
		}
		if again := mustTake(t, r.There, c.ID); again.QueryOnly || again.Goal != rental.Release {
			t.Errorf("asked %v: job %+v", asked, again)
		}
	}
}

func namesPayment(t *testing.T, r ChargeRecord) {
	client, _, paid := r.withCard(rental.FeeCharge)
	intent := newIntent()
	must(t, settle(t, r.Here), mustTake(t, r.Here, paid.ID), rental.Result{State: rental.Paid, Intent: intent, Settled: paid.Amount})
	refund := due(rental.RefundCharge)
	refund.Refunds, refund.Amount, refund.Booking = paid.ID, 100, paid.Booking
	refund = r.Add(client, refund)
	job := mustTake(t, r.Here, refund.ID)
	assert.Equal(t, job.Payment, intent, "the payment that it gives back")
	must(t, settle(t, r.Here), job, rental.Result{State: rental.Paid, Intent: "re_" + uuid.NewString(), Settled: 100})
	id := r.Charge(refund.ID).Intent
	if state, woken, err := r.Here.WakeCharge(t.Context(), id); state != rental.Paid || !woken || err != nil {
		t.Fatalf("WakeCharge = %q, %v, %v: a refund may still come back", state, woken, err)
	}
	job = mustTake(t, r.Here, refund.ID)
	must(t, settle(t, r.Here), job, rental.Result{State: rental.Failed, DeclineCode: "lost_or_stolen_card"})
	if is := r.Charge(refund.ID); is.State != rental.Failed || is.Settled != 0 || !is.PaidAt.IsZero() {
		t.Errorf("the refund is %+v", is)
	}
}
