package charging_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/charging"
	"motorpool/rental/rentaltest"
	"motorpool/simulator/sandbox"
)

func TestCharge_IsPaidWhenDue(t *testing.T) {
	for _, kind := range []rental.ChargeKind{rental.StartCharge, rental.ExtensionCharge, rental.FeeCharge} {
		t.Run(string(kind), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				client, cards := w.client(pays)
				charge := w.add(client, kind)
				c := w.collect(nil)
				w.after(2 * time.Second)
				w.wantState(charge, rental.Paid)
				w.wantOnce(charge)
				is := w.is(charge)
				if is.Method != cards[0].ID || is.PaidAt.IsZero() || is.AttemptID == "" || is.Attempts != 1 {
					t.Errorf("the charge is %+v, want one attempt with the default card", is)
				}
				lines := w.ledger.Entries()
				if len(lines) != 1 || lines[0].Outcome != "executed" || lines[0].Details["amount"] != "132.00" ||
					lines[0].Details["currency"] != "EUR" ||
					lines[0].Booking != 1 {
					t.Errorf("audit entries %+v, want one of 132.00 EUR", lines)
				}
				if n := metric(t, c, `charges_total{kind="`+string(kind)+`", state="paid"}`); n != 1 ||
					metric(t, c, "charge_attempts_total") < 1 {
					t.Errorf("the metrics count %d charges paid, %d attempts; want 1 and at least 1", n,
						metric(t, c, "charge_attempts_total"))
				}
			})
		})
	}
}

func TestDunning_RetriesAfterAnHourADayThreeDaysAndAWeek(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.every = time.Minute
		client, _ := w.client(broke)
		charge := w.add(client, rental.StartCharge)
		w.collect(nil)
		w.after(2 * time.Minute)
		for declines, wait := range []time.Duration{time.Hour, 24 * time.Hour, 3 * 24 * time.Hour, 7 * 24 * time.Hour} {
			w.wantState(charge, rental.Declined)
			if is := w.is(charge); is.Declines != declines+1 || is.DeclineCode != "insufficient_funds" {
				t.Fatalf("after %d declines: %+v", declines+1, is)
			}
			if left := time.Until(w.is(charge).NextAttempt); left > wait || left < wait-10*time.Minute {
				t.Fatalf("after %d declines the next attempt is in %v, want %v", declines+1, left, wait)
			}
			w.after(time.Until(w.is(charge).NextAttempt) - time.Minute)
			if is := w.is(charge); is.Attempts != declines+1 {
				t.Fatalf("attempted %d times before %v had passed", is.Attempts, wait)
			}
			w.after(3 * time.Minute)
			if is := w.is(charge); is.Attempts != declines+2 {
				t.Fatalf("attempted %d times after %v", is.Attempts, wait)
			}
		}
		w.wantState(charge, rental.Failed)
		w.after(8 * 24 * time.Hour) // longer than any pause
		if is := w.is(charge); is.Attempts != 5 || !is.NextAttempt.IsZero() {
			t.Fatalf("a charge that failed finally is retried: %+v", is)
		}

		second := w.card(client, pays)
		w.ledger.SetDefault(client, second)
		w.after(2 * time.Minute)
		w.wantState(charge, rental.Paid)
		w.wantOnce(charge)
		assert.Equal(t, w.is(charge).Method, second.ID, "paid with card")
		if got := w.lines(rental.StartCharge); !slices.Equal(got,
			[]string{"declined", "declined", "declined", "declined", "failed", "paid"}) {
			t.Errorf("audit entries %v", got)
		}
	})
}

// The processor sends a notice of each decline, too. It does not cause an earlier attempt.
func TestDunning_NoticeOfADeclineCausesNoAttempt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.client(broke)
		charge := w.add(client, rental.FeeCharge)
		c := w.collect(nil)
		w.after(time.Minute)
		if metric(t, c, wokenNotices) == 0 || w.notices.Open() != 0 {
			t.Fatalf("%d notices woke the charge and %d are open, want some and none", metric(t, c, wokenNotices), w.notices.Open())
		}
		is := w.is(charge)
		if is.Attempts != 1 || is.Declines != 1 || is.State != rental.Declined || time.Until(is.NextAttempt) < 55*time.Minute {
			t.Errorf("the charge is %+v, want one attempt and the next in an hour", is)
		}
	})
}

