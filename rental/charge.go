package rental

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// ChargeID identifies a charge. Ids grow with time.
type ChargeID = uuid.UUID

// ChargeKind is the purpose of a charge.
type ChargeKind string

const (
	StartCharge     ChargeKind = "start"     // subtotal and tax: see Begin and SettleUp
	DepositCharge   ChargeKind = "deposit"   // a hold, when the booking starts
	ExtensionCharge ChargeKind = "extension" // what an extension adds to subtotal and tax
	FeeCharge       ChargeKind = "fee"
	RefundCharge    ChargeKind = "refund" // of another charge, to the card that paid it
	// What a rental cost in addition to what was charged before, when it ends.
	EndCharge ChargeKind = "end"
)

// ChargeKinds lists every kind.
var ChargeKinds = []ChargeKind{StartCharge, DepositCharge, ExtensionCharge, FeeCharge, RefundCharge, EndCharge}

// ChargeState is the recorded state of a charge.
type ChargeState string

const (
	Pending ChargeState = "pending" // to be executed; no money has moved
	// Requested; the processor must be queried whether it was executed.
	Unknown        ChargeState = "unknown"
	RequiresAction ChargeState = "requires_action" // the card's owner must confirm
	// The card was refused; the next attempt is at NextAttempt.
	Declined   ChargeState = "declined"
	Failed     ChargeState = "failed"     // no more attempts, until the client sets a default card
	Authorized ChargeState = "authorized" // the deposit is held
	Paid       ChargeState = "paid"       // the money has been paid; of a refund: paid back
	Captured   ChargeState = "captured"   // the deposit was taken, in part or whole
	// The deposit is not held any more, or never was; the payment was taken back: the rental did
	// not start, the extension was not paid, or the deposit pays instead.
	Released ChargeState = "released"
	Waived   ChargeState = "waived" // too small for the processor; not owed
)

// chargeStates is the lifecycle: the states that may follow each state. One without any is final.
var chargeStates = map[ChargeState][]ChargeState{
	Pending:        {Unknown, RequiresAction, Declined, Failed, Authorized, Paid, Captured, Released, Waived},
	Unknown:        {Pending, RequiresAction, Declined, Failed, Authorized, Paid, Captured, Released, Waived},
	RequiresAction: {Pending, Unknown, Declined, Failed, Authorized, Paid, Captured, Released, Waived},
	Declined:       {Pending, Unknown, RequiresAction, Failed, Authorized, Paid, Captured, Released, Waived},
	Failed:         {Pending, Unknown, RequiresAction, Declined, Authorized, Paid, Captured, Released, Waived},
	Authorized:     {Unknown, Captured, Released},
	Paid:           {},
	Captured:       {},
	Released:       {},
	Waived:         {},
}

// MayBecome reports whether next may follow s, or equals it.
func (s ChargeState) MayBecome(next ChargeState) bool {
	return s == next || slices.Contains(chargeStates[s], next)
}

// IsFinal reports whether no other state follows. (A paid refund may: see Charge.MayBecome.)
func (s ChargeState) IsFinal() bool { return len(chargeStates[s]) == 0 }

// FinalChargeStates lists the final states, sorted.
func FinalChargeStates() []ChargeState {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(chargeStates)), func(s ChargeState) bool { return !s.IsFinal() })
}

// Goal is the intended result of a deposit. The start of a rental that did not begin, and payments
// that an ended rental does not need, or has from its deposit, have the goal Release.
type Goal string

const (
	Hold    Goal = "hold"
	Capture Goal = "capture" // CaptureAmount of it
	Release Goal = "release"
)

// Charge is an amount to be paid, held or refunded for a booking. Its row is also the job that
// executes it.
type Charge struct {
	ID       ChargeID
	Key      uuid.UUID // see PaymentID; zero: the id
	Booking  BookingID
	Kind     ChargeKind
	Number   int // counts the charges of one kind of one booking, from 1
	State    ChargeState
	Currency Currency
	Amount   Minor
	// The amount that the processor has taken or refunded; of an authorized deposit: that is held.
	Settled Minor

	Goal          Goal  // of a deposit, or of a payment that is taken back; else empty
	CaptureAmount Minor // with the goal capture

	Refunds ChargeID // of a refund: the charge that it refunds

	Added time.Duration // of an extension of an active booking: the time that it adds; else zero

	Fee    string // kind of a fee
	Reason string // an administrator's free text, for a fee, a refund or a capture
	By     string // subject of its creator, or of its last change of goal; empty: not recorded

	// The card that is being charged, or that paid; zero: not chosen yet, or removed.
	Method   MethodID
	Brand    string // of that card
	LastFour string // of that card

	Intent      string    // the processor's id; empty: not created there yet
	AttemptID   string    // the processor's id of the last attempt whose outcome is stored
	Attempts    int       // attempts requested from the processor, including declined ones
	Declines    int       // declines since the card was last changed
	DeclineCode string    // the processor's code for the reason; empty: not declined
	NextAttempt time.Time // zero: none is scheduled
	PaidAt      time.Time
	Created     time.Time
	Mended      time.Time // the client chose another card since the refusal; zero: no
}

