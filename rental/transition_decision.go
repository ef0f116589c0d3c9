package rental

import (
	"fmt"
	"slices"
	"time"

	"motorpool/telematics"
)

// startsEarly is how long before its start a client can start a booking. Staff are free to. Half
// refuses clients who come a bit early; double gives half an hour away, where the price is agreed.
const startsEarly = 15 * time.Minute

// Open decides to begin a transition: the result is what is written with it. The start of a rental
// charges it, and holds the deposit; the booking is active once the vehicle has opened. Open fails
// with a *telematics.Error that says why the transition is not possible.
func (d BookingDetails) Open(now time.Time, k TransitionKind, by telematics.Role) (Change, error) {
	if d.inTransition() {
		return Change{}, d.errTransitionOpen()
	}
	switch k {
	case StartRental:
		if by == telematics.Client && d.State == Upcoming {
			if err := d.tooEarly(now, "it can be started"); err != nil {
				return Change{}, err
			}
		}
		c, err := d.Begin(now)
		if err != nil {
			return Change{}, err
		}
		if c.Booking = d.Booking; d.isOnlyHeld(now) {
			c.Charges = c.Charges[1:]
		}
		return c, nil
	case PauseRental:
		return Change{Booking: d.Booking}, d.mayPause()
	case ResumeRental:
		return Change{Booking: d.Booking}, d.mayResume(now)
	default:
		_, err := d.finish(now)
		return Change{Booking: d.Booking}, err
	}
}

// tooEarly returns an error that says what is possible only from shortly before the start.
func (d BookingDetails) tooEarly(now time.Time, what string) error {
	early := d.Start.Sub(now)
	if early <= startsEarly {
		return nil
	}
	return &telematics.Error{
		Code: TooEarly, Outcome: telematics.NotExecuted, Retryable: true, RetryAfter: early - startsEarly,
		Message: fmt.Sprintf("The booking begins in %v; %s from %v before.",
			telematics.Words(early.Truncate(time.Second)), what, telematics.Words(startsEarly)),
	}
}

func (d BookingDetails) mayPause() error {
	switch {
	case d.State != Active:
		return d.isNot(BookingNotActive, Active, "be paused")
	case !d.PausedSince.IsZero():
		return Forbids(BookingStateConflict, "The rental is paused already.")
	}
	return nil
}

func (d BookingDetails) mayResume(now time.Time) error {
	if d.State == Active && d.PausedSince.IsZero() {
		return Forbids(BookingStateConflict, "The rental is not paused.")
	}
	d.Booking = d.resumed(now)
	if refusal := d.Control(now, telematics.Unlock); refusal != nil {
		return refusal
	}
	return nil
}

// securedFor is how long a rental may be for which only a deposit is held: a processor ends holds
// after seven days, of some cards sooner. Half has those of a long weekend pay at the start; double
// secures the second week by nothing.
const securedFor = 6 * 24 * time.Hour

// isOnlyHeld reports whether a start only holds the deposit, by a tariff and the agency's rules,
// and does not charge the price of the booked time.
func (d BookingDetails) isOnlyHeld(now time.Time) bool {
	return d.Plan != nil && d.Terms.Rules.ChargeAtStart == ChargeNothing && d.Price.Deposit > 0 && d.End.Sub(now) <= securedFor
}

// PaymentProgress is how far the payment of a start has come.
type PaymentProgress int

const (
	PaymentAwaits     PaymentProgress = iota // no result yet
	PaymentNeedsOwner                        // the card's owner must confirm
	PaymentRefused                           // the card was refused
	PaymentMade                              // paid, and the deposit is held
)

// StartPayment returns how far the payment of the start has come. A deposit whose hold the
// processor has ended counts as refused, and so does one that is too small for it, where nothing
// else is charged.
func (d BookingDetails) StartPayment() PaymentProgress {
	progress, payments := PaymentMade, d.startPayments()
	for _, c := range payments {
		switch {
		case c.isRefused(), c.State == Released, c.State == Waived && c.Kind == DepositCharge && len(payments) == 1 && d.Price.Rental() > 0:
			return PaymentRefused
		case c.isMade():
		case c.State == RequiresAction:
			progress = PaymentNeedsOwner
		case progress == PaymentMade:
			progress = PaymentAwaits
		}
	}
	return progress
}

// startPayments returns the charges of the start that are not taken back.
func (d BookingDetails) startPayments() []Charge {
	return slices.DeleteFunc(slices.Clone(d.Charges), func(c Charge) bool {
		return c.Kind != StartCharge && c.Kind != DepositCharge || c.Goal == Release
	})
}

