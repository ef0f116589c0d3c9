package sandbox

import (
	"cmp"
	"context"
)

// States of a refund.
const (
	refundPending   = "pending"
	refundSucceeded = "succeeded"
	refundFailed    = "failed"
)

// refund is money given back.
type refund struct {
	object
	Intent   string `json:"payment_intent"`
	Charge   string `json:"charge"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	Status   string `json:"status"`
	Reason   string `json:"reason"`
	Next     string `json:"next"` // the state that it will be in later; empty: it stays
}

func (r *refund) view() view {
	v := r.object.view("refund")
	for name, value := range map[string]any{
		"payment_intent": r.Intent, "charge": r.Charge, "amount": r.Amount, "currency": r.Currency, "status": r.Status,
		"reason": orNull(r.Reason),
	} {
		v[name] = value
	}
	if r.Status == refundFailed {
		v["failure_reason"] = "expired_or_canceled_card"
	}
	return v
}

// refundsOf returns the refunds of a payment, or all.
func (l *ledger) refundsOf(intent string, newest bool) []*refund {
	return sorted(
		l.Refunds, func(r *refund) int64 { return r.Number }, newest,
		func(r *refund) bool { return intent == "" || r.Intent == intent },
	)
}

// refunded is how much of a payment was given back, or is on its way.
func (l *ledger) refunded(intent string) int64 {
	var sum int64
	for _, r := range l.refundsOf(intent, false) {
		if r.Status != refundFailed {
			sum += r.Amount
		}
	}
	return sum
}

func createRefund(l *ledger, r *request) (view, *failure) {
	p := r.params
	id, amount, metadata := p.needed("payment_intent"), p.whole("amount"), p.object("metadata")
	reason := p.text("reason")
	i := l.Intents[id]
	if i != nil {
		checkAmount(p, amount, i.Currency)
	}
	if f := p.check(); f != nil {
		return nil, f
	}
	if i == nil {
		return nil, missingAt("payment_intent", "payment_intent", id)
	}
	left := i.Received - l.refunded(id)
	amount = cmp.Or(amount, left)
	switch {
	case i.Received == 0:
		return nil, refused("", "payment_intent", "This PaymentIntent (%s) does not have a successful charge to refund.", id)
	case left == 0:
		return nil, refused("charge_already_refunded", "", "Charge %s has already been refunded.", i.latest())
	case amount > left:
		return nil, refused("", "amount", "Refund amount (%d) is greater than unrefunded amount on charge (%d)", amount, left)
	}
	made := &refund{
		object: l.newObject("re", metadata), Intent: id, Charge: i.latest(), Amount: amount, Currency: i.Currency,
		Status: refundSucceeded, Reason: reason,
	}
	if m := l.Methods[i.Method]; m != nil && m.RefundPending {
		made.Status, made.Next = refundPending, refundSucceeded
	} else if m != nil && m.RefundFails {
		made.Next = refundFailed
	}
	l.Refunds[made.ID] = made
	l.addEvent("refund.created", made.view())
	l.addEvent("charge.refunded", l.charge(i))
	if made.Next != "" {
		r.later = append(r.later, made.ID)
	}
	return made.view(), nil
}

func getRefund(l *ledger, r *request) (view, *failure) {
	made := l.Refunds[r.id]
	if f := r.params.check(); f != nil || made == nil {
		return nil, cmp.Or(f, missing("refund", r.id))
	}
	return made.view(), nil
}

func listRefunds(l *ledger, r *request) (view, *failure) {
	all := l.refundsOf(r.params.text("payment_intent"), true)
	return page(r, "/v1/refunds", all, func(made *refund) (string, view) { return made.ID, made.view() })
}

// settleLater moves a refund on after a while.
func (s *Server) settleLater(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return // it goes on with the next start
	}
	s.work.Go(func() {
		s.pause(context.Background(), s.cfg.RefundDelay)
		select {
		case <-s.done:
			return
		default:
		}
		_ = s.change(func(l *ledger) error {
			if made := l.Refunds[id]; made.Next != "" {
				l.settle(made, made.Next)
			}
			return nil
		})
	})
}

func (l *ledger) settle(made *refund, status string) {
	made.Status, made.Next = status, ""
	name := "refund.updated"
	if status == refundFailed {
		name = "refund.failed"
	}
	l.addEvent(name, made.view())
	l.addEvent("charge.refund.updated", made.view())
}

// SettleRefund settles the refunds of a charge now: they succeed, or fail, even after they
// succeeded.
func (s *Server) SettleRefund(charge string, fails bool) {
	_ = s.change(func(l *ledger) error {
		for _, made := range l.refundsOf("", false) {
			switch {
			case made.Metadata["charge_id"] != charge:
			case fails:
				l.settle(made, refundFailed)
			default:
				l.settle(made, refundSucceeded)
			}
		}
		return nil
	})
}

// resumeRefunds goes on with what was left when the sandbox ended.
func (s *Server) resumeRefunds() {
	for _, made := range s.ledger.refundsOf("", false) {
		if made.Next != "" {
			s.settleLater(made.ID)
		}
	}
}
