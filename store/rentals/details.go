package rentals

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// detailsRow is a row of bookings with the rows that belong to it, and what is to be decoded.
type detailsRow struct {
	rental.BookingDetails
	identity        *uuid.UUID
	terms           vehicles.TermsRow
	card            rental.Card // zero: none
	plan            []byte      // JSON; null: none
	charges, latest []byte      // JSON; null: none
}

// fields are where the columns of selectDetailsOf go.
func (r *detailsRow) fields() []any {
	b := &r.Booking
	station := func(s *telematics.Station) []any {
		return []any{&s.ID, &s.AgencyID, &s.Name, &s.Address, &s.Latitude, &s.Longitude}
	}
	return slices.Concat([]any{
		&b.ID, &r.identity, &b.Reference, &b.State, &b.Agency, &b.Client, pg.UTC(&b.Start), pg.UTC(&b.End),
		pg.UTC(&b.ActualStart), pg.UTC(&b.ActualEnd), &b.Price.Currency, &b.Price.HourlyRate, &b.Price.Tax, &b.Price.Hours,
		&b.Price.Subtotal, &b.Price.TaxDue, &b.Price.Deposit, pg.OrZero(&b.Method), &b.Extensions, pg.UTC(&b.Created),
		&r.plan, pg.UTC(&b.PausedSince), pg.Count(&b.PausedFor, time.Millisecond), pg.OrZero(&b.StartMetres),
		pg.OrZero(&b.EndMetres), pg.UTC(&b.ReservedUntil), pg.UTC(&b.FreeSince), &r.AgencyCode, &r.Subject,
	}, r.terms.Columns(), vehicles.DescriptionFields(&r.Vehicle), []any{
		vehicles.Actions(&r.Vehicle.Actions), pg.OrZero(&r.Vehicle.Unit), pg.OrZero(&r.Vehicle.Protocol), pg.UTC(&r.UnitSince),
	}, station(&r.Pickup), station(&r.Dropoff), []any{
		&r.card.Token, &r.card.Brand, &r.card.LastFour, &r.card.ExpMonth, &r.card.ExpYear, &r.card.Fingerprint,
		&r.charges, &r.latest, pg.UTC(&r.Next), &r.InOther, &r.Before,
	})
}

// cardColumns are those of the payment method card, which may be absent.
const cardColumns = `coalesce(card.token, ''), coalesce(card.brand, ''),
	coalesce(card.last_four, ''), coalesce(card.exp_month, 0),
	coalesce(card.exp_year, 0), coalesce(card.fingerprint, '')`

