package rentals

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/store/vehicles"
)

// bookedChargeRow is a row of charges with the booking, client and vehicle that it belongs to.
type bookedChargeRow struct {
	chargeRow
	rental.BookedCharge
}

func (r *bookedChargeRow) fields() []any {
	return slices.Concat(r.chargeRow.fields(), []any{&r.Reference, &r.Agency, &r.Subject}, vehicles.DescriptionFields(&r.Vehicle))
}

func (r *bookedChargeRow) charge() (rental.BookedCharge, error) {
	r.Charge = r.chargeRow.charge()
	return r.BookedCharge, nil
}

// FindCharges implements httpapi.Bookings. Ids grow with time.
func (p Bookings) FindCharges(ctx context.Context, q rental.ChargeQuery) ([]rental.BookedCharge, error) {
	states := pg.Map(q.States, func(s rental.ChargeState) string { return string(s) })
	if !pg.Searchable(append(states, q.Client)...) {
		return nil, nil
	}
	found, err := pg.Read(ctx, p.DB.Lists, (*bookedChargeRow).fields, (*bookedChargeRow).charge, `
		select `+chargeColumns+`, b.reference, b.agency_id, cl.subject, `+vehicles.DescriptionColumns+`
		from charges c
			join bookings b on b.id = c.booking_id
			join clients cl on cl.id = b.client_id
			join vehicles v on v.id = b.vehicle_id
		where ($1::bigint = 0 or b.agency_id = $1)
			and ($2::bigint = 0 or c.booking_id = $2)
			and ($8::text = '' or cl.subject = $8 and ($1 = 0 or cl.agency_id = $1)) -- the key of clients begins with the agency
			and (cardinality($3::text[]) = 0 or c.state = any ($3))
			and ($4::timestamptz is null or case when $9 then c.paid_at else c.created_at end >= $4)
			and ($5::timestamptz is null or case when $9 then c.paid_at else c.created_at end < $5)
			and ($6::uuid = '`+uuid.Nil.String()+`' or c.id < $6)
		order by c.id desc
		limit nullif($7::bigint, 0)`,
		q.Agency, q.Booking, pq.Array(states), pg.Timestamp(q.From), pg.Timestamp(q.To), q.Before, q.Limit, q.Client,
		q.ByPaid)
	return found, unavailable.Wrap("read charges", err)
}
