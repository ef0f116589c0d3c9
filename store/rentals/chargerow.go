package rentals

import (
	"time"

	"github.com/google/uuid"

	"motorpool/rental"
	"motorpool/store/pg"
)

// chargeColumns are the columns of a chargeRow, of charges under the name c.
const chargeColumns = `c.id, c.booking_id, c.kind, c.number, c.state, c.currency, c.amount, c.settled, c.goal, c.capture_amount,
	c.refunds_charge_id, c.fee, c.reason, c.payment_method_id, c.brand, c.last_four, c.intent, c.seen, c.attempts, c.declines,
	c.decline_code, c.next_attempt_at, c.paid_at, c.created_at`

// chargeRow is what of a row of charges everybody may know: as a row, or as JSON with the same names.
type chargeRow struct {
	ID              uuid.UUID  `db:"id" json:"id"`
	BookingID       int64      `db:"booking_id" json:"booking_id"`
	Kind            string     `db:"kind" json:"kind"`
	Number          int        `db:"number" json:"number"`
	State           string     `db:"state" json:"state"`
	Currency        string     `db:"currency" json:"currency"`
	Amount          int64      `db:"amount" json:"amount"`
	Settled         int64      `db:"settled" json:"settled"`
	Goal            *string    `db:"goal" json:"goal"`
	CaptureAmount   int64      `db:"capture_amount" json:"capture_amount"`
	RefundsChargeID *uuid.UUID `db:"refunds_charge_id" json:"refunds_charge_id"`
	Fee             string     `db:"fee" json:"fee"`
	Reason          string     `db:"reason" json:"reason"`
	PaymentMethodID *int64     `db:"payment_method_id" json:"payment_method_id"`
	Brand           string     `db:"brand" json:"brand"`
	LastFour        string     `db:"last_four" json:"last_four"`
	Intent          *string    `db:"intent" json:"intent"`
	Seen            string     `db:"seen" json:"seen"`
	Attempts        int        `db:"attempts" json:"attempts"`
	Declines        int        `db:"declines" json:"declines"`
	DeclineCode     string     `db:"decline_code" json:"decline_code"`
	NextAttemptAt   *time.Time `db:"next_attempt_at" json:"next_attempt_at"`
	PaidAt          *time.Time `db:"paid_at" json:"paid_at"`
	CreatedAt       time.Time  `db:"created_at" json:"created_at"`
}

func (r chargeRow) charge() rental.Charge {
	return rental.Charge{
		ID: r.ID, Booking: rental.BookingID(r.BookingID), Kind: rental.ChargeKind(r.Kind), Number: r.Number,
		State: rental.ChargeState(r.State), Currency: rental.Currency(r.Currency),
		Amount: rental.Minor(r.Amount), Settled: rental.Minor(r.Settled),
		Goal: rental.Goal(pg.Deref(r.Goal)), CaptureAmount: rental.Minor(r.CaptureAmount), Refunds: pg.Deref(r.RefundsChargeID),
		Fee: r.Fee, Reason: r.Reason,
		Method: rental.MethodID(pg.Deref(r.PaymentMethodID)), Brand: r.Brand, LastFour: r.LastFour,
		Intent: pg.Deref(r.Intent), Seen: r.Seen, Attempts: r.Attempts, Declines: r.Declines, DeclineCode: r.DeclineCode,
		NextAttempt: pg.FromTimestamp(r.NextAttemptAt), PaidAt: pg.FromTimestamp(r.PaidAt), Created: r.CreatedAt.UTC(),
	}
}