func TestDunning_AHardDeclineBarsTheCard(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.every = time.Hour
		client, cards := w.client(stolen)
		charge := w.add(client, rental.StartCharge)
		w.collect(nil)
		w.after(60 * 24 * time.Hour)
		w.wantState(charge, rental.Failed)
		if is := w.is(charge); is.Attempts != 1 || is.DeclineCode != "stolen_card" {
			t.Fatalf("the charge is %+v, want one attempt, stolen_card", is)
		}
		second := w.card(client, broke)
		w.ledger.SetDefault(client, second)
		w.after(2 * time.Hour)
		w.wantState(charge, rental.Declined)
		w.ledger.SetDefault(client, cards[0])
		w.after(60 * 24 * time.Hour)
		third := w.card(client, pays)
		w.ledger.SetDefault(client, third)
		w.after(2 * time.Hour)
		w.wantState(charge, rental.Paid)
		w.wantOnce(charge)
	})
}

func TestCharge_CardUnknownToTheProcessorIsReplacedByTheDefault(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, cards := w.client(pays, gone)
		charge := w.add(client, rental.FeeCharge)
		w.ledger.SetDefault(client, cards[1])
		w.collect(nil)
		w.after(time.Minute)
		w.wantState(charge, rental.Declined)
		if is := w.is(charge); is.DeclineCode != "no_card" || !is.NextAttempt.IsZero() || is.Attempts != 1 {
			t.Fatalf("without another card the charge is %+v, want no_card and no further attempt", is)
		}
		w.ledger.SetDefault(client, cards[0])
		w.after(time.Minute)
		w.wantState(charge, rental.Paid)
		w.wantOnce(charge)
		assert.EqualSlices(t, w.lines(rental.FeeCharge), []string{"declined", "declined", "paid"}, "audit entries")
	})
}

// The notice that a card was detached in the processor's dashboard may be lost, and then its client
// could not add it again.
func TestCharge_CardThatTheProcessorHasLostIsRemoved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, cards := w.client(pays)
		w.collect(nil)
		w.bank.Tell(nil)
		require.NoError(t, w.bank.Detach(t.Context(), cards[0].Token))
		charge := w.add(client, rental.FeeCharge)
		w.after(time.Minute)
		w.wantState(charge, rental.Declined)
		assert.EqualSlices(t, w.cards.dropped, []string{cards[0].Token}, "removed cards")
	})
}

func TestCharge_WithoutACardIsPaidWithTheFirstAdded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.client()
		charge := w.add(client, rental.FeeCharge)
		w.collect(nil)
		w.after(time.Minute)
		w.wantState(charge, rental.Declined)
		if calls := w.changes(); len(calls) != 0 || w.is(charge).DeclineCode != "no_card" {
			t.Fatalf("calls of the bank %v, the charge is %+v; want none and no_card", calls, w.is(charge))
		}
		w.card(client, pays)
		w.after(time.Minute)
		w.wantState(charge, rental.Paid)
		w.wantOnce(charge)
	})
}

// Notices may be lost: no secret is set, the address is wrong, or the service was unavailable for
// longer than they are repeated.
func TestCharge_ConfirmedByItsOwnerIsPaid(t *testing.T) {
	for _, noticed := range []bool{true, false} {
		inWorld(t, func(t *testing.T, w *world) {
			within := 2 * time.Minute
			if !noticed {
				w.bank.Tell(nil)
				within = 2 * time.Hour
			}
			w.every = time.Minute
			client, _ := w.client(asksFor)
			charge := w.add(client, rental.StartCharge)
			w.collect(nil)
			w.after(2 * 24 * time.Hour)
			w.wantState(charge, rental.RequiresAction)
			if is := w.is(charge); is.Attempts != 1 || is.DeclineCode != "authentication_required" {
				t.Fatalf("the charge is %+v, want one attempt, authentication_required", is)
			}
			w.ownerConfirms(charge)
			w.after(within)
			w.wantState(charge, rental.Paid)
			w.wantOnce(charge)
			if is := w.is(charge); is.Attempts != 1 || is.DeclineCode != "" {
				t.Errorf("the charge is %+v, want no second attempt and no decline code", is)
			}
		})
	}
}

// withoutAttemptIDs is a processor whose responses name no attempt.
type withoutAttemptIDs struct{ rental.Processor }

