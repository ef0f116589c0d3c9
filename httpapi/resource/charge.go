package resource

import (
	"encoding/json"

	"motorpool/rental"
)

// Charge is a charge or a refund of a booking.
type Charge struct {
	ID          string             `json:"id"`
	PaymentID   string             `json:"payment_id"` // metadata charge_id at the processor
	Kind        rental.ChargeKind  `json:"kind"`
	Number      int                `json:"number"`
	State       rental.ChargeState `json:"state"`
	Amount      json.Number        `json:"amount"`
	Settled     json.Number        `json:"settled"`
	Currency    rental.Currency    `json:"currency"`
	Goal        *rental.Goal       `json:"goal"`           // of a deposit; else null
	Capture     *json.Number       `json:"capture_amount"` // null: nothing of it is to be taken
	Fee         *string            `json:"fee"`
	Reason      *string            `json:"reason"`
	Card        *string            `json:"card"`
	DeclineCode *string            `json:"decline_code"`
	Attempts    int                `json:"attempts"`
	NextAttempt *string            `json:"next_attempt_at"`
	PaidAt      *string            `json:"paid_at"`
	CreatedAt   string             `json:"created_at"`
	RefundOf    *string            `json:"refund_of"`
	RequestedBy *string            `json:"requested_by"` // null: it was not recorded
}

// NewCharge returns a charge of a booking.
func NewCharge(c rental.Charge) Charge {
	body := Charge{
		ID: c.ID.String(), PaymentID: c.PaymentID().String(), Kind: c.Kind, Number: c.Number, State: c.State,
		Amount: Money(c.Currency, c.Amount), Settled: Money(c.Currency, c.Settled), Currency: c.Currency,
		Goal: OrNull(c.Goal), Fee: OrNull(c.Fee), Reason: OrNull(c.Reason), DeclineCode: OrNull(c.DeclineCode),
		Attempts: c.Attempts, NextAttempt: TimestampOrNull(c.NextAttempt), PaidAt: TimestampOrNull(c.PaidAt),
		CreatedAt: Timestamp(c.Created), RequestedBy: OrNull(c.By),
	}
	if c.LastFour != "" {
		body.Card = new(rental.Card{Brand: c.Brand, LastFour: c.LastFour}.Label())
	}
	if c.Goal == rental.Capture {
		body.Capture = new(Money(c.Currency, c.CaptureAmount))
	}
	if c.Refunds != (rental.ChargeID{}) {
		body.RefundOf = new(c.Refunds.String())
	}
	return body
}

// BookedCharge is a charge in a list of charges of many bookings.
type BookedCharge struct {
	Charge
	BookingID int64          `json:"booking_id"`
	Reference string         `json:"booking_reference"`
	AgencyID  int64          `json:"agency_id"`
	Client    string         `json:"client"`
	Vehicle   BookingVehicle `json:"vehicle"`
}

// NewBookedCharge returns a charge with its booking, client and vehicle.
func NewBookedCharge(c rental.BookedCharge) BookedCharge {
	return BookedCharge{
		Charge: NewCharge(c.Charge), BookingID: int64(c.Booking), Reference: c.Reference, AgencyID: int64(c.Agency), Client: c.Subject,
		Vehicle: BookingVehicle{int64(c.Vehicle.ID), newDescription(c.Vehicle)},
	}
}
