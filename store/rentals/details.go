package rentals

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// detailsRow is a row of bookings with the rows that belong to it.
type detailsRow struct {
	ID         int64      `db:"id"`
	Identity   *uuid.UUID `db:"cause"`
	Reference  string     `db:"reference"`
	State      string     `db:"state"`
	AgencyID   int64      `db:"agency_id"`
	ClientID   int64      `db:"client_id"`
	StartAt    time.Time  `db:"start_at"`
	EndAt      time.Time  `db:"end_at"`
	StartedAt  *time.Time `db:"started_at"`
	EndedAt    *time.Time `db:"ended_at"`
	Currency   string     `db:"currency"`
	HourlyRate int64      `db:"hourly_rate"`
	TaxPPM     int64      `db:"tax_ppm"`
	Hours      int64      `db:"hours"`
	Subtotal   int64      `db:"subtotal"`
	Tax        int64      `db:"tax"`
	Deposit    int64      `db:"deposit"`
	MethodID   *int64     `db:"payment_method_id"`
	Extensions int        `db:"extensions"`
	CreatedAt  time.Time  `db:"created_at"`

	Plan          []byte     `db:"tariff"` // JSON; null: none
	PausedAt      *time.Time `db:"paused_at"`
	PausedMS      int64      `db:"paused_ms"`
	StartMetres   *int64     `db:"start_metres"`
	EndMetres     *int64     `db:"end_metres"`
	ReservedUntil *time.Time `db:"reserved_until"`
	FreeSince     *time.Time `db:"free_since"`

	AgencyCode string             `db:"agency_code"`
	Subject    string             `db:"subject"`
	Terms      vehicles.TermsRow  `db:"terms"`
	Vehicle    vehicles.Row       `db:"vehicle"`
	UnitSince  *time.Time         `db:"unit_since"`
	Pickup     telematics.Station `db:"pickup"`
	Dropoff    telematics.Station `db:"dropoff"`
	Card       rental.Card        `db:"card"` // zero: none

	Charges []byte     `db:"charges"`    // JSON; null: none
	Latest  []byte     `db:"transition"` // JSON; null: none
	Next    *time.Time `db:"next_start"`
	InOther bool       `db:"in_other"`
	Before  bool       `db:"before"`
}

// cardColumns are those of the payment method card, which may be absent.
const cardColumns = `coalesce(card.token, '') as "card.token", coalesce(card.brand, '') as "card.brand",
	coalesce(card.last_four, '') as "card.lastfour", coalesce(card.exp_month, 0) as "card.expmonth",
	coalesce(card.exp_year, 0) as "card.expyear", coalesce(card.fingerprint, '') as "card.fingerprint"`

// vehicleColumns describe the vehicle v of a booking.
const vehicleColumns = `v.id as "vehicle.id", v.agency_id as "vehicle.agency_id", v.status as "vehicle.status",
	v.powertrain as "vehicle.powertrain",
	v.plate_number as "vehicle.plate_number", v.brand as "vehicle.brand", v.model as "vehicle.model", v.year as "vehicle.year",
	v.color as "vehicle.color", v.category as "vehicle.category", v.image as "vehicle.image", v.features as "vehicle.features"`

// selectDetailsOf selects bookings b with the rows that belong to them. The vehicle's other
// bookings o are the live ones; $1 is now.
const selectDetailsOf = `
	select b.id, b.cause, b.reference, b.state, b.agency_id, b.client_id, b.start_at, b.end_at, b.started_at, b.ended_at,
		b.currency, b.hourly_rate, b.tax_ppm, b.hours, b.subtotal, b.tax, b.deposit, b.payment_method_id, b.extensions, b.created_at,
		b.tariff, b.paused_at, b.paused_ms, b.start_metres, b.end_metres, b.reserved_until,
		case when b.started_at > b.start_at then greatest((
			select max(` + backAt + `) from bookings o
			where o.vehicle_id = b.vehicle_id and o.id <> b.id and o.ended_at between b.start_at - interval '1 day' and b.started_at
				and ` + backAt + ` > b.start_at
		), case when v.maintenance_since between b.start_at and b.started_at then v.maintenance_since end) end as free_since,
		a.code as agency_code, c.subject, ` + vehicles.TermsColumns + `,
		` + vehicleColumns + `,
		v.capabilities as "vehicle.capabilities", u.serial as "vehicle.serial", u.protocol as "vehicle.protocol",
		u.moved_at as unit_since,
		p.id as "pickup.id", p.agency_id as "pickup.agencyid", p.name as "pickup.name", p.address as "pickup.address",
		p.latitude as "pickup.latitude", p.longitude as "pickup.longitude",
		d.id as "dropoff.id", d.agency_id as "dropoff.agencyid", d.name as "dropoff.name", d.address as "dropoff.address",
		d.latitude as "dropoff.latitude", d.longitude as "dropoff.longitude",
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
					select from transitions t where t.booking_id = o.id and t.state = 'open' and t.kind = 'start'
				)) as in_other,
				bool_or(o.start_at < b.start_at and o.end_at > $1::timestamptz) as before
			from bookings o
			where o.vehicle_id = b.vehicle_id and o.id <> b.id and o.state in ('upcoming', 'active')
		) o`

