package rental

import "motorpool/telematics"

// Names of activities in the audit log. A change of a charge is charge.start, charge.deposit etc.
const (
	QuoteCreate        = "quote.create" // only a refusal is recorded
	BookingCreate      = "booking.create"
	BookingCancel      = "booking.cancel"
	BookingLapse       = "booking.lapse" // not started in time
	BookingExtend      = "booking.extend"
	BookingMove        = "booking.move" // to another vehicle
	BookingStart       = "booking.start"
	BookingEnd         = "booking.end"
	BookingFee         = "booking.fee"
	BookingRefund      = "booking.refund"
	BookingCapture     = "booking.deposit_capture"
	PauseEnd           = "rental.pause_end" // by itself: the vehicle is driven
	TransitionCancel   = "rental.cancel"    // a client or administrator gives up a start
	TransitionRepeat   = "rental.repeat"    // the command of a transition is to be ordered again
	TransitionOverride = "rental.override"  // an administrator does not wait for the vehicle
	MethodAdd          = "payment_method.add"
	MethodRemove       = "payment_method.remove"
	MethodDefault      = "payment_method.default"
	MethodDropped      = "payment_method.dropped" // the processor no longer holds it
	TariffChange       = "tariff.change"
	RulesChange        = "rental_rules.change"
	AgencyKeyAdd       = "agency_key.add"
	AgencyKeyRetire    = "agency_key.retire"
	AgencyKeyRevoke    = "agency_key.revoke"
	ChargeDispute      = "charge.dispute" // a card's owner disputes a payment, or it is decided
	chargeActivity     = "charge."
	systemSubject      = "motorpool"
)

// ChargeActivity returns the name, in the audit log, of a change of a charge.
func ChargeActivity(k ChargeKind) string { return chargeActivity + string(k) }

// System returns the actor of automatic changes.
func System() telematics.Actor {
	return telematics.Actor{Subject: systemSubject, Role: telematics.System}
}

// TransitionActivity returns the name, in the audit log, of a start, pause, resumption or end of a
// rental.
func TransitionActivity(k TransitionKind) string { return "rental." + string(k) }
