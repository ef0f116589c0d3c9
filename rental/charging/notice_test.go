package charging_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/charging"
	"motorpool/simulator/sandbox"
)

func (w *world) notify(id string, k rental.NoticeKind, object string) {
	w.t.Helper()
	require.NoError(w.t, w.notices.Keep(w.t.Context(), rental.Notice{ID: id, Type: "any", Object: object, Kind: k}))
}

func TestNotice_AboutACardUpdatesTheRecord(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bank.Issue(rental.Card{Token: "pm_renewed", ExpYear: 2031}, "cus_1", pays)
		w.bank.Issue(rental.Card{Token: "pm_detached"}, "", pays)
		c := w.collect(nil)
		w.notify("1", rental.AboutCard, "pm_renewed")
		w.notify("2", rental.AboutCard, "pm_detached")
		w.notify("3", rental.AboutCard, "pm_deleted")
		w.after(time.Minute)
		slices.Sort(w.cards.dropped)
		if !slices.Equal(w.cards.dropped, []string{"pm_deleted", "pm_detached"}) {
			t.Errorf("dropped the cards %v, want pm_deleted and pm_detached", w.cards.dropped)
		}
		if len(w.cards.refreshed) != 1 || w.cards.refreshed[0].Token != "pm_renewed" || w.cards.refreshed[0].ExpYear != 2031 {
			t.Errorf("refreshed the cards %v, want pm_renewed until 2031", w.cards.refreshed)
		}
		if n := metric(t, c, cardNotices); n != 3 || w.notices.Open() != 0 {
			t.Errorf("%d notices of cards and %d open, want 3 and 0", n, w.notices.Open())
		}
	})
}

// Staff read it at the booking: only they can answer.
func TestNotice_DisputeIsInTheAuditLog(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.client(pays)
		charge := w.add(client, rental.StartCharge)
		c := w.collect(nil)
		w.after(time.Minute)
		w.wantState(charge, rental.Paid)
		require.NoError(t, w.notices.Keep(t.Context(), rental.Notice{
			ID: "1", Type: "charge.dispute.closed lost", Object: w.is(charge).Intent, Kind: rental.AboutDispute,
		}))
		w.notify("2", rental.AboutDispute, "pi_other")
		w.after(time.Minute)
		last := w.ledger.Entries()[len(w.ledger.Entries())-1]
		if last.Action != rental.ChargeDispute || last.Booking != 1 || metric(t, c, unknownNotices) != 1 || w.notices.Open() != 0 ||
			last.Details["notice"] != "charge.dispute.closed" || last.Details["status"] != "lost" ||
			metric(t, c, `payment_notices_handled_total{result="disputed"}`) != 1 || metric(t, c, wokenNotices) != 0 {
			t.Errorf("the last entry %+v, %d notices open", last, w.notices.Open())
		}
	})
}

// noCards is a processor whose payment methods are no cards.
type noCards struct{ rental.Processor }

func (noCards) Card(context.Context, string) (rental.Card, string, error) {
	return rental.Card{}, "", &rental.ProcessorError{Kind: rental.Refused, Cause: errors.New("this payment method is not a card")}
}

// The account may be shared with other services, whose customers use other payment methods.
func TestNotice_AboutAnotherPaymentMethodIsHandled(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		c := w.collect(func(c *charging.Config) { c.Processor = noCards{w.bank} })
		w.notify("1", rental.AboutCard, "pm_sepa")
		w.after(time.Minute)
		if metric(t, c, unknownNotices) != 1 || metric(t, c, failedNotices) != 0 || w.notices.Open() != 0 || len(w.cards.dropped) != 0 {
			t.Errorf("%d notices open, dropped the cards %v; want none of both", w.notices.Open(), w.cards.dropped)
		}
	})
}

func TestNotice_FailedHandlingIsRetried(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bank.FailAll("Card", sandbox.TooMany)
		c := w.collect(nil)
		w.notify("1", rental.AboutCard, "pm_1")
		w.after(10 * time.Minute)
		if n := metric(t, c, failedNotices); n < 4 || n > 7 || w.notices.Open() != 1 {
			t.Fatalf("failed %d times in 10 minutes with %d open, want 4 to 7 times and 1", n, w.notices.Open())
		}
		w.bank.FailWith(nil)
		w.after(6 * time.Minute)
		if len(w.cards.dropped) != 1 || w.notices.Open() != 0 {
			t.Errorf("dropped the cards %v with %d notices open, want one card and none", w.cards.dropped, w.notices.Open())
		}
	})
}

func TestNotice_OfAnUnknownOrSettledObjectIsHandled(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.client(pays)
		c := w.collect(nil)
		charge := w.paid(client)
		before := w.is(charge)
		w.notify("1", rental.AboutIntent, "pi_of_somebody")
		w.notify("2", rental.AboutOther, "dp_1")
		w.notify("3", rental.AboutIntent, before.Intent)
		w.after(time.Minute)
		if w.notices.Open() != 0 || metric(t, c, unknownNotices) < 2 || metric(t, c, finalNotices) < 1 {
			t.Errorf(
				"%d notices open, %d of unknown objects, %d of final charges; want 0, at least 2 and 1",
				w.notices.Open(), metric(t, c, unknownNotices), metric(t, c, finalNotices),
			)
		}
		if after := w.is(charge); after != before {
			t.Errorf("the charge became %+v, want it unchanged", after)
		}
	})
}
