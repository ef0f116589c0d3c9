package rental

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// ChargeID identifies a charge. It is the name under which the processor makes it, so it is unique
// in the world.
type ChargeID = uuid.UUID

// ChargeKind is what a charge is for.
type ChargeKind string

const (
	StartCharge     ChargeKind = "start"     // subtotal and tax, when the booking starts
	DepositCharge   ChargeKind = "deposit"   // a hold, when the booking starts
	ExtensionCharge ChargeKind = "extension" // what an extension adds to subtotal and tax
	FeeCharge       ChargeKind = "fee"
	RefundCharge    ChargeKind = "refund" // of another charge, to the card that paid it
)

// Pays reports whether a charge of this kind takes money when it succeeds.
func (k ChargeKind) Pays() bool { return k == StartCharge || k == ExtensionCharge || k == FeeCharge }

// ChargeState is what is known of a charge.
type ChargeState string

const (
	Pending ChargeState = "pending" // to be carried out; nothing has moved
	// Was asked for; whether it happened is to be looked up at the processor.
	Unknown        ChargeState = "unknown"
	RequiresAction ChargeState = "requires_action" // the card's owner must confirm
	// The card was refused; it is tried again at NextAttempt.
	Declined   ChargeState = "declined"
	Failed     ChargeState = "failed"     // given up, until the client has another card
	Authorized ChargeState = "authorized" // the deposit is held
	Paid       ChargeState = "paid"       // the money has moved; a refund's: back
	Captured   ChargeState = "captured"   // a part of the deposit, or all of it, was taken
	Released   ChargeState = "released"   // the deposit is free again, or was never held
)

// chargeStates is the lifecycle: which states may follow which. One without a successor is final.
var chargeStates = map[ChargeState][]ChargeState{
	Pending:        {Unknown, RequiresAction, Declined, Failed, Authorized, Paid, Released},
	Unknown:        {Pending, RequiresAction, Declined, Failed, Authorized, Paid, Captured, Released},
	RequiresAction: {Pending, Unknown, Declined, Failed, Authorized, Paid, Captured, Released},
	Declined:       {Pending, Unknown, RequiresAction, Failed, Authorized, Paid, Captured, Released},
	Failed:         {Pending, Unknown, RequiresAction, Declined, Authorized, Paid, Captured, Released},
	Authorized:     {Unknown, Captured, Released},
	Paid:           {},
	Captured:       {},
	Released:       {},
}

// MayBecome reports whether one state may follow another, or is the same.
func (s ChargeState) MayBecome(next ChargeState) bool {
	return s == next || slices.Contains(chargeStates[s], next)
}

// IsFinal reports whether nothing follows. (Of a refund, see Charge.MayBecome.)
func (s ChargeState) IsFinal() bool { return len(chargeStates[s]) == 0 }

// FinalChargeStates lists the states that nothing follows.
func FinalChargeStates() []ChargeState {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(chargeStates)), func(s ChargeState) bool { return !s.IsFinal() })
}

// Goal is what is wanted of a deposit.
type Goal string

const (
	Hold    Goal = "hold"
	Capture Goal = "capture" // CaptureAmount of it
	Release Goal = "release"
)

// Charge is an amount that a booking costs, or gives back. The row is the job.
type Charge struct {
	ID       ChargeID
	Booking  BookingID
	Kind     ChargeKind
	Number   int // counts the charges of one kind of one booking, from 1
	State    ChargeState
	Currency Currency
	Amount   Minor
	// The amount that the processor has moved; of an authorized deposit: the amount held.
	Settled Minor

	Goal          Goal  // of a deposit; else empty
	CaptureAmount Minor // with the goal capture

	Refunds ChargeID // of a refund: the charge that it gives back

	Fee    string // kind of a fee
	Reason string // an administrator's words, of a fee, a refund or a capture
	By     string // who made it, or last gave it another goal (subject); empty: not recorded

	// The card that is tried, or that paid; zero: none was chosen yet, or it was removed.
	Method   MethodID
	Brand    string // of that card
	LastFour string // of that card

	Intent      string    // the processor's id; empty: it knows nothing of it yet
	AttemptID   string    // the processor's id of the last attempt whose outcome is stored
	Attempts    int       // attempts that were requested from the processor, declined ones included
	Declines    int       // declines since the card was last changed
	DeclineCode string    // the processor's word for why; empty: not declined
	NextAttempt time.Time // zero: nothing is to be done
	PaidAt      time.Time
	Created     time.Time
}

