package httpapi

import (
	"encoding/json"
	"time"

	"motorpool/rental"
)

// adminBookingBody is what an administrator sees of a booking in addition to what its client sees.
type adminBookingBody struct {
	AgencyID   int64        `json:"agency_id"`
	Client     string       `json:"client"`
	Extensions int          `json:"extensions"`
	Charges    []chargeBody `json:"charges"`
}

// chargeBody is what a booking costs, or gives back, and what became of it.
type chargeBody struct {
	ID          string             `json:"id"`
	Kind        rental.ChargeKind  `json:"kind"`
	Number      int                `json:"number"`
	State       rental.ChargeState `json:"state"`
	Amount      json.Number        `json:"amount"`
	Settled     json.Number        `json:"settled"`
	Currency    rental.Currency    `json:"currency"`
	Fee         *string            `json:"fee"`
	Reason      *string            `json:"reason"`
	Card        *string            `json:"card"`
	DeclineCode *string            `json:"decline_code"`
	Attempts    int                `json:"attempts"`
	NextAttempt *string            `json:"next_attempt_at"`
	PaidAt      *string            `json:"paid_at"`
	CreatedAt   string             `json:"created_at"`
	RefundOf    *string            `json:"refund_of"`
}

func newAdminBookingBody(d rental.Dossier, now time.Time) bookingBody {
	body := newBookingBody(d, now)
	body.adminBookingBody = &adminBookingBody{
		AgencyID: int64(d.Agency), Client: d.Subject, Extensions: d.Extensions, Charges: bodies(d.Charges, newChargeBody),
	}
	return body
}

func newChargeBody(c rental.Charge) chargeBody {
	body := chargeBody{
		ID: c.ID.String(), Kind: c.Kind, Number: c.Number, State: c.State, Amount: money(c.Currency, c.Amount),
		Settled: money(c.Currency, c.Settled), Currency: c.Currency, Fee: orNull(c.Fee), Reason: orNull(c.Reason),
		DeclineCode: orNull(c.DeclineCode), Attempts: c.Attempts, NextAttempt: timestampOrNull(c.NextAttempt),
		PaidAt: timestampOrNull(c.PaidAt), CreatedAt: timestamp(c.Created),
	}
	if c.LastFour != "" {
		label := rental.Card{Brand: c.Brand, LastFour: c.LastFour}.Label()
		body.Card = &label
	}
	if c.Refunds != (rental.ChargeID{}) {
		refunded := c.Refunds.String()
		body.RefundOf = &refunded
	}
	return body
}
