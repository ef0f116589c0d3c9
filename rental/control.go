package rental

import (
	"fmt"
	"slices"
	"time"

	"motorpool/telematics"
)

// When to look again at a booking that forbids an action.
const (
	retrySoon  = 30 * time.Second // it may start, or be paid, any time
	retryEnded = time.Hour        // it stays as it is
)

// Control refuses a client's control action on the vehicle of the booking; nil: the client may
// order it. Locking is allowed as long as the booking is active, so that a vehicle never has to
// stand open. Unlocking needs a booking that is not overdue by more than the agency's grace, and no
// payment for the rental that is owed: a fee does not count, since it can be disputed.
func (d BookingDetails) Control(now time.Time, a telematics.Action) *telematics.Error {
	refusal := d.whyNotControlled(now, a)
	if refusal != nil {
		refusal.Outcome, refusal.RetryAfter = telematics.NotExecuted, retryEnded
		if d.State == Upcoming || refusal.Code == PaymentRequired {
			refusal.RetryAfter = retrySoon
		}
	}
	return refusal
}

func (d BookingDetails) whyNotControlled(now time.Time, a telematics.Action) *telematics.Error {
	owed := func(c Charge) bool { return c.Kind != FeeCharge && (c.isOwed() || c.waitsForOwner()) }
	switch {
	case d.State != Active:
		return Forbids(BookingNotActive,
			fmt.Sprintf("The booking is %s; its vehicle can be locked and unlocked only while it is active. Nothing was sent.", d.State))
	case a == telematics.Lock:
		return nil
	case !now.Before(d.End.Add(d.Terms.UnlockGrace)):
		return Forbids(BookingOverdue, "The booking's time is over; its vehicle can be locked, but not unlocked. Contact the agency. Nothing was sent.")
	case slices.ContainsFunc(d.Charges, owed):
		return Forbids(PaymentRequired,
			"A payment of the booking was declined, or waits for your confirmation; set another default payment method, or confirm it. Nothing was sent.")
	}
	return nil
}
