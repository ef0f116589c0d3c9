package rentaltest

import (
	"context"
	"fmt"

	"motorpool/rental"
)

// Refund gives back a part of a payment.
func (b *Bank) Refund(ctx context.Context, key string, r rental.RefundRequest) (rental.Refund, error) {
	made, err := b.perform(ctx, Call{"Refund", r.Charge.String()}, key, func(answer *reply) { answer.refund, answer.err = b.giveBack(r) })
	if err != nil {
		return rental.Refund{}, err
	}
	return made.refund, made.err
}

func (b *Bank) giveBack(r rental.RefundRequest) (rental.Refund, error) {
	p, ok := b.payments[r.Intent]
	if !ok {
		return rental.Refund{}, failed(rental.NotKnown, "no such payment")
	}
	left := p.Amount
	for _, other := range b.refunds {
		if other.payment == p.ID && other.Status != rental.RefundFailed {
			left -= other.Amount
		}
	}
	if p.Status != rental.IntentSucceeded || r.Amount > left {
		return rental.Refund{}, failed(rental.Refused, "more than is left of the payment")
	}
	b.last++
	status := rental.RefundSucceeded
	if b.slow {
		status = rental.RefundPending
	}
	made := &refund{Refund: rental.Refund{ID: fmt.Sprintf("re_%d", b.last), Status: status, Amount: r.Amount}, charge: r.Charge, payment: r.Intent}
	b.refunds = append(b.refunds, made)
	b.changed(rental.AboutRefund, made.ID, "refund.created")
	return made.Refund, nil
}

// SlowRefunds has refunds wait for SettleRefund from now on.
func (b *Bank) SlowRefunds() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slow = true
}

// SettleRefund ends the refund of a charge: it succeeds, or fails for a reason, even days after it succeeded.
func (b *Bank) SettleRefund(charge rental.ChargeID, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.refunds {
		if r.charge == charge {
			r.Status, r.Why = rental.RefundSucceeded, why
			if why != "" {
				r.Status = rental.RefundFailed
			}
			b.changed(rental.AboutRefund, r.ID, "refund.updated")
		}
	}
}

// RefundOf returns the refund of a payment that was made for a charge.
func (b *Bank) RefundOf(ctx context.Context, intent string, charge rental.ChargeID) (found rental.Refund, ok bool, err error) {
	err = b.read(ctx, Call{"RefundOf", charge.String()}, func() error {
		for _, r := range b.refunds {
			if r.charge == charge && r.payment == intent && (!ok || found.Status == rental.RefundFailed) {
				found, ok = r.Refund, true
			}
		}
		return nil
	})
	return found, ok && err == nil, err
}

// RefundByID returns a refund as it is now.
func (b *Bank) RefundByID(ctx context.Context, id string) (found rental.Refund, err error) {
	err = b.read(ctx, Call{"RefundByID", id}, func() error {
		for _, r := range b.refunds {
			if r.ID == id {
				found = r.Refund
				return nil
			}
		}
		return failed(rental.NotKnown, "no such refund")
	})
	return found, err
}