// selectDetailsOf selects bookings b with the rows that belong to them. The vehicle's other
// bookings o are the live ones; $1 is now.
const selectDetailsOf = `
	select b.id, b.cause, b.reference, b.state, b.agency_id, b.client_id, b.start_at, b.end_at, b.started_at, b.ended_at,
		b.currency, b.hourly_rate, b.tax_ppm, b.hours, b.subtotal, b.tax, b.deposit, b.payment_method_id, b.extensions, b.created_at,
		b.tariff, b.paused_at, b.paused_ms, b.start_metres, b.end_metres, b.reserved_until,
		case when b.started_at > b.start_at then (
			select least(max(free.at), b.started_at) from bookings o left join transitions t on t.booking_id = o.id and t.kind = 'start'
				cross join lateral (values (case when o.ended_at <= b.started_at then ` + backAt + ` end), (` + undoneAt + `)) free (at)
			where o.vehicle_id = b.vehicle_id and o.id <> b.id and coalesce(o.ended_at, o.end_at) > b.start_at - interval '1 day'
				and free.at > b.start_at and free.at <= b.started_at + interval '2 seconds' -- telematics.ClockTolerance
		) end as free_since,
		a.code as agency_code, c.subject, ` + vehicles.TermsColumns + `,
		` + vehicles.DescriptionColumns + `, v.capabilities, u.serial, u.protocol,
		u.moved_at as unit_since,
		p.id, p.agency_id, p.name, p.address,
		p.latitude, p.longitude,
		d.id, d.agency_id, d.name, d.address,
		d.latitude, d.longitude,
		` + cardColumns + `,
		(
			select json_agg(x order by x.created_at, x.id)
			from (select ` + chargeColumns + ` from charges c where c.booking_id = b.id) x
		) as charges,
		(
			select row_to_json(y)
			from (
				select ` + transitionColumns + `
				from transitions x where x.booking_id = b.id
				order by x.ended_at is null desc, x.requested_at desc, x.id desc limit 1
			) y
		) as transition,
		o.next_start, coalesce(o.in_other, false) as in_other, coalesce(o.before, false) as before
	from bookings b
		join agencies a on a.id = b.agency_id
		join clients c on c.id = b.client_id
		join vehicles v on v.id = b.vehicle_id
		left join units u on u.vehicle_id = v.id
		join stations p on p.id = b.pickup_station_id
		join stations d on d.id = b.dropoff_station_id
		left join payment_methods card on card.id = coalesce(b.payment_method_id, c.default_payment_method_id)
		cross join lateral (
			select min(o.start_at) filter (where o.start_at > b.start_at) as next_start,
				bool_or(o.state = 'active' or exists (
					select from transitions t
					where t.booking_id = o.id and t.state = 'open' and t.kind = 'start' and t.step <> 'refund' -- as in takenTimes
				)) as in_other,
				bool_or(o.start_at < b.start_at and o.end_at > $1::timestamptz) as before
			from bookings o
			where o.vehicle_id = b.vehicle_id and o.id <> b.id and o.state in ('upcoming', 'active')
		) o`

// details returns the booking of a row. Its error names the booking.
func (r *detailsRow) details() (d rental.BookingDetails, err error) {
	d = r.BookingDetails
	defer func() {
		if err != nil {
			err = fmt.Errorf("booking %d: %w", d.ID, err)
		}
	}()
	if d.Identity = pg.Deref(r.identity); r.identity == nil {
		d.Identity = rental.EarlierIdentity(d.ID, d.Reference, d.Created)
	}
	d.VehicleID, d.PickupID, d.DropoffID = d.Vehicle.ID, d.Pickup.ID, d.Dropoff.ID
	if d.Terms, err = r.terms.Decode(); err != nil {
		return d, err
	}
	if r.plan != nil {
		if err := json.Unmarshal(r.plan, &d.Plan); err != nil {
			return d, fmt.Errorf("decode tariff: %w", err)
		}
	}
	var charges []chargeRow
	if r.charges != nil {
		if err := json.Unmarshal(r.charges, &charges); err != nil {
			return d, fmt.Errorf("decode charges: %w", err)
		}
	}
	for _, row := range charges {
		d.Charges = append(d.Charges, row.charge())
	}
	d.Card = r.cardOf(d)
	if r.latest != nil {
		var row transitionRow
		if err := json.Unmarshal(r.latest, &row); err != nil {
			return d, fmt.Errorf("decode transition: %w", err)
		}
		latest, err := row.transition()
		if err != nil {
			return d, err
		}
		d.Transition = &latest
	}
	return d, nil
}

// cardOf returns the card that pays: that of the newest payment that was tried, which may have been
// removed since, else the one that would be tried. A payment that was taken back counts only where
// the booking is over and has no other.
func (r *detailsRow) cardOf(d rental.BookingDetails) *rental.Card {
	var pays rental.Charge
	isBack := func(c rental.Charge) bool { return c.State == rental.Released || c.Goal == rental.Release }
	for _, c := range d.Charges {
		tried, back := c.LastFour != "" && c.Kind != rental.RefundCharge, isBack(c)
		if tried && (!back || pays.State == "" || isBack(pays)) {
			pays = c
		}
	}
	if pays.State != "" && (!isBack(pays) || !d.State.IsLive()) {
		return &rental.Card{Brand: pays.Brand, LastFour: pays.LastFour}
	}
	if r.card.Token == "" {
		return nil
	}
	return &r.card
}