// MayBecome reports whether the charge may enter a state. A deposit is never Paid; only a deposit
// is Authorized or Captured, and only a deposit, or a payment for time that is taken back,
// Released. A refund needs no confirmation and is not Declined. A paid refund may still fail, days
// later, when the card's bank returns the money; a failed one stays failed, since another refund
// may have replaced it by then. It is not Waived.
func (c Charge) MayBecome(next ChargeState) bool {
	switch {
	case c.State == next:
		return true
	case c.Kind == RefundCharge && c.State == Paid:
		return next == Failed
	case c.Kind == RefundCharge && (c.State == Failed || next == RequiresAction || next == Declined),
		c.Kind == RefundCharge && next == Waived,
		c.Kind == DepositCharge && next == Paid,
		c.Kind != DepositCharge && (next == Authorized || next == Captured),
		c.Kind != DepositCharge && !c.Kind.paysTime() && next == Released:
		return false
	}
	return c.State.MayBecome(next)
}

// Results returns the states with which a charge of the kind may be settled, sorted.
func (k ChargeKind) Results() []ChargeState {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(chargeStates)), func(s ChargeState) bool {
		return s == Pending || !Charge{Kind: k, State: Unknown}.MayBecome(s)
	})
}

// charge returns a new charge of the booking that is due immediately. An amount of zero is Paid
// without the processor.
func (d BookingDetails) charge(kind ChargeKind, amount Minor, now time.Time) Charge {
	c := Charge{Booking: d.ID, Kind: kind, State: Pending, Currency: d.Price.Currency, Amount: amount, NextAttempt: now, Created: now}
	if amount == 0 {
		c.State, c.PaidAt, c.NextAttempt = Paid, now, time.Time{}
	}
	return c
}

// isRefused reports whether a payment was refused. A deposit to be released is not one.
func (c Charge) isRefused() bool {
	return (c.State == Declined || c.State == Failed) && c.ofClient()
}

// isOwed reports whether a payment was refused, and its client can mend that.
func (c Charge) isOwed() bool { return c.isRefused() && RemedyOf(c.DeclineCode) == ByClient }

// isOpen reports whether a payment is pending, of unknown result, refused, or a capture in
// progress.
func (c Charge) isOpen() bool {
	return c.ofClient() && (c.State == Pending || c.State == Unknown || c.State == Authorized && c.Goal == Capture) || c.isRefused()
}

// isRetried reports whether a payment that was owed is being tried again.
func (c Charge) isRetried() bool {
	return c.ofClient() && c.State == Unknown && c.DeclineCode != "" && RemedyOf(c.DeclineCode) == ByClient
}

// waitsForClient reports whether a payment was refused, or waits for the card's owner, and has no
// other result since. A fee does not count: it can be disputed.
func (c Charge) waitsForClient() bool {
	return c.Kind != FeeCharge && (c.isOwed() || c.waitsForOwner() || c.isRetried())
}

// isMade reports whether the payment of the start, or the hold of the deposit, needs nothing more.
func (c Charge) isMade() bool { return c.State.IsFinal() || c.State == Authorized || c.Goal == Capture }

// waitsForOwner reports whether the card's owner must confirm a payment.
func (c Charge) waitsForOwner() bool { return c.State == RequiresAction && c.ofClient() }

// isTaken reports whether the charge has taken the money that it settled.
func (c Charge) isTaken() bool {
	return c.Kind != RefundCharge && c.State == Paid || c.State == Captured
}

// ofClient reports whether the client must pay: not for a refund, nor for a deposit to be
// released.
func (c Charge) ofClient() bool { return c.Kind != RefundCharge && c.Goal != Release }

// CaptureDeposit decides to take a part of the held deposit, or all of it. That is possible once,
// while it is held. It fails with a *FieldError, or with a *telematics.Error where none is held, or
// less.
func (d BookingDetails) CaptureDeposit(now time.Time, amount Minor, reason string) (Change, error) {
	if amount <= 0 {
		return Change{}, newFieldError("amount", "must be more than 0")
	}
	deposit := d.deposit()
	held := deposit.capturable()
	if held == 0 {
		return Change{}, Forbids(BookingStateConflict, "No deposit of the booking is held.")
	}
	if amount > held {
		return Change{}, Forbids(BookingStateConflict, fmt.Sprintf("Only %s %s is held.", d.Price.Currency.Format(held), d.Price.Currency))
	}
	deposit.Goal, deposit.CaptureAmount, deposit.Reason, deposit.NextAttempt = Capture, amount, reason, now
	return Change{Booking: d.Booking, Amended: []Charge{deposit}, Note: reason,
		Details: map[string]any{"amount": d.Price.Currency.Format(amount), "currency": string(d.Price.Currency)}}, nil
}

// capturable returns the amount of a deposit that can be captured: zero unless it is held, and
// its goal is Hold.
func (c Charge) capturable() Minor {
	if c.State != Authorized || c.Goal != Hold {
		return 0
	}
	return min(c.Settled, c.Amount) // the processor may round up
}

