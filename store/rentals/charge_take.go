package rentals

import (
	"context"
	"time"

	"github.com/google/uuid"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/settings"
	"motorpool/store/unavailable"
)

// jobRow is a leased charge, with all that its worker needs.
type jobRow struct {
	chargeRow
	rental.Job
	card rental.Method // to try now; zero: there is none
}

func (r *jobRow) fields() []any {
	j, m := &r.Job, &r.card
	return append(r.chargeRow.fields(), &j.Lease, &j.QueryOnly, &j.Tries, &j.Client, pg.OrZero(&j.Customer), pg.OrZero(&j.Default),
		pg.OrZero(&j.Payment), &j.Reference, &j.Agency, &j.Vehicle, pg.UTC(&j.MendBy), &j.MendFor,
		&m.Token, &m.Brand, &m.LastFour, &m.ExpMonth, &m.ExpYear, &m.Fingerprint, pg.OrZero(&m.ID))
}

func (r *jobRow) job() (rental.Job, error) {
	r.Charge = r.charge()
	if r.card.ID != 0 {
		r.card.Client = r.Client
		r.Card = &r.card
	}
	return r.Job, nil
}

// TakeCharges leases up to limit due charges, each to one worker, by Postgres's clock. It clears
// the mark of earlier changes (woken_at). The card of a job is that of the charge, else the
// booking's, else the client's default; never one that is barred for the charge.
func (p Charges) TakeCharges(ctx context.Context, limit int, lease time.Duration) ([]rental.Job, error) {
	installation, err := settings.Installation(ctx, p.DB)
	if err != nil {
		return nil, err
	}
	jobs, err := pg.Read(ctx, p.DB.Pool, (*jobRow).fields, (*jobRow).job, `
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
			card.id
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
	ID              uuid.UUID  `json:"id"`
	PaymentKey      *uuid.UUID `json:"payment_key"`
	BookingID       int64      `json:"booking_id"`
	Kind            string     `json:"kind"`
	Number          int        `json:"number"`
	State           string     `json:"state"`
	Currency        string     `json:"currency"`
	Amount          int64      `json:"amount"`
	Settled         int64      `json:"settled"`
	Goal            *string    `json:"goal"`
	CaptureAmount   int64      `json:"capture_amount"`
	RefundsChargeID *uuid.UUID `json:"refunds_charge_id"`
	AddedMS         int64      `json:"added_ms"`
	MendedAt        *time.Time `json:"mended_at"`
	Fee             string     `json:"fee"`
	Reason          string     `json:"reason"`
	PaymentMethodID *int64     `json:"payment_method_id"`
	Brand           string     `json:"brand"`
	LastFour        string     `json:"last_four"`
	Intent          *string    `json:"intent"`
	Seen            string     `json:"seen"`
	Attempts        int        `json:"attempts"`
	Declines        int        `json:"declines"`
	DeclineCode     string     `json:"decline_code"`
	NextAttemptAt   *time.Time `json:"next_attempt_at"`
	PaidAt          *time.Time `json:"paid_at"`
	CreatedAt       time.Time  `json:"created_at"`
	RequestedBy     string     `json:"requested_by"`
}

// fields are where chargeColumns go.
func (r *chargeRow) fields() []any {
	return []any{
		&r.ID, &r.PaymentKey, &r.BookingID, &r.Kind, &r.Number, &r.State, &r.Currency, &r.Amount, &r.Settled, &r.Goal, &r.CaptureAmount,
		&r.RefundsChargeID, &r.AddedMS, &r.MendedAt, &r.Fee, &r.Reason, &r.PaymentMethodID, &r.Brand, &r.LastFour, &r.Intent, &r.Seen,
		&r.Attempts, &r.Declines, &r.DeclineCode, &r.NextAttemptAt, &r.PaidAt, &r.CreatedAt, &r.RequestedBy,
	}
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