// MayBecome reports whether a state may follow the charge's own. A hold is never paid, and only a
// hold is authorised, captured or released. A refund has no owner to confirm it. What was paid back
// may still come back, as the card's bank says days later; a refund that failed stays so, since its
// money may be in another one by then.
func (c Charge) MayBecome(next ChargeState) bool {
	switch {
	case c.State == next:
		return true
	case c.Kind == RefundCharge && c.State == Paid:
		return next == Failed
	case c.Kind == RefundCharge && (c.State == Failed || next == RequiresAction || next == Declined),
		c.Kind == DepositCharge && next == Paid,
		c.Kind != DepositCharge && (next == Authorized || next == Captured || next == Released):
		return false
	}
	return c.State.MayBecome(next)
}

// charge returns a new charge of the booking that is due immediately. A charge of zero is paid
// without the processor.
func (d BookingDetails) charge(kind ChargeKind, amount Minor, now time.Time) Charge {
	c := Charge{Booking: d.ID, Kind: kind, State: Pending, Currency: d.Price.Currency, Amount: amount, NextAttempt: now, Created: now}
	if amount == 0 {
		c.State, c.PaidAt, c.NextAttempt = Paid, now, time.Time{}
	}
	return c
}

// isOwed reports whether a payment was refused and is still owed. A deposit that is no longer
// wanted is not.
func (c Charge) isOwed() bool {
	return (c.State == Declined || c.State == Failed) && c.ofClient()
}

// isOpen reports whether a payment is to be carried out, or may have been, and was not refused.
func (c Charge) isOpen() bool {
	return c.ofClient() && (c.State == Pending || c.State == Unknown || c.State == Authorized && c.Goal == Capture)
}

// waitsForOwner reports whether the card's owner must confirm a payment.
func (c Charge) waitsForOwner() bool { return c.State == RequiresAction && c.ofClient() }

// isTaken reports whether the charge has taken the money that it settled.
func (c Charge) isTaken() bool { return c.Kind.Pays() && c.State == Paid || c.State == Captured }

// ofClient reports whether the client is asked for the money: not for a refund, nor for a deposit
// that is to be released.
func (c Charge) ofClient() bool { return c.Kind != RefundCharge && c.Goal != Release }

// CaptureDeposit takes a part of the deposit, or all of it, while it is held: before the booking
// ends, and once.
func (d BookingDetails) CaptureDeposit(now time.Time, amount Minor, reason string) (Change, error) {
	if amount <= 0 {
		return Change{}, newFieldError("amount", "must be more than 0")
	}
	deposit, _ := d.deposit()
	held := deposit.capturable()
	if held == 0 {
		return Change{}, Forbids(BookingStateConflict, "No deposit of the booking is held.")
	}
	if amount > held {
		return Change{}, Forbids(BookingStateConflict, fmt.Sprintf("No more than %s %s is held.", d.Price.Currency.Format(held), d.Price.Currency))
	}
	deposit.Goal, deposit.CaptureAmount, deposit.Reason, deposit.NextAttempt = Capture, amount, reason, now
	return Change{Booking: d.Booking, Amended: []Charge{deposit}, Note: reason,
		Details: map[string]any{"amount": d.Price.Currency.Format(amount), "currency": string(d.Price.Currency)}}, nil
}

// capturable is what of a deposit can be taken: what is held, while nothing else is wanted of it.
func (c Charge) capturable() Minor {
	if c.State != Authorized || c.Goal != Hold {
		return 0
	}
	return min(c.Settled, c.Amount) // the processor may round up
}

func (d BookingDetails) deposit() (Charge, bool) {
	for _, c := range d.Charges {
		if c.Kind == DepositCharge {
			return c, true
		}
	}
	return Charge{}, false
}

// Fee is what an administrator adds to what a booking costs.
type Fee struct {
	Kind   string
	Amount Minor
	Reason string
}