// Activate decides that the rental has begun at a time: its vehicle has opened. metres is its
// odometer; 0: not known. It fails with a *telematics.Error where the booking is not upcoming.
func (d BookingDetails) Activate(now, began time.Time, metres int64) (Change, error) {
	if d.State != Upcoming {
		return Change{}, d.isNot(BookingStateConflict, Upcoming, "be started")
	}
	d.State, d.ActualStart, d.StartMetres, d.ReservedUntil = Active, began, metres, time.Time{}
	return SettleUp(d, now), nil // the hold may have ended meanwhile
}

// TakeBackStart decides what is still to be done so that a start that failed costs nothing: charges
// that are not made are withdrawn, the deposit is released, what was paid is refunded. done reports
// that nothing is left, and nothing can be taken any more.
func (d BookingDetails) TakeBackStart(now time.Time) (c Change, done bool) {
	c, done = Change{Booking: d.Booking}, true
	for _, charge := range d.Charges {
		if charge.Kind != StartCharge && charge.Kind != DepositCharge {
			continue
		}
		if left := d.notReturned(charge, time.Time{}); left > 0 {
			refund := d.charge(RefundCharge, left, now)
			refund.Refunds, refund.Reason = charge.ID, "the rental did not start"
			c.Charges = append(c.Charges, refund)
		}
		if charge.Goal != Release {
			charge.Goal, charge.NextAttempt = Release, now
			c.Amended = append(c.Amended, charge)
		}
		done = done && charge.State.IsFinal()
	}
	return c, done
}

// notReturned returns what a charge took and no refund was requested for until a time; zero: until
// now, by whatever instance's clock. A refund that failed is not requested again by itself: its
// card's bank has returned it, which an administrator mends.
func (d BookingDetails) notReturned(c Charge, until time.Time) Minor {
	if !c.isTaken() {
		return 0
	}
	left := c.Settled
	for _, refund := range d.Charges {
		if refund.Refunds == c.ID && (until.IsZero() || !refund.Created.After(until)) {
			left -= refund.Amount
		}
	}
	return max(0, left)
}

// Pause decides that the rental is paused since a time. It fails with a *telematics.Error where it
// cannot be.
func (d BookingDetails) Pause(since time.Time) (Change, error) {
	if err := d.mayPause(); err != nil {
		return Change{}, err
	}
	b := d.Booking
	b.PausedSince = since
	return Change{Booking: b}, nil
}

// Resume decides that the rental is not paused any more. It fails with a *telematics.Error where it
// is not.
func (d BookingDetails) Resume(now time.Time) (Change, error) {
	if d.State != Active || d.PausedSince.IsZero() {
		return Change{}, Forbids(BookingStateConflict, "The rental is not paused.")
	}
	return Change{Booking: d.resumed(now)}, nil
}

// EndPause decides that a pause has ended: the vehicle has reported that its ignition is on, at a
// time by its own clock, which may be ahead. It returns false where the rental is not paused since
// before.
func EndPause(d BookingDetails, now, at time.Time) (Change, bool) {
	if d.State != Active || d.PausedSince.IsZero() || !at.After(d.PausedSince) {
		return Change{}, false
	}
	return Change{Booking: d.resumed(earlier(now, at)), Details: map[string]any{"at": at.UTC().Format(time.RFC3339Nano)}}, true
}

// resumed returns the booking with its pause ended.
func (b Booking) resumed(now time.Time) Booking {
	if !b.PausedSince.IsZero() {
		b.PausedFor += max(0, now.Sub(b.PausedSince))
		b.PausedSince = time.Time{}
	}
	return b
}

// Close decides to end the rental, which was over at a time, at its final price: what is owed in
// addition is charged now, what was paid in excess is refunded, and SettleUp decides about the
// deposit. metres is the odometer; 0: not known. It counts for nothing if the unit came after the
// start. A price that is out of range stays as agreed. Where a payment that is too much by now has
// no result, the change withdraws it; done is false: Close decides again once it has one. It fails
// with a *telematics.Error where the booking is not active.
func (d BookingDetails) Close(now, end time.Time, metres int64) (c Change, done bool, err error) {
	if d.ActualStart.After(end) {
		end = d.ActualStart
	}
	before := d.Booking
	d.Booking = d.resumed(end)
	c, err = d.finish(end)
	if err != nil {
		return Change{}, false, err
	}
	if c.Booking.EndMetres = metres; d.UnitSince.After(d.ActualStart) {
		c.Booking.EndMetres = 0 // another odometer
	}
	if price, _, err := c.Booking.FinalPrice(end); err == nil {
		c.Booking.Price = price
	}
	owed := c.Booking.Price.Rental() - d.askedFor()
	if withdrawn, open := d.withdraw(now, owed < 0); open {
		return Change{Booking: before, Amended: withdrawn}, false, nil
	}
	switch left, all := d.refundableTime(); {
	case owed > 0:
		c.Charges = append(c.Charges, d.charge(EndCharge, owed, now))
	case owed < 0 && all > 0:
		back, err := d.giveBack(now, left, all, min(-owed, all), "the rental cost less than was charged at its start")
		if err != nil {
			return Change{}, false, err
		}
		c.Charges = append(c.Charges, back.Charges...)
	}
	return d.andSettleUp(now, c), true, nil
}

