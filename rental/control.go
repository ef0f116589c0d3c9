package rental

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"motorpool/telematics"
)

// Retry-After for an action that the booking forbids.
const (
	retrySoon  = 30 * time.Second // it may start, or be paid, at any time
	retryEnded = time.Hour        // it will not change
	retryPaid  = 2 * time.Second  // a processor answers within that, unless it is slow
)

// Control returns why the client may not order a control action on the booking's vehicle; nil: it
// may. Locking is allowed while the booking is active, so that a vehicle never has to stay
// unlocked. Other actions also need a booking that is not paused, nor overdue by more than the
// agency's grace, no payment that is owed or waits for the card's owner (a fee does not count,
// since it can be disputed), and, for the agency's PaymentWait after the start, that the start is
// paid and the deposit held. Then a payment without a result no longer counts: the client cannot
// mend it. Once the client has chosen another card, a payment counts as long as after a start.
func (d BookingDetails) Control(now time.Time, a telematics.Action) *telematics.Error {
	refusal := d.whyNotControlled(now, a)
	if refusal != nil {
		refusal.Outcome = telematics.NotExecuted
		switch {
		case refusal.Code == TransitionIsOpen: // it says when
		case refusal.Code == PaymentAwaited:
			refusal.Retryable, refusal.RetryAfter = true, retryPaid
		case d.State == Upcoming || refusal.Code == PaymentRequired:
			refusal.RetryAfter = retrySoon
		default:
			refusal.RetryAfter = retryEnded
		}
	}
	return refusal
}

// MayLocate returns why the client of a booking may not see where its vehicle, which has a status,
// is; nil: they may, as long as they rent it, and once they can start, unless others have it still.
func MayLocate(d BookingDetails, now time.Time, is telematics.VehicleStatus) error {
	switch {
	case d.State == Active:
		return nil
	case d.State != Upcoming:
		return Forbids(BookingNotActive, fmt.Sprintf("The booking is %s; its vehicle can be seen only until it ends.", d.State))
	case is == telematics.InUse:
		return Forbids(VehicleNotAvailable, "The vehicle is still in use by another booking.")
	}
	return cmp.Or(d.MayBegin(now), d.tooEarly(now, "its vehicle can be seen"))
}

func (d BookingDetails) whyNotControlled(now time.Time, a telematics.Action) *telematics.Error {
	owed := slices.IndexFunc(d.Charges, func(c Charge) bool { return c.waitsForClient() && c.Mended.IsZero() })
	awaited := func(c Charge) bool {
		since := d.ActualStart
		if c.Mended.After(since) {
			since = c.Mended
		}
		unpaid := (c.Kind == StartCharge || c.Kind == DepositCharge) && !c.isMade() || c.waitsForClient()
		return unpaid && now.Before(since.Add(d.Terms.PaymentWait))
	}
	switch {
	case d.State != Active:
		return Forbids(BookingNotActive,
			fmt.Sprintf("The booking is %s; its vehicle can be locked and unlocked only while it is active. Nothing was sent.", d.State))
	case a == telematics.Lock:
		return nil
	case d.inTransition() && (d.Transition.Kind == EndRental || d.Transition.Kind == PauseRental):
		return d.errTransitionOpen()
	case !d.PausedSince.IsZero():
		return Forbids(BookingStateConflict, "The rental is paused; resume it to unlock its vehicle. Nothing was sent.")
	case !now.Before(d.End.Add(d.Terms.UnlockGrace)):
		return Forbids(
			BookingOverdue,
			"The booking's end has passed; its vehicle can be locked, but not unlocked. Contact the agency. Nothing was sent.",
		)
	case owed >= 0 && d.Charges[owed].Added > 0:
		return Forbids(
			PaymentRequired,
			fmt.Sprintf(
				"The payment of the extension was declined, or waits for your confirmation; set another default payment method, "+
					"or confirm it, "+
					"within %d minutes. Otherwise the extension is taken back, and the booking ends as agreed before. Nothing was sent.",
				d.Terms.PaymentWait/time.Minute,
			),
		)
	case owed >= 0:
		return Forbids(
			PaymentRequired,
			"A payment of the booking was declined, or waits for your confirmation; set another default payment method, or confirm it. "+
				"Nothing was sent.",
		)
	case slices.ContainsFunc(d.Charges, awaited):
		return Forbids(
			PaymentAwaited,
			"The payment of the booking has no result yet; the vehicle can be unlocked once it is paid and the deposit is held. "+
				"Try again in a few seconds. Nothing was sent.",
		)
	}
	return nil
}