// feeLimitHours is how many hours of the booking's own rate one fee may cost, on top of the
// deposit, where the agency sets no limit: 1,700 EUR at 15 EUR an hour and 200 EUR of deposit. It
// catches a misplaced decimal point in any currency.
const feeLimitHours = 100

// FeeLimit is the highest single fee.
func (d BookingDetails) FeeLimit() Minor {
	if d.Terms.FeeLimit > 0 {
		return d.Terms.FeeLimit
	}
	return feeLimitHours*d.Price.HourlyRate + d.Price.Deposit
}

// Fine charges a fee of a booking that is not upcoming: one that was cancelled may cost a fee, too.
func (d BookingDetails) Fine(now time.Time, f Fee) (Change, error) {
	if f.Amount <= 0 {
		return Change{}, newFieldError("amount", "must be more than 0")
	}
	if limit := d.FeeLimit(); f.Amount > limit {
		c := d.Price.Currency
		return Change{}, newFieldError("amount", fmt.Sprintf("must be at most %s %s, the agency's limit for one fee (fee_limit in its fleet file)", c.Format(limit), c))
	}
	if d.State == Upcoming {
		return Change{}, Forbids(BookingStateConflict, "The booking has not started; there is nothing to charge a fee for.")
	}
	c := d.charge(FeeCharge, f.Amount, now)
	c.Fee, c.Reason = f.Kind, f.Reason
	return Change{Booking: d.Booking, Charges: []Charge{c}, Note: f.Reason,
		Details: map[string]any{"kind": f.Kind, "amount": d.Price.Currency.Format(f.Amount), "currency": string(d.Price.Currency)}}, nil
}

// Refund gives money back to the cards that paid it, of the newest charges first; zero: all that is
// left. Each charge gives back at most what it took, less what was refunded of it; a refund that
// failed does not count.
func (d BookingDetails) Refund(now time.Time, amount Minor, reason string) (Change, error) {
	left, all := d.refundable()
	return d.giveBack(now, left, all, amount, reason)
}

// RefundCharge gives money back of one charge alone; zero: all that is left of it.
func (d BookingDetails) RefundCharge(now time.Time, id ChargeID, amount Minor, reason string) (Change, error) {
	i := slices.IndexFunc(d.Charges, func(c Charge) bool { return c.ID == id })
	if i < 0 {
		return Change{}, newFieldError("charge_id", "must be a charge of the booking")
	}
	all, _ := d.refundable()
	left := make([]Minor, len(all))
	left[i] = all[i]
	return d.giveBack(now, left, all[i], amount, reason)
}

// giveBack refunds of each charge at most what is left of it, of the newest first.
func (d BookingDetails) giveBack(now time.Time, left []Minor, all, amount Minor, reason string) (Change, error) {
	if amount < 0 {
		return Change{}, newFieldError("amount", "must be more than 0")
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

// Limits are the highest amounts that an administrator may move; zero: none.
type Limits struct{ Refund, Capture, Fee Minor }

// Limits returns what Refund, CaptureDeposit and Fine accept at most.
func (d BookingDetails) Limits() Limits {
	var l Limits
	_, l.Refund = d.refundable()
	deposit, _ := d.deposit()
	l.Capture = deposit.capturable()
	if d.State != Upcoming {
		l.Fee = d.FeeLimit()
	}
	return l
}

// refundable returns what of each charge can still be given back, and the sum of it.
func (d BookingDetails) refundable() (left []Minor, all Minor) {
	left = make([]Minor, len(d.Charges))
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
		all += left[i]
	}
	return left, all
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

// ChargeQuery selects charges, newest (highest id) first. Zero fields select everything.
type ChargeQuery struct {
	Agency   telematics.AgencyID
	Booking  BookingID
	States   []ChargeState
	From, To time.Time // of their creation: from From on, before To
	Before   ChargeID  // the last one of the page before
	Limit    int
}

// BookedCharge is a charge with what it belongs to.
type BookedCharge struct {
	Charge
	Reference string // of its booking
	Agency    telematics.AgencyID
	Subject   string             // of the client's token
	Vehicle   telematics.Vehicle // its description, and whose it is
}
