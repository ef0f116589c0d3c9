package rental

import (
	"time"
)

// Refund gives money back to the cards that paid it, of the newest charges first; zero: all that is left. Each charge gives back
// at most what it took, less what was refunded of it; a refund that failed does not count.
func (d Dossier) Refund(now time.Time, amount Minor, reason string) (Change, error) {
	if amount < 0 {
		return Change{}, wrong("amount", "must be more than 0")
	}
	left := d.refundable()
	var all Minor
	for _, m := range left {
		all += m
	}
	if amount == 0 {
		amount = all
	}
	if amount > all || all == 0 {
		return Change{}, ExceedsPaid(d.Price.Currency, all)
	}
	c := Change{Booking: d.Booking, Note: reason,
		Details: map[string]any{"amount": d.Price.Currency.Format(amount), "currency": string(d.Price.Currency)}}
	for i := len(d.Charges) - 1; i >= 0 && amount > 0; i-- {
		part := min(amount, left[i])
		if part == 0 {
			continue
		}
		refund := d.charge(RefundCharge, part, now)
		refund.Refunds, refund.Reason = d.Charges[i].ID, reason
		c.Charges = append(c.Charges, refund)
		amount -= part
	}
	return c, nil
}

// refundable returns what of each charge can still be given back.
func (d Dossier) refundable() []Minor {
	left := make([]Minor, len(d.Charges))
	for i, c := range d.Charges {
		if !c.isTaken() {
			continue
		}
		left[i] = c.Settled
		for _, refund := range d.Charges {
			if refund.Refunds == c.ID {
				left[i] = max(0, left[i]-refund.givesBack())
			}
		}
	}
	return left
}

// givesBack is what a refund has moved, or still may.
func (c Charge) givesBack() Minor {
	switch c.State {
	case Failed:
		return 0
	case Paid:
		return c.Settled // the processor may round
	}
	return c.Amount
}
