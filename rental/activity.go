package rental

import "motorpool/telematics"

// Activities of the history. A change of a charge reads charge.start, charge.deposit and so on.
const (
	BookingCreate   = "booking.create"
	BookingCancel   = "booking.cancel"
	BookingExtend   = "booking.extend"
	BookingStart    = "booking.start"
	BookingEnd      = "booking.end"
	BookingFee      = "booking.fee"
	BookingRefund   = "booking.refund"
	BookingCapture  = "booking.deposit_capture"
	MethodAdd       = "payment_method.add"
	MethodRemove    = "payment_method.remove"
	MethodDefault   = "payment_method.default"
	MethodDropped   = "payment_method.dropped" // the processor no longer holds it
	AgencyKeyAdd    = "agency_key.add"
	AgencyKeyRetire = "agency_key.retire"
	AgencyKeyRevoke = "agency_key.revoke"
	chargeActivity  = "charge."
	systemSubject   = "motorpool"
)

// ChargeActivity is the name in the history of what happens to a charge.
func ChargeActivity(k ChargeKind) string { return chargeActivity + string(k) }

// System is the actor of what happens automatically.
func System() telematics.Actor {
	return telematics.Actor{Subject: systemSubject, Role: telematics.System}
}
