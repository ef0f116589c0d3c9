package rentals

import (
	"context"
	"time"

	"github.com/google/uuid"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/settings"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// jobRow is a leased charge, with all that its worker needs.
type jobRow struct {
	chargeRow
	Lease     uuid.UUID `db:"lease"`
	QueryOnly bool      `db:"query_only"`
	Tries     int       `db:"tries"`
	ClientID  int64     `db:"client_id"`
	Customer  *string   `db:"customer"`
	Default   *int64    `db:"client_default"`
	Payment   *string   `db:"payment"`
	Reference string    `db:"reference"`
	AgencyID  int64     `db:"agency_id"`
	VehicleID int64     `db:"vehicle_id"`

	MendBy  *time.Time     `db:"mend_by"`
	MendFor *time.Duration `db:"mend_for"`

	Card   rental.Card `db:"card"`    // to try now
	CardID *int64      `db:"card_id"` // null: there is none
}

func (r jobRow) job() rental.Job {
	j := rental.Job{
		Charge: r.charge(), Lease: r.Lease, QueryOnly: r.QueryOnly, Tries: r.Tries,
		Client: rental.ClientID(r.ClientID), Customer: pg.Deref(r.Customer), Default: rental.MethodID(pg.Deref(r.Default)),
		Payment: pg.Deref(r.Payment), Reference: r.Reference,
		Agency: telematics.AgencyID(r.AgencyID), Vehicle: telematics.VehicleID(r.VehicleID),
		MendBy: pg.FromTimestamp(r.MendBy), MendFor: r.MendFor,
	}
	if r.CardID != nil {
		j.Card = &rental.Method{ID: rental.MethodID(*r.CardID), Client: j.Client, Card: r.Card}
	}
	return j
}

// TakeCharges leases up to limit due charges, each to one worker, by Postgres's clock. It clears
// the mark of earlier changes (woken_at). The card of a job is that of the charge, else the
// booking's, else the client's default; never one that is barred for the charge.
func (p Charges) TakeCharges(ctx context.Context, limit int, lease time.Duration) ([]rental.Job, error) {
	installation, err := settings.Installation(ctx, p.DB)
	if err != nil {
		return nil, err
	}
	jobs, err := pg.List(ctx, p.DB.Pool, jobRow.job, `
		with due as (
			select id from charges
			where due_at <= now() and (lease_until is null or lease_until <= now())
			order by due_at limit $1
			for update skip locked
		), c as (
			update charges set lease = gen_random_uuid(), taken_at = clock_timestamp(),
				lease_until = clock_timestamp() + $2 * interval '1 microsecond', woken_at = null
			from due where charges.id = due.id
			returning charges.*
		)
		select `+chargeColumns+`, c.lease, coalesce(c.next_attempt_at > c.taken_at, true) as query_only, c.tries,
			b.client_id, cl.customer, cl.default_payment_method_id as client_default, paid.intent as payment, b.reference, b.agency_id,
			b.vehicle_id,
			case when c.added_ms > 0 and b.state = 'active' and not exists (
				select from charges later
				where later.booking_id = c.booking_id and later.kind = 'extension' and later.number > c.number and later.state <> 'released'
			) then c.mend_by end as mend_by,
			case when c.added_ms > 0 and b.state = 'active' then extract(epoch from a.payment_wait) * 1000000000 end::bigint as mend_for,
			`+cardColumns+`,
			card.id as card_id
		from c
			join bookings b on b.id = c.booking_id
			join clients cl on cl.id = b.client_id
			join agencies a on a.id = b.agency_id
			left join charges paid on paid.id = c.refunds_charge_id
			left join lateral (
				select m.* from payment_methods m
				where m.client_id = b.client_id and m.token <> all (c.barred) and coalesce(m.fingerprint, '') <> all (c.barred)
					and m.id in (c.payment_method_id, b.payment_method_id, cl.default_payment_method_id)
				order by m.id is not distinct from c.payment_method_id desc, m.id is not distinct from b.payment_method_id desc
				limit 1
			) card on true
		order by c.due_at, c.id`,
		limit, lease.Microseconds())
	for i := range jobs {
		jobs[i].Installation = installation
	}
	return jobs, unavailable.Wrap("take charges", err)
}

// chargeColumns are the columns of a chargeRow, of charges under the name c.
const chargeColumns = `c.id, c.payment_key, c.booking_id, c.kind, c.number, c.state, c.currency, c.amount, c.settled, c.goal,
	c.capture_amount,
	c.refunds_charge_id, c.added_ms, c.mended_at, c.fee, c.reason, c.payment_method_id, c.brand, c.last_four, c.intent, c.seen, c.attempts,
	c.declines,
	c.decline_code, c.next_attempt_at, c.paid_at, c.created_at, c.requested_by`

// chargeRow holds the columns of charges that all readers use: as a row, or as JSON with the same
// names.
type chargeRow struct {
	ID              uuid.UUID  `db:"id" json:"id"`
	PaymentKey      *uuid.UUID `db:"payment_key" json:"payment_key"`
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
	AddedMS         int64      `db:"added_ms" json:"added_ms"`
	MendedAt        *time.Time `db:"mended_at" json:"mended_at"`
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
	RequestedBy     string     `db:"requested_by" json:"requested_by"`
}

func (r chargeRow) charge() rental.Charge {
	return rental.Charge{
		ID: r.ID, Key: pg.Deref(r.PaymentKey), Booking: rental.BookingID(r.BookingID), Kind: rental.ChargeKind(r.Kind), Number: r.Number,
		State: rental.ChargeState(r.State), Currency: rental.Currency(r.Currency),
		Amount: rental.Minor(r.Amount), Settled: rental.Minor(r.Settled),
		Goal: rental.Goal(pg.Deref(r.Goal)), CaptureAmount: rental.Minor(r.CaptureAmount), Refunds: pg.Deref(r.RefundsChargeID),
		Added: time.Duration(r.AddedMS) * time.Millisecond, Mended: pg.FromTimestamp(r.MendedAt),
		Fee: r.Fee, Reason: r.Reason, By: r.RequestedBy,
		Method: rental.MethodID(pg.Deref(r.PaymentMethodID)), Brand: r.Brand, LastFour: r.LastFour,
		Intent: pg.Deref(r.Intent), AttemptID: r.Seen, Attempts: r.Attempts, Declines: r.Declines, DeclineCode: r.DeclineCode,
		NextAttempt: pg.FromTimestamp(r.NextAttemptAt), PaidAt: pg.FromTimestamp(r.PaidAt), Created: r.CreatedAt.UTC(),
	}
}
