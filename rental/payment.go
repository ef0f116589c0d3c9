package rental

import "time"

// PaymentStatus sums up the charges of a booking.
type PaymentStatus string

const (
	PaymentRequiresAction    PaymentStatus = "requires_action"
	PaymentFailed            PaymentStatus = "failed"
	PaymentPending           PaymentStatus = "pending"
	PaymentAuthorized        PaymentStatus = "authorized"
	PaymentRefunded          PaymentStatus = "refunded"
	PaymentPartiallyRefunded PaymentStatus = "partially_refunded"
	PaymentPaid              PaymentStatus = "paid"
)

// Payment is what a client is told of the money.
type Payment struct {
	Method string // label of the card; empty: there is none
	Status PaymentStatus
	PaidAt time.Time // zero: not paid
}
