package rental

import (
	"fmt"
	"time"

	"motorpool/telematics"
)

// Codes of errors about bookings and payments.
const (
	BookingNotFound       telematics.Code = "booking_not_found"
	MethodNotFound        telematics.Code = "payment_method_not_found"
	VehicleNotAvailable   telematics.Code = "vehicle_not_available"
	BookingLimit          telematics.Code = "booking_limit"
	UnpaidLimit           telematics.Code = "unpaid_limit"
	QuoteExpired          telematics.Code = "quote_expired"
	TariffNotFound        telematics.Code = "tariff_not_found"
	BookingNotCancellable telematics.Code = "booking_not_cancellable"
	BookingNotExtendable  telematics.Code = "booking_not_extendable"
	BookingNotActive      telematics.Code = "booking_not_active"
	BookingStateConflict  telematics.Code = "booking_state_conflict"
	BookingOverdue        telematics.Code = "booking_overdue"
	PaymentRequired       telematics.Code = "payment_required"
	PaymentAwaited        telematics.Code = "payment_pending"
	DefaultMethod         telematics.Code = "default_payment_method"
	MethodInUse           telematics.Code = "payment_method_in_use"
	CardDeclined          telematics.Code = "card_declined"
	MethodInvalid         telematics.Code = "payment_method_invalid"
	MethodLimit           telematics.Code = "payment_method_limit"
	MethodRequired        telematics.Code = "payment_method_required"
	RefundExceedsPaid     telematics.Code = "refund_exceeds_paid"
	ProcessorUnavailable  telematics.Code = "payment_processor_unavailable"
	AreaNotFound          telematics.Code = "area_not_found"
	AreaChanged           telematics.Code = "area_changed"
	AreaLimit             telematics.Code = "area_limit"
	RefundFailure         telematics.Code = "refund_failed" // only in the audit log
	TransitionNotFound    telematics.Code = "transition_not_found"
	TransitionIsOpen      telematics.Code = "transition_open"
	TransitionCancelled   telematics.Code = "transition_cancelled"
	ReturnNotPossible     telematics.Code = "return_not_possible"
	TooFar                telematics.Code = "too_far"
	TooEarly              telematics.Code = "too_early"
)

const (
	retryProcessor  = 10 * time.Second
	retryTransition = 5 * time.Second
	retryReturn     = 10 * time.Second // a door is closed, and the vehicle has reported it
)

// NoSuchBooking is the error for a booking that is unknown, or not the caller's: the message is the
// same.
func NoSuchBooking(id BookingID) *telematics.Error {
	return &telematics.Error{Code: BookingNotFound, Message: fmt.Sprintf("The booking %d was not found.", id)}
}

// NoSuchMethod is the error for a payment method that is unknown, or not the caller's.
func NoSuchMethod(id MethodID) *telematics.Error {
	return &telematics.Error{Code: MethodNotFound, Message: fmt.Sprintf("The payment method %d was not found.", id)}
}

// NotAvailable is the error for a vehicle that cannot be booked or handed over.
func NotAvailable(why string) *telematics.Error {
	return &telematics.Error{Code: VehicleNotAvailable, Message: why}
}

// Taken is the error for a vehicle that another booking has in the time that is wanted.
func Taken() *telematics.Error { return NotAvailable("The vehicle has another booking in that time.") }

// Forbids is the error for an action that the booking's state forbids.
func Forbids(code telematics.Code, why string) *telematics.Error {
	return &telematics.Error{Code: code, Message: why}
}

// Unavailable is the error for a processor that is not available.
func Unavailable(cause error) *telematics.Error {
	return &telematics.Error{Code: ProcessorUnavailable, Retryable: true, RetryAfter: retryProcessor, Cause: cause,
		Message: "The payment processor is not available; try again."}
}

// NoMethod is the error for a client without a payment method.
func NoMethod() *telematics.Error {
	return &telematics.Error{Code: MethodRequired, Message: "The client has no payment method; at least one is required for bookings."}
}

// NotTheirMethod is the error for a booking with a payment method that is unknown, or not its
// client's: the message is the same.
func NotTheirMethod(id MethodID) *telematics.Error {
	return &telematics.Error{Code: MethodInvalid, Message: fmt.Sprintf("The client has no payment method %d.", id)}
}

// ExceedsPaid is the error for a refund of more than is left of the payments.
func ExceedsPaid(c Currency, left Minor) *telematics.Error {
	return &telematics.Error{Code: RefundExceedsPaid,
		Message: fmt.Sprintf("At most %s %s can still be refunded.", c.Format(left), c)}
}

// InvalidMethod is the error for a payment method that cannot be attached as a card.
func InvalidMethod(why string, cause error) *telematics.Error {
	return &telematics.Error{Code: MethodInvalid, Cause: cause, Message: "The payment method cannot be used: " + why + "."}
}

// TooManyMethods is the error for a client that already has MaxMethods payment methods.
func TooManyMethods() *telematics.Error {
	return &telematics.Error{Code: MethodLimit,
		Message: fmt.Sprintf("There are %d payment methods already, the maximum; remove one first.", MaxMethods)}
}

// IsDefault is the error for the removal of the default payment method.
func IsDefault() *telematics.Error {
	return &telematics.Error{Code: DefaultMethod,
		Message: "The default payment method cannot be removed; make another one the default first."}
}

// InUse is the error for the removal of a payment method that an open booking or payment uses.
func InUse() *telematics.Error {
	return &telematics.Error{Code: MethodInUse,
		Message: "The payment method cannot be removed while an active booking or an open payment uses it."}
}
