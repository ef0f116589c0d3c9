package rentals

import (
	"context"
	"time"

	"github.com/google/uuid"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// jobRow is a charge that was taken, with all that its worker needs.
type jobRow struct {
	chargeRow
	Lease     uuid.UUID `db:"lease"`
	Look      bool      `db:"look"`
	Tries     int       `db:"tries"`
	ClientID  int64     `db:"client_id"`
	Customer  *string   `db:"customer"`
	Default   *int64    `db:"client_default"`
	Payment   *string   `db:"payment"`
	Reference string    `db:"reference"`
	AgencyID  int64     `db:"agency_id"`
	VehicleID int64     `db:"vehicle_id"`

	CardID          *int64     `db:"card_id"` // null: there is none to try
	CardToken       *string    `db:"card_token"`
	CardBrand       *string    `db:"card_brand"`
	CardLastFour    *string    `db:"card_last_four"`
	CardExpMonth    *int       `db:"card_exp_month"`
	CardExpYear     *int       `db:"card_exp_year"`
	CardFingerprint *string    `db:"card_fingerprint"`
	CardDefault     *bool      `db:"card_default"`
	CardCreatedAt   *time.Time `db:"card_created_at"`
}

func (r jobRow) job() rental.Job {
	j := rental.Job{
		Charge: r.charge(), Lease: r.Lease, Look: r.Look, Tries: r.Tries,
		Client: rental.ClientID(r.ClientID), Customer: pg.Deref(r.Customer), Default: rental.MethodID(pg.Deref(r.Default)), Payment: pg.Deref(r.Payment), Reference: r.Reference,
		Agency: telematics.AgencyID(r.AgencyID), Vehicle: telematics.VehicleID(r.VehicleID),
	}
	if r.CardID != nil {
		j.Card = &rental.Method{
			ID: rental.MethodID(*r.CardID), Client: j.Client, Default: pg.Deref(r.CardDefault), Created: pg.FromTimestamp(r.CardCreatedAt),
			Card: rental.Card{
				Token: pg.Deref(r.CardToken), Brand: pg.Deref(r.CardBrand), LastFour: pg.Deref(r.CardLastFour),
				ExpMonth: pg.Deref(r.CardExpMonth), ExpYear: pg.Deref(r.CardExpYear), Fingerprint: pg.Deref(r.CardFingerprint),
			},
		}
	}
	return j
}

// TakeCharges takes up to limit charges that are due, each for one worker, for the length of a lease by Postgres's clock. What
// happens to a charge from here on is marked in it anew. The card is the charge's own, else the booking's, else the default, and none
// that it must not be tried with.
func (p Charges) TakeCharges(ctx context.Context, limit int, lease time.Duration) ([]rental.Job, error) {
	var rows []jobRow
	err := p.DB.Pool.SelectContext(ctx, &rows, `
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
		select `+chargeColumns+`, c.lease, coalesce(c.next_attempt_at > c.taken_at, true) as look, c.tries,
			b.client_id, cl.customer, cl.default_payment_method_id as client_default, paid.intent as payment, b.reference, b.agency_id, b.vehicle_id,
			card.id as card_id, card.token as card_token, card.brand as card_brand, card.last_four as card_last_four,
			card.exp_month as card_exp_month, card.exp_year as card_exp_year, card.fingerprint as card_fingerprint,
			card.id = cl.default_payment_method_id as card_default, card.created_at as card_created_at
		from c
			join bookings b on b.id = c.booking_id
			join clients cl on cl.id = b.client_id
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
	if err != nil {
		return nil, unavailable.Wrap("take charges", err)
	}
	jobs := make([]rental.Job, len(rows))
	for i, row := range rows {
		jobs[i] = row.job()
	}
	return jobs, nil
}