// deposit returns the newest deposit; zero: there is none. Earlier ones are of starts that were
// taken back; instances whose clocks differ may have dated them later.
func (d BookingDetails) deposit() (newest Charge) {
	for _, c := range d.Charges {
		if c.Kind == DepositCharge && c.Number >= newest.Number {
			newest = c
		}
	}
	return newest
}

// Fee is an amount that an administrator adds to the cost of a booking.
type Fee struct {
	Kind   string
	Amount Minor
	Reason string
}

// feeLimitHours is how many hours at the booking's rate one fee may cost, in addition to the
// deposit, if the agency sets no limit: 1,700 EUR at 15 EUR an hour and 200 EUR of deposit. It
// catches a misplaced decimal point in any currency.
const feeLimitHours = 100

// FeeLimit returns the highest single fee: the agency's limit, or one derived from the price, also
// where the agency has another currency by now. Of a free vehicle without a deposit it is
// MaxAmount.
func (d BookingDetails) FeeLimit() Minor {
	if d.Terms.FeeLimit > 0 && d.Terms.Currency == d.Price.Currency {
		return d.Terms.FeeLimit
	}
	return cmp.Or(feeLimitHours*d.Price.HourlyRate+d.Price.Deposit, MaxAmount)
}

// Fine decides to charge a fee, for any booking that is not upcoming, even a cancelled one. It
// fails with a *FieldError, or with a *telematics.Error where the booking is upcoming.
func (d BookingDetails) Fine(now time.Time, f Fee) (Change, error) {
	if f.Amount <= 0 {
		return Change{}, newFieldError("amount", "must be more than 0")
	}
	if limit := d.FeeLimit(); f.Amount > limit {
		c := d.Price.Currency
		return Change{}, newFieldError(
			"amount",
			fmt.Sprintf("must be at most %s %s, the agency's limit for one fee (fee_limit in its fleet file)", c.Format(limit), c),
		)
	}
	if d.State == Upcoming {
		return Change{}, Forbids(BookingStateConflict, "The booking has not started; there is nothing to charge a fee for.")
	}
	c := d.charge(FeeCharge, f.Amount, now)
	c.Fee, c.Reason = f.Kind, f.Reason
	return Change{Booking: d.Booking, Charges: []Charge{c}, Note: f.Reason,
		Details: map[string]any{"kind": f.Kind, "amount": d.Price.Currency.Format(f.Amount), "currency": string(d.Price.Currency)}}, nil
}

// Refund decides to refund an amount to the cards that paid, newest charges first; zero: all that
// is left. Of each charge at most the amount taken is refunded, less earlier refunds that have not
// failed. It fails with a *FieldError, or with a *telematics.Error where less is left.
func (d BookingDetails) Refund(now time.Time, amount Minor, reason string) (Change, error) {
	left, all := d.refundable()
	return d.giveBack(now, left, all, amount, reason)
}

// RefundCharge is Refund for one charge only; zero: all that is left of it. It fails as Refund
// does.
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

// giveBack refunds at most left[i] of each charge i, newest first; all is the sum of left.
func (d BookingDetails) giveBack(now time.Time, left []Minor, all, amount Minor, reason string) (Change, error) {
	if amount < 0 {
		return Change{}, newFieldError("amount", "must be more than 0")
	}
	amount = cmp.Or(amount, all)
	if amount > all || all == 0 {
		return Change{}, ExceedsPaid(d.Price.Currency, all)
	}
	c := Change{Booking: d.Booking, Note: reason,
		Details: map[string]any{"amount": d.Price.Currency.Format(amount), "currency": string(d.Price.Currency)}}
	for i, paid := range slices.Backward(d.Charges) {
		part := min(amount, left[i])
		if part == 0 {
			continue
		}
		refund := d.charge(RefundCharge, part, now)
		refund.Refunds, refund.Reason = paid.ID, reason
		c.Charges = append(c.Charges, refund)
		amount -= part
	}
	return c, nil
}

// Limits are the highest amounts for an administrator's next action; zero: not possible.
type Limits struct{ Refund, Capture, Fee Minor }

// Limits returns the highest amounts that Refund, CaptureDeposit and Fine accept.
func (d BookingDetails) Limits() Limits {
	var l Limits
	_, l.Refund = d.refundable()
	deposit := d.deposit()
	l.Capture = deposit.capturable()
	if d.State != Upcoming {
		l.Fee = d.FeeLimit()
	}
	return l
}

// refundable returns the amount of each charge that can still be refunded, and their sum.
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

// givesBack returns the amount that a refund has paid back, or still may.
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
	Client   string // subject of the token
	States   []ChargeState
	From, To time.Time // of their creation, or payment; inclusive, exclusive
	ByPaid   bool      // From and To are of the payment, capture or refund
	Before   ChargeID  // last charge of the previous page
	Limit    int
}

// BookedCharge is a charge with its booking, client and vehicle.
type BookedCharge struct {
	Charge
	Reference string // of its booking
	Agency    telematics.AgencyID
	Subject   string             // of the client's token
	Vehicle   telematics.Vehicle // its description and agency
}