// withdraw returns the payments of the rental's time that are to be withdrawn, if too much was
// asked for. open reports that one that is withdrawn has no result yet: it may have been paid.
func (d BookingDetails) withdraw(now time.Time, tooMuch bool) (withdrawn []Charge, open bool) {
	for _, c := range d.Charges {
		switch {
		case c.Kind != StartCharge && c.Kind != ExtensionCharge || c.State.IsFinal():
		case c.Goal == Release:
			open = true
		case tooMuch:
			c.Goal, c.NextAttempt, open = Release, now, true
			withdrawn = append(withdrawn, c)
		}
	}
	return withdrawn, open
}

// paysTime reports whether a charge is for the time of the rental.
func (k ChargeKind) paysTime() bool {
	return k == StartCharge || k == ExtensionCharge || k == EndCharge
}

// askedFor returns what the charges for the rental's time come to, and what the deposit pays of it.
// What staff gave back since was asked for, and is not again; of a start that was taken back, only
// what was not refunded before the rental began counts.
func (d BookingDetails) askedFor() (asked Minor) {
	for _, c := range d.Charges {
		switch {
		// Staff give a reason.
		case c.Goal == Capture && c.Reason == "" && c.State != Released:
			asked += c.CaptureAmount
		case !c.Kind.paysTime():
		case c.Kind == StartCharge && c.Goal == Release:
			asked += d.notReturned(c, d.ActualStart)
		case c.isTaken() || c.State != Released && c.Goal != Release && c.State != Waived:
			asked += c.Amount // the processor may have rounded
		}
	}
	return asked
}

// refundableTime is refundable of the charges for the rental's time.
func (d BookingDetails) refundableTime() (left []Minor, all Minor) {
	left, _ = d.refundable()
	for i, c := range d.Charges {
		if !c.Kind.paysTime() {
			left[i] = 0
		}
		all += left[i]
	}
	return left, all
}

// TooFarToStart returns why a client at a position cannot start; nil: it can. A nil position was
// not said.
func (r Rules) TooFarToStart(client *telematics.Position, vehicle telematics.Position) error {
	limit := r.MaxDistance
	if client == nil {
		return newFieldError("latitude", fmt.Sprintf("is required, with longitude: you must be within %d m of the vehicle", limit))
	}
	if metres := client.WholeMetres(vehicle); metres > limit {
		return &telematics.Error{
			Code: TooFar, Outcome: telematics.NotExecuted, Retryable: true, RetryAfter: retryReturn,
			Message: fmt.Sprintf("You are %d m away from the vehicle; come within %d m of it. Nothing was sent.", metres, limit),
		}
	}
	return nil
}

// StartRefused returns the error of a start whose payment was refused.
func (d BookingDetails) StartRefused() *telematics.Error {
	e := &telematics.Error{
		Code: PaymentRequired, Outcome: telematics.NotExecuted,
		Message: "The payment was declined; the rental did not start, and nothing is charged. " +
			"Set another default payment method and try again.",
	}
	for _, c := range d.startPayments() {
		switch {
		case c.isOwed():
			e.Reason = c.DeclineCode
		case c.isRefused(), c.State == Waived: // no other card helps
			e.Message = "The payment could not be made; the rental did not start, and nothing is charged. Contact the agency."
		}
	}
	return e
}

// StartUnpaid returns the error of a start whose payment has no result in time.
func StartUnpaid(p PaymentProgress) *telematics.Error {
	if p == PaymentNeedsOwner {
		return &telematics.Error{
			Code: PaymentRequired, Outcome: telematics.NotExecuted,
			Message: "The payment was not confirmed in time; the rental did not start, and nothing is charged.",
		}
	}
	return &telematics.Error{
		Code: PaymentAwaited, Outcome: telematics.NotExecuted, Retryable: true, RetryAfter: retrySoon,
		Message: "The payment had no result in time; the rental did not start, and nothing is charged.",
	}
}

// StartCancelled returns the error of a start that its client has given up.
func StartCancelled() *telematics.Error {
	return &telematics.Error{
		Code: TransitionCancelled, Message: "The start was cancelled; what was charged is paid back.",
	}
}

// StartOnItsWay returns the error for giving up a start whose command is on its way.
func StartOnItsWay() *telematics.Error {
	return &telematics.Error{
		Code: TransitionIsOpen, Retryable: true, RetryAfter: retryTransition,
		Message: "The vehicle is just being opened; look again in a few seconds.",
	}
}
