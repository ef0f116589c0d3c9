package rental

import (
	"fmt"
	"slices"
	"time"

	"motorpool/telematics"
)

// Begin decides to start the booking: the rental is charged, and the deposit held. The price stays
// as agreed. It fails as MayBegin does, and without a card to charge.
func (d BookingDetails) Begin(now time.Time) (Change, error) {
	if d.inTransition() {
		return Change{}, d.errTransitionOpen()
	}
	if err := d.MayBegin(now); err != nil {
		return Change{}, err
	}
	if d.Card == nil {
		return Change{}, NoMethod()
	}
	b := d.Booking
	b.State, b.ActualStart, b.ReservedUntil = Active, now, time.Time{}
	c := Change{Booking: b, Charges: []Charge{d.charge(StartCharge, b.Price.Rental(), now)}}
	if b.Price.Deposit > 0 {
		deposit := d.charge(DepositCharge, b.Price.Deposit, now)
		deposit.Goal = Hold
		c.Charges = append(c.Charges, deposit)
	}
	return c, nil
}

// MayBegin returns a *telematics.Error that says why the booking cannot start now; nil: it can. It
// may be late, or early if no other booking occupies the vehicle until the start.
func (d BookingDetails) MayBegin(now time.Time) error {
	switch {
	case d.State != Upcoming:
		return d.isNot(BookingStateConflict, Upcoming, "be started")
	case !now.Before(d.End):
		return Forbids(BookingStateConflict, "The booking's end has passed; it can no longer be started.")
	case d.InOther:
		return NotAvailable("The vehicle is still in use by another booking.")
	case d.Before:
		return NotAvailable("The vehicle has another booking before this booking's start.")
	case d.Vehicle.AgencyID != d.Agency:
		// An import has moved it: this client must not be able to open it.
		return NotAvailable("The vehicle belongs to another agency by now.")
	case d.Vehicle.Withdrawn():
		return NotAvailable(fmt.Sprintf("The vehicle is out of service (%s).", d.Vehicle.Status))
	}
	return nil
}

// isNot returns the error for what only a booking in another state can do.
func (d BookingDetails) isNot(code telematics.Code, wanted BookingState, can string) *telematics.Error {
	return Forbids(code, fmt.Sprintf("The booking is %s; only an %s one can %s.", d.State, wanted, can))
}

// notice is how much time an extension must be able to add before the vehicle's next booking.
const notice = 30 * time.Minute

// CanExtend reports whether the client may request a later end: the booking is upcoming or active,
// its time is not over, it was extended less than MaxExtensions times, none of its payments was
// refused and is still owed, the vehicle is still the agency's, and its next booking leaves half an
// hour more, in addition to the agency's buffer. No transition is open.
func (d BookingDetails) CanExtend(now time.Time) bool {
	return !d.inTransition() && d.whyNotExtended(now, telematics.Client) == ""
}

func (d BookingDetails) whyNotExtended(now time.Time, by telematics.Role) string {
	switch {
	case !d.State.IsLive():
		return fmt.Sprintf("The booking is %s; only an upcoming or active one can be extended.", d.State)
	case !now.Before(d.End) && (by == telematics.Client || d.State == Upcoming):
		return "The booking's end has passed; it can no longer be extended."
	case d.Extensions >= MaxExtensions:
		return fmt.Sprintf("The booking was extended %d times already.", d.Extensions)
	case slices.ContainsFunc(d.Charges, Charge.isOwed):
		return "A payment of the booking failed; set another default payment method first."
	case slices.ContainsFunc(d.Charges, func(c Charge) bool { return c.Added > 0 && c.waitsForClient() }):
		return "The payment of the last extension waits for your confirmation, or is tried again."
	case d.Vehicle.AgencyID != d.Agency:
		// An import has moved it: this client could not open it.
		return "The vehicle belongs to another agency by now."
	case d.taken(d.End.Add(notice)):
		return "The vehicle is booked again too soon after the booking's end."
	}
	return ""
}

// taken reports whether the vehicle's next booking begins before end plus the agency's buffer.
func (d BookingDetails) taken(end time.Time) bool {
	return !d.Next.IsZero() && d.Next.Before(end.Add(d.Terms.Buffer))
}

// MinLength is the shortest time that is charged, a hundredth of an hour: of a booking, and of an
// extension. What is shorter would be rounded to nothing, again and again.
const MinLength = time.Hour / 100

