package rental

import (
	"fmt"
	"slices"
	"time"
)

// notice is how long before the vehicle's next booking an extension must still be possible.
const notice = 30 * time.Minute

// CanCancel reports whether the client may still cancel.
func (d Dossier) CanCancel(now time.Time) bool {
	return d.State == Upcoming && now.Before(d.Start.Add(-d.Terms.CancelCutoff))
}

// Cancel gives the booking up before it began.
func (d Dossier) Cancel(now time.Time) (Change, error) {
	if !d.CanCancel(now) {
		return Change{}, Forbids(BookingNotCancellable, d.whyNotCancelled(now))
	}
	b := d.Booking
	b.State = Cancelled
	return Change{Booking: b}, nil
}

func (d Dossier) whyNotCancelled(now time.Time) string {
	switch {
	case d.State != Upcoming:
		return fmt.Sprintf("The booking is %s; only an upcoming one can be cancelled.", d.State)
	case now.Before(d.Start):
		return fmt.Sprintf("The booking starts in less than %v; it cannot be cancelled any more.", d.Terms.CancelCutoff)
	default:
		return "The booking should have started; it cannot be cancelled any more."
	}
}

// CanExtend reports whether the client may ask for a later end.
func (d Dossier) CanExtend(now time.Time) bool { return d.whyNotExtended(now) == "" }

func (d Dossier) whyNotExtended(now time.Time) string {
	switch {
	case !d.State.IsLive():
		return fmt.Sprintf("The booking is %s; only an upcoming or active one can be extended.", d.State)
	case !now.Before(d.End):
		return "The booking's time is over; it cannot be extended any more."
	case d.Extensions >= MaxExtensions:
		return fmt.Sprintf("The booking was extended %d times already.", d.Extensions)
	case slices.ContainsFunc(d.Charges, Charge.isOwed):
		return "A payment of the booking failed; set another default payment method first."
	case d.taken(d.End.Add(notice)):
		return "The vehicle is booked again too soon after the booking's end."
	}
	return ""
}

// taken reports whether the vehicle's next booking begins too soon after an end.
func (d Dossier) taken(end time.Time) bool {
	return !d.Next.IsZero() && d.Next.Before(end.Add(d.Terms.Buffer))
}

// Extend moves the end. The present end changes nothing, and costs nothing. What is added to an active booking is charged
// now, what is added to an upcoming one when it starts.
func (d Dossier) Extend(now, end time.Time) (Change, error) {
	b := d.Booking
	if end.Equal(d.End) && d.State.IsLive() {
		return Change{Booking: b}, nil
	}
	if why := d.whyNotExtended(now); why != "" {
		return Change{}, Forbids(BookingNotExtendable, why)
	}
	if end.Before(d.End) {
		return Change{}, Forbids(BookingNotExtendable, "The new end is before the present one; a booking is not shortened.")
	}
	if d.taken(end) {
		return Change{}, NotAvailable("The vehicle is booked by somebody else before that end.")
	}
	price, err := d.Price.Over(d.Start, end)
	if err != nil || end.Sub(d.Start) > MaxLength {
		return Change{}, Forbids(BookingNotExtendable, fmt.Sprintf("A booking lasts at most %d days.", MaxLength/(24*time.Hour)))
	}
	b.End, b.Price, b.Extensions = end, price, b.Extensions+1
	c := Change{Booking: b, Details: map[string]any{"end_date": end.UTC().Format(time.RFC3339Nano)}}
	if more := price.Rental() - d.Price.Rental(); d.State == Active {
		c.Charges = []Charge{d.charge(ExtensionCharge, more, now)}
	}
	return c, nil
}

