package rentals

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/settings"
	"motorpool/store/unavailable"
)

// Payments compares the processor's payments with the charges on record. It implements
// rental.PaymentRecord.
type Payments struct{ DB *pg.DB }

// Installation implements rental.PaymentRecord.
func (p Payments) Installation(ctx context.Context) (string, error) {
	return settings.Installation(ctx, p.DB)
}

// WithoutCharge implements rental.PaymentRecord.
func (p Payments) WithoutCharge(ctx context.Context, payments []uuid.UUID) (without []uuid.UUID, err error) {
	err = p.DB.Pool.SelectContext(ctx, &without, `
		select p.id from unnest($1::uuid[]) as p (id)
		where not exists (select from charges c where coalesce(c.payment_key, c.id) = p.id)`, pq.Array(payments))
	return without, unavailable.Wrap("find payments without a charge", err)
}

// RefundedLess implements rental.PaymentRecord. Of deposits the processor counts what it released.
func (p Payments) RefundedLess(ctx context.Context, refunded map[uuid.UUID]rental.Minor) (map[uuid.UUID]rental.Minor, error) {
	if len(refunded) == 0 {
		return nil, nil
	}
	payments, amounts := slices.Collect(maps.Keys(refunded)), []int64{}
	for _, payment := range payments {
		amounts = append(amounts, int64(refunded[payment]))
	}
	less, err := pg.Pairs[uuid.UUID, rental.Minor](ctx, p.DB.Pool, `
		select p.payment, r.recorded
		from unnest($1::uuid[], $2::bigint[]) as p (payment, refunded)
			join charges c on coalesce(c.payment_key, c.id) = p.payment and c.kind <> 'deposit'
			cross join lateral (
				select coalesce(sum(case state when 'paid' then settled else amount end), 0)::bigint as recorded
				from charges where refunds_charge_id = c.id and state <> 'failed'
			) r
		where r.recorded < p.refunded`, pq.Array(payments), pq.Array(amounts))
	return less, unavailable.Wrap("compare refunds", err)
}

// ListUnrecorded implements rental.PaymentRecord.
func (p Payments) ListUnrecorded(
	ctx context.Context, since time.Time, found []rental.ListedIntent,
) (added []rental.ListedIntent, err error) {
	err = p.DB.Within(ctx, func(tx *sqlx.Tx) error {
		added = nil
		var before []string
		if err := tx.SelectContext(ctx, &before, `delete from unrecorded_payments where created_at >= $1
			returning intent`, since); err != nil {
			return err
		}
		listed := map[string]bool{}
		for _, intent := range before {
			listed[intent] = true
		}
		for _, i := range found {
			if _, err := tx.ExecContext(ctx, `
				insert into unrecorded_payments (intent, payment, customer, booking, kind, status, amount, currency, created_at)
				values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict (intent) do nothing`,
				i.ID, i.Payment, i.Customer, i.Metadata[rental.MetaBooking], i.Metadata[rental.MetaKind], string(i.Status),
				int64(i.Remains()), string(i.Currency), i.Created); err != nil {
				return err
			}
			if !listed[i.ID] {
				added = append(added, i)
			}
		}
		return nil
	})
	return added, unavailable.Wrap("list payments without a charge", err)
}

// OldestUnrecorded implements rental.PaymentRecord.
func (p Payments) OldestUnrecorded(ctx context.Context) (time.Time, error) {
	var oldest *time.Time
	err := p.DB.Pool.GetContext(ctx, &oldest, `select min(created_at) from unrecorded_payments`)
	return pg.FromTimestamp(oldest), unavailable.Wrap("find the oldest payment without a charge", err)
}

// Unrecorded counts the listed payments that still have no charge.
func (p Payments) Unrecorded(ctx context.Context) (n int, err error) {
	err = p.DB.Pool.GetContext(ctx, &n, `
		select count(*) from unrecorded_payments u
		where not exists (select from charges c where coalesce(c.payment_key, c.id) = u.payment)`)
	return n, unavailable.Wrap("count payments without a charge", err)
}