// Extend decides to move the end, by MinLength at least. The current end changes nothing. The new
// price is that of the whole time by the booking's tariff. An active booking is charged the
// difference now if its start was charged, and all of it where no hold lasts as long; an upcoming
// one when it starts. It fails with a *telematics.Error that says why it cannot be extended. Staff
// can do so also once the end of an active booking has passed, to an end in the future.
func (d BookingDetails) Extend(now, end time.Time, by telematics.Role) (Change, error) {
	b, end := d.Booking, truncateToMillis(end)
	if end.Equal(d.End) && d.State.IsLive() {
		return Change{Booking: b}, nil
	}
	if d.inTransition() {
		return Change{}, d.errTransitionOpen()
	}
	if why := d.whyNotExtended(now, by); why != "" {
		return Change{}, Forbids(BookingNotExtendable, why)
	}
	if end.Before(d.End) {
		return Change{}, Forbids(BookingNotExtendable, "end_date must be after the current one; bookings cannot be shortened.")
	}
	if !end.After(now) {
		return Change{}, Forbids(BookingNotExtendable, "end_date must be in the future.")
	}
	if end.Sub(d.End) < MinLength {
		return Change{}, Forbids(BookingNotExtendable, fmt.Sprintf("An extension adds at least %d seconds.", MinLength/time.Second))
	}
	if d.taken(end) {
		return Change{}, NotAvailable("The vehicle has another booking before that end.")
	}
	if end.Sub(d.Start) > MaxLength {
		return Change{}, Forbids(BookingNotExtendable, fmt.Sprintf("A booking lasts at most %d days.", MaxLength/(24*time.Hour)))
	}
	price, err := d.over(end)
	if err != nil {
		return Change{}, Forbids(BookingNotExtendable, "The booking would cost more than can be charged.")
	}
	b.End, b.Price, b.Extensions = end, price, b.Extensions+1
	c := Change{Booking: b, Details: map[string]any{"end_date": end.Format(time.RFC3339Nano)}}
	more, pays := price.Rental()-d.Price.Rental(), d.isStartCharged()
	if !pays && end.Sub(d.ActualStart) > securedFor {
		more, pays = max(0, price.Rental()-d.askedFor()), true
	}
	if d.State == Active && pays {
		extension := d.charge(ExtensionCharge, more, now)
		extension.Added = end.Sub(d.End)
		c.Charges = []Charge{extension}
	}
	return c, nil
}

// isStartCharged reports whether the booked time was charged, and that is not taken back. By a
// tariff it need not be: then the end charges all, or SettleUp once the deposit is not held.
func (d BookingDetails) isStartCharged() bool {
	return slices.ContainsFunc(d.Charges, func(c Charge) bool { return c.Kind == StartCharge && c.Goal != Release })
}

// TakeBack returns the booking without an extension that was not paid: with the end and the price
// from before, and as many extensions left. It does not change one that was extended again since,
// or has ended. It fails where the price cannot be computed.
func (d BookingDetails) TakeBack(extension ChargeID) (Change, error) {
	i := slices.IndexFunc(d.Charges, func(c Charge) bool { return c.ID == extension && c.Added > 0 })
	if i < 0 || d.State != Active || slices.ContainsFunc(d.Charges, func(c Charge) bool {
		return c.Kind == ExtensionCharge && c.Number > d.Charges[i].Number && c.State != Released
	}) {
		return Change{Booking: d.Booking}, nil
	}
	b := d.Booking
	b.End, b.Extensions = d.End.Add(-d.Charges[i].Added), d.Extensions-1
	var err error
	b.Price, err = d.over(b.End)
	return Change{Booking: b}, err
}

// Finish decides to end the booking, early or late; the price stays as agreed, and what of it was
// not charged yet is. SettleUp decides about the deposit. It fails with a *telematics.Error where
// the booking is not active.
func (d BookingDetails) Finish(now time.Time) (Change, error) {
	if d.inTransition() {
		return Change{}, d.errTransitionOpen()
	}
	d.Booking = d.resumed(now)
	c, err := d.finish(now)
	if err != nil {
		return Change{}, err
	}
	if owed := d.owed(); owed > 0 {
		c.Charges = []Charge{d.charge(EndCharge, owed, now)}
	}
	return d.andSettleUp(now, c), nil
}

func (d BookingDetails) finish(now time.Time) (Change, error) {
	if d.State != Active {
		return Change{}, d.isNot(BookingNotActive, Active, "be ended")
	}
	b := d.Booking
	b.State, b.ActualEnd = Completed, now
	return Change{Booking: b}, nil
}

// andSettleUp adds to the change that ends a rental what SettleUp decides after it.
func (d BookingDetails) andSettleUp(now time.Time, c Change) Change {
	d.Booking, d.Charges = c.Booking, slices.Concat(d.Charges, c.Charges)
	c.Amended = SettleUp(d, now).Amended
	return c
}

