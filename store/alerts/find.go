package alerts

import (
	"context"
	"encoding/json"
	"fmt"

	"motorpool/alerts"
	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

// row is an alert as it is read.
type row struct {
	alerts.Alert
	facts  []byte
	seen   alerts.Acknowledgement
	holder alerts.Holder // the booking that has the vehicle
}

// selectAlerts reads rows of alerts a, without those that have not opened.
const selectAlerts = `
	select a.id, a.no, a.rule, a.severity, a.agency_id, a.vehicle_id, v.plate_number, a.person, a.booking_id, a.command_id, a.facts,
		a.since, a.opened_at, a.cleared_at, a.seen_by, a.seen_at, a.seen_note,
		b.id as holding, b.reference, c.subject as client
	from alerts a
		left join vehicles v on v.id = a.vehicle_id
		left join bookings b on b.vehicle_id = a.vehicle_id and b.agency_id = a.agency_id and b.state = 'active'
		left join clients c on c.id = b.client_id
	where a.no is not null`

// fields are where the columns of selectAlerts go.
func (r *row) fields() []any {
	return []any{
		&r.ID, &r.No, &r.Rule, &r.Severity, pg.OrZero(&r.Agency), pg.OrZero(&r.Vehicle), pg.OrZero(&r.Plate), &r.Person,
		pg.OrZero(&r.Booking), pg.OrZero(&r.Command), &r.facts, pg.UTC(&r.Since), pg.UTC(&r.Opened), pg.UTC(&r.Cleared),
		pg.OrZero(&r.seen.By), pg.UTC(&r.seen.At), pg.OrZero(&r.seen.Note),
		pg.OrZero(&r.holder.Booking), pg.OrZero(&r.holder.Reference), pg.OrZero(&r.holder.Client),
	}
}

func (r *row) alert() (alerts.Alert, error) {
	a := r.Alert
	if err := json.Unmarshal(r.facts, &a.Facts); err != nil {
		return a, fmt.Errorf("alert %s: %w", r.ID, err)
	}
	// An amount of money is stored in minor units, as that of the charge is.
	if amount, is := a.Facts["amount"].(float64); is {
		if c, err := rental.ParseCurrency(fmt.Sprint(a.Facts["currency"])); err == nil {
			a.Facts["amount"] = json.Number(c.Format(rental.Minor(amount)))
		}
	}
	if !r.seen.At.IsZero() {
		a.Seen = &r.seen
	}
	if r.holder.Booking != 0 {
		a.Holder = &r.holder
	}
	return a, nil
}

// Find returns alerts, the latest opened first; No is the position of a page.
func (s *Store) Find(ctx context.Context, q alerts.Query) ([]alerts.Alert, error) {
	if !pg.Searchable(string(q.State), string(q.Severity), string(q.Rule)) {
		return nil, nil
	}
	list, err := read(ctx, s.DB.Lists, `
			and ($1::bigint = 0 or a.agency_id = $1)
			and ($2::bigint = 0 or a.vehicle_id = $2)
			and ($3::text = '' or a.rule = $3)
			and ($4::text = '' or a.severity = $4)
			and ($5::text = '' or $5 = 'open' and a.cleared_at is null or $5 = 'cleared' and a.cleared_at is not null)
			and ($6::uuid is null or a.id = $6)
			and ($7 or a.person = '')
			and ($8::bigint = 0 or a.no < $8)
		order by a.no desc
		limit nullif($9::bigint, 0)`,
		q.Agency, q.Vehicle, q.Rule, q.Severity, q.State, pg.Nullable(q.ID), q.Persons, q.Before, q.Limit)
	return list, unavailable.Wrap("read alerts", err)
}

// Open returns all alerts that are open, also those about persons.
func (s *Store) Open(ctx context.Context) ([]alerts.Alert, error) {
	list, err := read(ctx, s.DB.Lists, ` and a.cleared_at is null order by a.no`)
	return list, unavailable.Wrap("read open alerts", err)
}

func read(ctx context.Context, db pg.Querier, which string, args ...any) ([]alerts.Alert, error) {
	return pg.Read(ctx, db, (*row).fields, (*row).alert, selectAlerts+which, args...)
}