func (p withoutAttemptIDs) Confirm(ctx context.Context, key, intent, token string) (rental.Intent, error) {
	in, err := p.Processor.Confirm(ctx, key, intent, token)
	in.Attempt = ""
	if f := (*rental.ProcessorError)(nil); errors.As(err, &f) && f.Intent != nil {
		f.Intent.Attempt = ""
	}
	return in, err
}

func (p withoutAttemptIDs) Intent(ctx context.Context, intent string) (rental.Intent, error) {
	in, err := p.Processor.Intent(ctx, intent)
	in.Attempt = ""
	return in, err
}

func TestCharge_SecondCardThatNeedsConfirmationIsTriedOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.client(asksFor)
		charge := w.add(client, rental.StartCharge)
		w.collect(func(c *charging.Config) { c.Processor = withoutAttemptIDs{w.bank} })
		w.after(time.Minute)
		w.wantState(charge, rental.RequiresAction)
		w.ledger.SetDefault(client, w.card(client, asksFor))
		w.after(time.Hour)
		w.wantState(charge, rental.RequiresAction)
		if is := w.is(charge); is.Attempts != 2 {
			t.Errorf("the charge is %+v, want two attempts", is)
		}
	})
}

// A processor that is busy, or refuses our credentials, has not declined a card.
func TestCharge_UnavailableProcessorIsNoDecline(t *testing.T) {
	for _, kind := range []sandbox.FaultKind{sandbox.TooMany, sandbox.BadKey, sandbox.HangBefore} {
		inWorld(t, func(t *testing.T, w *world) {
			w.bank.FailWith(func(rentaltest.Call) rentaltest.Fault { return rentaltest.Fault{Kind: kind} })
			client, _ := w.client(pays)
			charge := w.add(client, rental.StartCharge)
			w.collect(nil)
			w.after(2 * time.Hour)
			if is := w.is(charge); is.State != rental.Pending || is.Declines != 0 {
				t.Fatalf("fault %s: the charge is %+v, want it pending without a decline", kind, is)
			}
			assert.Equal(t, len(w.bank.Asked("Confirm")), 0, "fault %s: confirmations", kind)
			w.bank.FailWith(nil)
			w.after(6 * time.Minute)
			w.wantState(charge, rental.Paid)
			w.wantOnce(charge)
		})
	}
}

// The card is not the reason: neither the default nor another card is tried second after second.
func TestCharge_RefusedByTheProcessorIsNotRetried(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.client(pays)
		charge := w.add(client, rental.FeeCharge)
		c := w.collect(func(config *charging.Config) {
			config.Processor = failing{w.bank, "create", &rental.ProcessorError{Kind: rental.Refused, Cause: errors.New("too large")}}
		})
		w.after(time.Hour)
		w.wantState(charge, rental.Failed)
		if is := w.is(charge); !is.NextAttempt.IsZero() || is.DeclineCode != "refused" {
			t.Errorf("the charge is %+v, want it refused without a further attempt", is)
		}
		if lines, taken := w.lines(rental.FeeCharge), metric(t, c, "charge_attempts_total"); len(lines) != 1 || taken != 1 {
			t.Errorf("audit entries %v and %d attempts, want one of each", lines, taken)
		}
		w.ledger.SetDefault(client, w.card(client, pays))
		w.after(time.Hour)
		if lines := w.lines(rental.FeeCharge); len(lines) != 2 {
			t.Errorf("after another default the audit entries are %v, want two", lines)
		}
	})
}

func TestCharge_CancelledAtTheProcessorIsNotRetriedWithAnotherCard(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.client(broke)
		charge := w.add(client, rental.FeeCharge)
		c := w.collect(nil)
		w.after(time.Minute)
		_, err := w.bank.Cancel(t.Context(), "by hand", w.is(charge).Intent)
		require.NoError(t, err)
		w.ledger.SetDefault(client, w.card(client, pays))
		w.after(time.Minute)
		w.wantState(charge, rental.Failed)
		before := metric(t, c, "charge_attempts_total")
		w.after(time.Hour)
		if is := w.is(charge); !is.NextAttempt.IsZero() || is.DeclineCode != "canceled" || metric(t, c, "charge_attempts_total") != before {
			t.Errorf("attempted %d more times: %+v", metric(t, c, "charge_attempts_total")-before, is)
		}
		assert.EqualSlices(t, w.lines(rental.FeeCharge), []string{"declined", "failed"}, "audit entries")
	})
}