// Begin hands the vehicle over: the rental is charged, and the deposit held.
func (d Dossier) Begin(now time.Time) (Change, error) {
	switch {
	case d.State != Upcoming:
		return Change{}, Forbids(BookingStateConflict, fmt.Sprintf("The booking is %s; only an upcoming one can be started.", d.State))
	case !now.Before(d.End):
		return Change{}, Forbids(BookingStateConflict, "The booking's time is over; it cannot be started any more.")
	case d.InOther:
		return Change{}, NotAvailable("The vehicle is still in the hands of another booking.")
	case d.Before:
		return Change{}, NotAvailable("The vehicle is booked by somebody else before this booking's start.")
	case d.Vehicle.Withdrawn():
		return Change{}, NotAvailable(fmt.Sprintf("The vehicle is withdrawn (%s).", d.Vehicle.Status))
	case d.Card == nil:
		return Change{}, NoMethod()
	}
	b := d.Booking
	b.State, b.ActualStart = Active, now
	c := Change{Booking: b, Charges: []Charge{d.charge(StartCharge, b.Price.Rental(), now)}}
	if b.Price.Deposit > 0 {
		deposit := d.charge(DepositCharge, b.Price.Deposit, now)
		deposit.Goal = Hold
		c.Charges = append(c.Charges, deposit)
	}
	return c, nil
}

// Finish takes the vehicle back: the deposit is released.
func (d Dossier) Finish(now time.Time) (Change, error) {
	if d.State != Active {
		return Change{}, Forbids(BookingNotActive, fmt.Sprintf("The booking is %s; only an active one can be ended.", d.State))
	}
	b := d.Booking
	b.State, b.ActualEnd = Completed, now
	c := Change{Booking: b}
	if deposit, ok := d.deposit(); ok && deposit.Goal == Hold {
		deposit.Goal = Release
		c.Amended = []Charge{deposit}
	}
	return c, nil
}

// Fee is what an administrator adds to what a booking costs.
type Fee struct {
	Kind   string
	Amount Minor
	Reason string
}

// Fine charges a fee.
func (d Dossier) Fine(now time.Time, f Fee) (Change, error) {
	if d.State == Upcoming {
		return Change{}, Forbids(BookingStateConflict, "The booking has not started; there is nothing to charge a fee for.")
	}
	c := d.charge(FeeCharge, f.Amount, now)
	c.Fee, c.Reason = f.Kind, f.Reason
	return Change{Booking: d.Booking, Charges: []Charge{c}, Note: f.Reason,
		Details: map[string]any{"kind": f.Kind, "amount": d.Price.Currency.Format(f.Amount), "currency": string(d.Price.Currency)}}, nil
}

// Refund gives money back, of the newest payments first; zero: all that is left.
func (d Dossier) Refund(now time.Time, amount Minor, reason string) (Change, error) {
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
		if c.State != Paid && c.State != Captured || c.Kind == RefundCharge {
			continue
		}
		left[i] = c.Settled
		for _, refund := range d.Charges {
			if refund.Refunds == c.ID && refund.State != Failed {
				left[i] -= refund.Amount
			}
		}
	}
	return left
}

// CaptureDeposit takes a part of the deposit while it is held.
func (d Dossier) CaptureDeposit(now time.Time, amount Minor, reason string) (Change, error) {
	deposit, ok := d.deposit()
	if !ok || deposit.State != Authorized || deposit.Goal != Hold {
		return Change{}, Forbids(BookingStateConflict, "No deposit of the booking is held.")
	}
	if amount > deposit.Settled {
		return Change{}, Forbids(BookingStateConflict, fmt.Sprintf("No more than %s %s is held.", d.Price.Currency.Format(deposit.Settled), d.Price.Currency))
	}
	deposit.Goal, deposit.CaptureAmount, deposit.Reason = Capture, amount, reason
	return Change{Booking: d.Booking, Amended: []Charge{deposit}, Note: reason,
		Details: map[string]any{"amount": d.Price.Currency.Format(amount), "currency": string(d.Price.Currency)}}, nil
}

func (d Dossier) deposit() (Charge, bool) {
	for _, c := range d.Charges {
		if c.Kind == DepositCharge {
			return c, true
		}
	}
	return Charge{}, false
}

// charge returns a new charge of the booking that is due at once. One of nothing is paid without the processor.
func (d Dossier) charge(kind ChargeKind, amount Minor, now time.Time) Charge {
	c := Charge{Booking: d.ID, Kind: kind, State: Pending, Currency: d.Price.Currency, Amount: amount, NextAttempt: now, Created: now}
	if amount == 0 {
		c.State, c.PaidAt, c.NextAttempt = Paid, now, time.Time{}
	}
	return c
}

// isOwed reports whether a payment was refused and is still owed.
func (c Charge) isOwed() bool {
	return (c.State == Declined || c.State == Failed) && c.Kind != RefundCharge
}
