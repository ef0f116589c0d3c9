package charging_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/rental"
	"motorpool/rental/charging"
	"motorpool/rental/rentaltest"
	"motorpool/simulator/sandbox"
)

// paid returns a paid charge.
func (w *world) paid(client rental.ClientID) rental.Charge {
	w.t.Helper()
	charge := w.add(client, rental.StartCharge)
	w.after(time.Minute)
	w.wantState(charge, rental.Paid)
	return charge
}

func (w *world) wantGivenBack(refund rental.Charge) {
	w.t.Helper()
	if e := w.bank.Of(refund.ID); e.Refunds != 1 || e.Returned != refund.Amount || w.is(refund).Settled != refund.Amount {
		w.t.Errorf("the bank has %+v, our record %+v, want one full refund; calls of the bank %v", e, w.is(refund), w.bank.Calls())
	}
}

func TestRefund_IsMadeOnceDespiteEveryFault(t *testing.T) {
	for _, method := range []string{"Refund", "RefundOf", "RefundByID"} {
		for _, kind := range rentaltest.FaultKinds {
			t.Run(fmt.Sprintf("%s, fault %s", method, kind), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.every = 30 * time.Second
					client, _ := w.client(pays)
					w.collect(nil)
					charge := w.paid(client)
					fault := twice(method, kind)
					w.bank.FailWith(func(c rentaltest.Call) rentaltest.Fault {
						if method == "RefundOf" && c.Method == "Refund" && len(w.bank.Calls()) < 3 {
							// The refund happens, so that the query finds it.
							return rentaltest.Fault{Kind: sandbox.HangAfter}
						}
						return fault(c)
					})
					refund := w.refundOf(client, charge, 3_200)
					w.after(time.Hour)
					w.wantState(refund, rental.Paid)
					w.wantGivenBack(refund)
				})
			})
		}
	}
}

func TestRefund_SlowOneIsPaidWhenItArrives(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.every = time.Minute
		client, _ := w.client(sandbox.Behaviour{RefundPending: true})
		w.collect(nil)
		charge := w.paid(client)
		refund := w.refundOf(client, charge, amount)
		w.after(3 * 24 * time.Hour)
		w.wantState(refund, rental.Unknown)
		w.bank.SettleRefund(refund.ID.String(), false)
		w.after(10 * time.Minute)
		w.wantState(refund, rental.Paid)
		w.wantGivenBack(refund)
	})
}

func TestRefund_MayFailAfterItWasAccepted(t *testing.T) {
	for _, slow := range []bool{true, false} {
		inWorld(t, func(t *testing.T, w *world) {
			client, _ := w.client(sandbox.Behaviour{RefundPending: slow})
			w.collect(nil)
			charge := w.paid(client)
			refund := w.refundOf(client, charge, amount)
			w.after(time.Minute)
			w.bank.SettleRefund(refund.ID.String(), true)
			w.after(10 * time.Minute)
			w.wantState(refund, rental.Failed)
			if is := w.is(refund); is.Settled != 0 || is.DeclineCode != "expired_or_canceled_card" || !is.NextAttempt.IsZero() {
				t.Errorf("slow %v: the refund is %+v, want it failed, expired_or_canceled_card", slow, is)
			}
			last := w.ledger.Entries()[len(w.ledger.Entries())-1]
			if last.Code != rental.RefundFailure || last.Outcome != "failed" {
				t.Errorf("audit entry %+v, want the failed refund", last)
			}
		})
	}
}

// slowReply is a processor whose refunds fail, and say so, before the reply to their request has
// come, which says that they succeeded.
type slowReply struct{ *rentaltest.Bank }

func (s slowReply) Refund(ctx context.Context, key string, r rental.RefundRequest) (rental.Refund, error) {
	made, err := s.Bank.Refund(ctx, key, r)
	s.SettleRefund(r.Refund.String(), true)
	time.Sleep(5 * time.Second) // the notice is handled
	return made, err
}

func TestRefund_FailsBeforeItsReplyCame(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.client(pays)
		w.collect(func(c *charging.Config) { c.Processor = slowReply{w.bank} })
		charge := w.paid(client)
		refund := w.refundOf(client, charge, amount)
		w.after(10 * time.Minute)
		w.wantState(refund, rental.Failed)
	})
}

// tooSmall is a processor that cannot refund so little.
type tooSmall struct{ *rentaltest.Bank }

func (tooSmall) Refund(context.Context, string, rental.RefundRequest) (rental.Refund, error) {
	return rental.Refund{}, &rental.ProcessorError{Kind: rental.TooSmall}
}

func TestRefund_OfTooLittleIsOverWithoutOne(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.client(pays)
		w.collect(func(c *charging.Config) { c.Processor = tooSmall{w.bank} })
		refund := w.refundOf(client, w.paid(client), 1)
		w.after(time.Hour)
		w.wantState(refund, rental.Paid)
		if is := w.is(refund); is.Settled != 0 || is.DeclineCode != rental.CodeTooSmall || !is.NextAttempt.IsZero() {
			t.Errorf("the refund %+v, want nothing refunded, and no other attempt", is)
		}
	})
}

func TestRefund_NoMoreThanWasPaid(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.client(pays)
		c := w.collect(nil)
		charge := w.paid(client)
		refund := w.refundOf(client, charge, amount+1)
		w.after(time.Hour)
		w.wantState(refund, rental.Failed)
		if e := w.bank.Of(refund.ID); e.Refunds != 0 || w.is(refund).DeclineCode != "refused" {
			t.Errorf("the bank has %+v, our record %+v; want no refund, refused", e, w.is(refund))
		}
		assert.Equal(t, metric(t, c, `payment_processor_failures_total{reason="refused"}`), 0, "refused requests that page")
	})
}
