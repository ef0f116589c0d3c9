package rental

import (
	"slices"
	"time"
)

// PaymentStatus sums up the charges of a booking.
type PaymentStatus string

const (
	PaymentRequiresAction PaymentStatus = "requires_action" // the card's owner must confirm
	// The card was refused; another one is needed.
	PaymentFailed PaymentStatus = "failed"
	// Nothing was charged yet, or a charge is open.
	PaymentPending PaymentStatus = "pending"
	// The deposit is held, the charge of the rental is open, or comes with its end.
	PaymentAuthorized        PaymentStatus = "authorized"
	PaymentRefunded          PaymentStatus = "refunded"           // all was refunded
	PaymentPartiallyRefunded PaymentStatus = "partially_refunded" // a part was refunded
	PaymentPaid              PaymentStatus = "paid"               // all charges are paid
	// The booking is over, and nothing was ever charged.
	PaymentNotCharged PaymentStatus = "not_charged"
)

// PaymentStatuses lists every status.
var PaymentStatuses = []PaymentStatus{
	PaymentRequiresAction, PaymentFailed, PaymentPending, PaymentAuthorized, PaymentRefunded, PaymentPartiallyRefunded,
	PaymentPaid, PaymentNotCharged,
}

// Payment is the summary of a booking's payments for its client.
type Payment struct {
	Method string // label of the card; empty: there is none
	Status PaymentStatus
	PaidAt time.Time // zero: not paid
	// The amount taken: rental, extensions, fees, and the captured part of the deposit.
	Charged  Minor
	Refunded Minor // the refunded part of Charged
	Held     Minor // the deposit that is held now; not charged
	// The booking is over, and each charge, refund and hold has its result.
	Final bool
}

// Payment sums up the charges. The status is the first that applies:
//
//   - requires_action: a charge waits for the card's owner.
//   - failed: a charge was refused and is owed, even if it will be retried automatically.
//   - authorized: the deposit is held, and the charge of the start is the only open one, or the
//     time is not charged yet.
//   - not_charged: the booking is over, and nothing was ever charged.
//   - pending: nothing was charged yet (the booking is upcoming), or a charge is open: it is still
//     to be executed, or its result is unknown. A requested capture is open, too, and so is what
//     SettleUp waits for.
//   - refunded: the whole amount taken was refunded.
//   - partially_refunded: a part of it was refunded.
//   - paid.
//
// The charges of a start that was taken back do not affect the status. A deposit counts like any
// charge until its goal is release; after that, or if the processor has ended the hold, it does not
// affect the status. A refund counts when it is paid: an open or failed one changes nothing.
//
// PaidAt is when the last payment was made, or the deposit captured, in the last three states; else
// zero.
func (d BookingDetails) Payment() Payment {
	p := Payment{Status: d.paymentStatus()}
	p.Charged, p.Refunded, p.Held = d.moved()
	p.Final = !d.State.IsLive() && !slices.ContainsFunc(d.Charges, func(c Charge) bool {
		// A failed refund stays so.
		return !c.State.IsFinal() && (c.Kind != RefundCharge || c.State != Failed)
	})
	if d.Card != nil {
		p.Method = d.Card.Label()
	}
	if p.Status != PaymentPaid && p.Status != PaymentRefunded && p.Status != PaymentPartiallyRefunded {
		return p
	}
	for _, c := range d.Charges {
		if c.isTaken() && c.PaidAt.After(p.PaidAt) {
			p.PaidAt = c.PaidAt
		}
	}
	return p
}

func (d BookingDetails) paymentStatus() PaymentStatus {
	settlesUp := d.settlesUp()
	d.Charges = d.lasting()
	paid, back, _ := d.moved()
	some := func(is func(Charge) bool) bool { return slices.ContainsFunc(d.Charges, is) }
	switch {
	case some(Charge.waitsForOwner):
		return PaymentRequiresAction
	case some(Charge.isOwed):
		return PaymentFailed
	case d.onlyRentalOpen():
		return PaymentAuthorized
	case !d.State.IsLive() && !some(Charge.counts):
		return PaymentNotCharged
	case some(Charge.isOpen), !some(Charge.counts), settlesUp:
		return PaymentPending
	case back > 0 && back >= paid:
		return PaymentRefunded
	case back > 0:
		return PaymentPartiallyRefunded
	}
	return PaymentPaid
}

// settlesUp reports whether the rental has ended, and SettleUp waits for a payment that is
// withdrawn.
func (d BookingDetails) settlesUp() bool {
	return d.State == Completed && slices.ContainsFunc(d.Charges, func(c Charge) bool {
		return c.Kind.paysTime() && c.Goal == Release && !c.State.IsFinal()
	})
}

// lasting returns the charges without those of starts that were taken back. One whose refund has
// failed was not, nor one that was refunded after the rental had begun.
func (d BookingDetails) lasting() []Charge {
	back := map[ChargeID]bool{}
	left, _ := d.refundable()
	for i, c := range d.Charges {
		back[c.ID] = c.Kind == StartCharge && c.Goal == Release && left[i] == 0 &&
			(d.ActualStart.IsZero() || d.notReturned(c, d.ActualStart) == 0)
	}
	return slices.DeleteFunc(slices.Clone(d.Charges), func(c Charge) bool { return back[c.ID] || back[c.Refunds] })
}

// counts reports whether the charge was not taken back.
func (c Charge) counts() bool { return c.State != Released }

// moved returns the sums of money charged, refunded, and held.
func (d BookingDetails) moved() (charged, refunded, held Minor) {
	for _, c := range d.Charges {
		switch {
		case c.isTaken():
			charged += c.Settled
		case c.Kind == RefundCharge && c.State == Paid:
			refunded += c.Settled
		case c.Kind == DepositCharge && c.State == Authorized:
			held += c.Settled
		}
	}
	return charged, refunded, held
}

// onlyRentalOpen reports whether the deposit is held, and the charge of the start is the only open
// one, or comes with the end.
func (d BookingDetails) onlyRentalOpen() bool {
	deposit := d.deposit()
	held := deposit.State == Authorized && deposit.Goal == Hold
	start, timed := false, false
	for _, c := range d.Charges {
		if c.isOpen() && c.Kind != StartCharge {
			return false
		}
		start, timed = start || c.isOpen(), timed || c.Kind.paysTime()
	}
	return held && (start || !timed)
}