// SettleUp decides what becomes of the deposit of a rental that has ended, and of what the rental
// owes. The deposit is held until each payment for the rental's time has a result, and then
// released. Those that the client would have to mend are withdrawn, and the deposit pays for them;
// what it does not cover is charged anew. While the rental runs, and is not being ended, its price
// is charged if only the deposit was held, and is not any more.
func SettleUp(d BookingDetails, now time.Time) Change {
	c := Change{Booking: d.Booking}
	deposit, owed := d.deposit(), d.owed()
	ends := d.inTransition() && d.Transition.Kind == EndRental // Close charges the final price
	if d.State == Active && !ends && (deposit.State == Released || deposit.State == Captured) && owed > 0 && !d.isStartCharged() {
		c.Charges = []Charge{d.charge(StartCharge, owed, now)}
	}
	if d.State != Completed {
		return c
	}
	pays, open := deposit.capturable(), false
	for _, p := range d.Charges {
		if !p.Kind.paysTime() || p.State.IsFinal() {
			continue
		}
		open = true
		if pays > 0 && (p.isOwed() || p.waitsForOwner()) {
			p.Goal, p.NextAttempt = Release, now
			c.Amended = append(c.Amended, p)
		}
	}
	if deposit.Goal == Hold && !deposit.State.IsFinal() && (!open || deposit.isRefused() || deposit.waitsForOwner()) {
		deposit.Goal, deposit.NextAttempt = Release, now
		if pays = min(pays, owed); pays > 0 {
			deposit.Goal, deposit.CaptureAmount = Capture, pays
			owed -= pays
		}
		c.Amended = append(c.Amended, deposit)
	}
	if owed > 0 && !open {
		c.Charges = []Charge{d.charge(EndCharge, owed, now)}
	}
	return c
}

// owed returns what of the price was neither charged nor waived.
func (d BookingDetails) owed() Minor {
	owed := d.Price.Rental() - d.askedFor()
	for _, c := range d.Charges {
		if c.Kind.paysTime() && c.State == Waived {
			owed -= c.Amount
		}
	}
	return owed
}

// CanCancel reports whether the client may still cancel: the booking is upcoming, and the agency's
// cutoff before its start is not reached. An immediate one that lapses unless it is started can be
// cancelled until then, so that the vehicle is free again earlier. No transition is open.
func (d BookingDetails) CanCancel(now time.Time) bool {
	isHeld := d.isImmediate() && !d.ReservedUntil.IsZero()
	return !d.inTransition() && d.State == Upcoming && (isHeld || now.Before(d.Start.Add(-d.Terms.CancelCutoff)))
}

// Cancel decides to cancel the booking: a client if CanCancel allows it, staff while it is
// upcoming, also after the agency's cutoff. It fails with a *telematics.Error where not.
func (d BookingDetails) Cancel(now time.Time, by telematics.Role) (Change, error) {
	if d.inTransition() {
		return Change{}, d.errTransitionOpen()
	}
	why := "The booking should have started; it can no longer be cancelled."
	switch {
	case d.State != Upcoming:
		return Change{}, d.isNot(BookingNotCancellable, Upcoming, "be cancelled")
	case by != telematics.Client || d.CanCancel(now):
		d.State = Cancelled
		return Change{Booking: d.Booking}, nil
	case now.Before(d.Start):
		why = fmt.Sprintf("The booking starts in less than %v; it can no longer be cancelled.", telematics.Words(d.Terms.CancelCutoff))
	}
	return Change{}, Forbids(BookingNotCancellable, why)
}

// Move decides to move a booking to the vehicle of MoveTo, at the agreed price. It fails with a
// *telematics.Error where the booking has begun, or a payment of it was tried: its identity at the
// processor has the vehicle. It also fails as Draft.CheckVehicle does, and where the client can do
// less with the vehicle than with the former one.
func Move(d BookingDetails) (Change, error) {
	b, to := d.Booking, d.MoveTo.Vehicle.ID
	switch {
	case d.inTransition():
		return Change{}, d.errTransitionOpen()
	case d.State != Upcoming:
		return Change{}, d.isNot(BookingStateConflict, Upcoming, "move to another vehicle")
	case to == b.VehicleID:
		return Change{Booking: b}, nil
	case len(d.Charges) > 0:
		return Change{}, Forbids(BookingStateConflict, "A payment of the booking was tried: cancel it, and make another one.")
	}
	if err := (Draft{Agency: d.Agency, Vehicle: to}).CheckVehicle(d.MoveTo); err != nil {
		return Change{}, err
	}
	if d.MoveTo.Lacking {
		return Change{}, withoutCommands()
	}
	b.VehicleID = to
	if !b.isImmediate() { // its client may have waited for the former vehicle
		b.ReservedUntil = time.Time{}
	}
	return Change{Booking: b, Details: map[string]any{"from_vehicle_id": int64(d.VehicleID)}}, nil
}

// Lapse decides to cancel a booking that was not started until its end, or in the time for which
// its agency keeps it. It returns false where the booking is kept still.
func (d BookingDetails) Lapse(now time.Time) (Change, bool) {
	until, field := KeptUntil(d.Booking), "reserved_until"
	if until.IsZero() {
		until, field = d.End, "end_date"
	}
	if d.State != Upcoming || now.Before(until) {
		return Change{}, false
	}
	b := d.Booking
	b.State = Cancelled
	return Change{Booking: b, Details: map[string]any{field: until.Format(time.RFC3339Nano)}}, true
}