// details returns the booking of a row. Its error names the booking.
func (r detailsRow) details() (_ rental.BookingDetails, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("booking %d: %w", r.ID, err)
		}
	}()
	terms, err := r.Terms.Decode()
	if err != nil {
		return rental.BookingDetails{}, err
	}
	d := rental.BookingDetails{
		Booking: r.booking(), AgencyCode: r.AgencyCode, Terms: terms, Subject: r.Subject,
		Vehicle: r.Vehicle.Vehicle(), Pickup: r.Pickup, Dropoff: r.Dropoff,
		UnitSince: pg.FromTimestamp(r.UnitSince), Next: pg.FromTimestamp(r.Next), InOther: r.InOther, Before: r.Before,
	}
	if r.Plan != nil {
		if err := json.Unmarshal(r.Plan, &d.Plan); err != nil {
			return rental.BookingDetails{}, fmt.Errorf("decode tariff: %w", err)
		}
	}
	var charges []chargeRow
	if r.Charges != nil {
		if err := json.Unmarshal(r.Charges, &charges); err != nil {
			return rental.BookingDetails{}, fmt.Errorf("decode charges: %w", err)
		}
	}
	for _, row := range charges {
		d.Charges = append(d.Charges, row.charge())
	}
	d.Card = r.card(d.Charges)
	if r.Latest != nil {
		var row transitionRow
		if err := json.Unmarshal(r.Latest, &row); err != nil {
			return rental.BookingDetails{}, fmt.Errorf("decode transition: %w", err)
		}
		latest, err := row.transition()
		if err != nil {
			return rental.BookingDetails{}, err
		}
		d.Transition = &latest
	}
	return d, nil
}

func (r detailsRow) identity() uuid.UUID {
	if r.Identity == nil {
		return rental.EarlierIdentity(rental.BookingID(r.ID), r.Reference, r.CreatedAt)
	}
	return *r.Identity
}

func (r detailsRow) booking() rental.Booking {
	return rental.Booking{
		ID: rental.BookingID(r.ID), Identity: r.identity(), Reference: r.Reference, State: rental.BookingState(r.State),
		Agency: telematics.AgencyID(r.AgencyID), Client: rental.ClientID(r.ClientID), VehicleID: telematics.VehicleID(r.Vehicle.ID),
		PickupID: r.Pickup.ID, DropoffID: r.Dropoff.ID, Start: r.StartAt.UTC(), End: r.EndAt.UTC(),
		ActualStart: pg.FromTimestamp(r.StartedAt), ActualEnd: pg.FromTimestamp(r.EndedAt),
		Price: rental.Price{
			Tariff: rental.Tariff{Currency: rental.Currency(r.Currency), HourlyRate: rental.Minor(r.HourlyRate),
				Tax: rental.TaxRate(r.TaxPPM), Deposit: rental.Minor(r.Deposit)},
			Hours: rental.Hundredths(r.Hours), Subtotal: rental.Minor(r.Subtotal), TaxDue: rental.Minor(r.Tax),
		},
		Method: rental.MethodID(pg.Deref(r.MethodID)), Extensions: r.Extensions, Created: r.CreatedAt.UTC(),
		PausedSince: pg.FromTimestamp(r.PausedAt), PausedFor: time.Duration(r.PausedMS) * time.Millisecond,
		StartMetres: pg.Deref(r.StartMetres), EndMetres: pg.Deref(r.EndMetres), ReservedUntil: pg.FromTimestamp(r.ReservedUntil),
		FreeSince: pg.FromTimestamp(r.FreeSince),
	}
}

// card returns the card that pays: that of the newest payment that was tried, which may have been
// removed since, else the one that would be tried.
func (r detailsRow) card(charges []rental.Charge) *rental.Card {
	for i := len(charges) - 1; i >= 0; i-- {
		if c := charges[i]; c.LastFour != "" && c.Kind != rental.RefundCharge {
			return &rental.Card{Brand: c.Brand, LastFour: c.LastFour}
		}
	}
	if r.Card.Token == "" {
		return nil
	}
	return &r.Card
}
