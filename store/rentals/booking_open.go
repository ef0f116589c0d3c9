package rentals

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/rental"
	"motorpool/store/activity"
	"motorpool/store/idempotency"
	"motorpool/store/pg"
	"motorpool/store/settings"
	"motorpool/store/unavailable"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/dialects"
)

// OpenBooking implements httpapi.Bookings, at the present terms and price.
func (p Bookings) OpenBooking(ctx context.Context, draft rental.Draft, r rental.Request) (rental.BookingDetails, bool, error) {
	var made rental.BookingDetails
	installation, err := settings.Installation(ctx, p.DB)
	if err != nil {
		return rental.BookingDetails{}, false, err
	}
	r = keyed(r)
	replayed, err := retryKeyed(ctx, p.DB, func(tx *sqlx.Tx) (found bool, err error) {
		made, found, err = openBooking(ctx, tx, installation, draft, r)
		return found, err
	})
	if err != nil {
		return rental.BookingDetails{}, false, unavailable.Wrap("make booking", err)
	}
	return made, replayed, nil
}

func openBooking(
	ctx context.Context, tx *sqlx.Tx, installation string, draft rental.Draft, r rental.Request,
) (rental.BookingDetails, bool, error) {
	facts, err := holdClient(ctx, tx, installation, draft)
	if err != nil {
		return rental.BookingDetails{}, false, err
	}
	made, err := idempotency.Find(ctx, tx, r.Key)
	if err != nil {
		return rental.BookingDetails{}, false, err
	}
	if made != nil {
		d, err := readDetails(ctx, tx, made.Booking, r.Now)
		return d, true, err
	}
	if draft.QuoteID != uuid.Nil {
		if facts.Quote, err = readQuote(ctx, tx, draft); err != nil {
			return rental.BookingDetails{}, false, err
		}
		if draft, err = draft.ByQuote(r.Now, facts); err != nil {
			return rental.BookingDetails{}, false, err
		}
	}
	if draft.Self {
		if err := readOwn(ctx, tx, &draft, &facts, r.Now); err != nil {
			return rental.BookingDetails{}, false, err
		}
	}
	// The vehicle is locked, so that its bookings are made one after another.
	if err := readVehicle(ctx, tx, draft, " for no key update of v", &facts); err != nil {
		return rental.BookingDetails{}, false, err
	}
	if err := readTaken(ctx, tx, draft, r.Now, &facts); err != nil {
		return rental.BookingDetails{}, false, err
	}
	if err := readStationsAndCards(ctx, tx, draft, &facts); err != nil {
		return rental.BookingDetails{}, false, err
	}
	b, err := draft.Book(r.Now, facts)
	if err != nil {
		return rental.BookingDetails{}, false, err
	}
	if b.Identity, err = identityOf(ctx, tx, installation, b, draft.Client); err != nil {
		return rental.BookingDetails{}, false, err
	}
	if err := insertBooking(ctx, tx, &b); err != nil {
		return rental.BookingDetails{}, false, err
	}
	if err := keepKey(ctx, tx, r.Key, idempotency.Names{Booking: b.ID}); err != nil {
		return rental.BookingDetails{}, false, err
	}
	if err := followBookings(ctx, tx, b.VehicleID); err != nil {
		return rental.BookingDetails{}, false, err
	}
	asked := map[string]any{
		"client": draft.Client, "start_date": b.Start.Format(time.RFC3339Nano),
		"end_date": b.End.Format(time.RFC3339Nano),
	}
	if err := activity.Insert(ctx, tx, bookingLine(r, rental.Change{Booking: b, Details: asked})); err != nil {
		return rental.BookingDetails{}, false, err
	}
	d, err := readDetails(ctx, tx, b.ID, r.Now)
	return d, false, err
}

// holdClient returns the agency's terms and the client. It creates the client at first use, and
// locks its row.
func holdClient(ctx context.Context, tx *sqlx.Tx, installation string, draft rental.Draft) (rental.Facts, error) {
	terms, err := readTerms(ctx, tx, draft.Agency)
	if err != nil {
		return rental.Facts{}, err
	}
	if _, err := tx.ExecContext(ctx, `
		insert into clients (agency_id, subject, customer_key) values ($1, $2, $3) on conflict (agency_id, subject) do nothing`,
		draft.Agency, draft.Client, rental.CustomerKey(installation, draft.Agency, draft.Client)); err != nil {
		return rental.Facts{}, err
	}
	facts := rental.Facts{Terms: terms}
	err = tx.GetContext(ctx, &facts.Client, `select id from clients where agency_id = $1 and subject = $2 for no key update`,
		draft.Agency, draft.Client)
	return facts, err
}

// readTerms returns an agency's terms, or a *rental.FieldError where there is no such agency.
func readTerms(ctx context.Context, tx *sqlx.Tx, agency telematics.AgencyID) (rental.Terms, error) {
	var row struct {
		Terms vehicles.TermsRow `db:"terms"`
	}
	err := tx.GetContext(ctx, &row, `select `+vehicles.TermsColumns+` from agencies a where a.id = $1`, agency)
	if errors.Is(err, sql.ErrNoRows) {
		return rental.Terms{}, &rental.FieldError{Field: "agency_id", Message: "must be the id of an agency"}
	}
	if err != nil {
		return rental.Terms{}, err
	}
	return row.Terms.Decode()
}

// readOwn reads what a client's own booking needs in addition: how many bookings and payments the
// client has open, how often it gave the vehicle up, and the vehicle's station, where the draft
// names none. That is the one nearest to its last position, or the agency's first one.
func readOwn(ctx context.Context, tx *sqlx.Tx, draft *rental.Draft, facts *rental.Facts, now time.Time) error {
	err := tx.QueryRowxContext(ctx, `
		select count(*) filter (where state = 'active' or state = 'upcoming' and end_at > $2),
			count(*) filter (where state = 'cancelled' and vehicle_id = $4 and created_at > $5 and not exists (
				select from activity a
				where a.booking_id = own.id and a.at > $5 and a.action = any ($6) and a.actor_role <> 'client'
					and coalesce(a.code, '') = '' -- staff made or cancelled it
			)),
			(
				select count(*) from charges c join bookings b on b.id = c.booking_id
				where b.client_id = $1 and c.kind <> 'refund' and c.goal is distinct from 'release' and (c.state = 'requires_action'
					or c.state in ('declined', 'failed') and not c.decline_code = any ($3))
			)
		from bookings own where client_id = $1`,
		facts.Client, pg.Timestamp(now), pq.Array(rental.CodesNotFor(rental.ByClient)), draft.Vehicle,
		pg.Timestamp(now.Add(-rental.GivenUpFor)), pq.Array([]string{rental.BookingCreate, rental.BookingCancel}),
	).Scan(&facts.Open, &facts.GivenUp, &facts.Owed)
	if err != nil || draft.Pickup != 0 && draft.Dropoff != 0 {
		return err
	}
	var own telematics.StationID
	err = tx.GetContext(ctx, &own, `
		select s.id
		from vehicles v
			join stations s on s.agency_id = v.agency_id
			left join lateral (
				select (fields->'location.latitude'->>'v')::float8 as lat, (fields->'location.longitude'->>'v')::float8 as lon
				from snapshots
				where vehicle_id = v.id and jsonb_typeof(fields->'location.latitude'->'v') = 'number'
					and jsonb_typeof(fields->'location.longitude'->'v') = 'number'
			) at on true
		where v.id = $1 and v.agency_id = $2
		order by (s.latitude - at.lat) ^ 2 +
			(cosd(at.lat) * least(abs(s.longitude - at.lon), 360 - abs(s.longitude - at.lon))) ^ 2, s.id
		limit 1`, draft.Vehicle, draft.Agency)
	if errors.Is(err, sql.ErrNoRows) {
		return nil // the draft is refused
	}
	draft.Pickup, draft.Dropoff = cmp.Or(draft.Pickup, own), cmp.Or(draft.Dropoff, own)
	return err
}

// readVehicle reads the vehicle of a draft, and what it costs. lock is a clause that locks it, or
// empty. It fails with errCurrencyChanged where terms that were read before are in another
// currency.
func readVehicle(ctx context.Context, db pg.Querier, draft rental.Draft, lock string, facts *rental.Facts) error {
	var row pricedRow
	found, err := pg.One(ctx, db, row.fields(), selectPriced+` where v.id = $1`+lock, draft.Vehicle)
	if err != nil || !found { // the draft is refused
		return err
	}
	if known := facts.Terms.Currency; known != "" && row.vehicle.AgencyID == draft.Agency && row.currency != known {
		return errCurrencyChanged
	}
	return row.read(facts)
}

// selectPriced selects vehicles v with what decides about their price.
const selectPriced = `
	select v.id, v.agency_id, v.status, v.capabilities, v.hourly_rate, v.deposit, u.serial, u.protocol, u.installation, u.actions,
		a.best_effort_unlock, a.currency, a.tax_ppm, (` + tariffOf + `) as tariff
	from vehicles v
		join agencies a on a.id = v.agency_id
		left join units u on u.vehicle_id = v.id`

type pricedRow struct {
	vehicle    telematics.Vehicle
	contact    telematics.Contact // only the actions
	hourly     *rental.Minor
	deposit    rental.Minor
	bestEffort bool
	currency   rental.Currency
	tax        rental.TaxRate
	plan       []byte // JSON; null: none
}

// fields are where the columns of selectPriced go.
func (r *pricedRow) fields() []any {
	v := &r.vehicle
	return slices.Concat([]any{&v.ID, &v.AgencyID, &v.Status, vehicles.Actions(&v.Actions), &r.hourly, &r.deposit}, vehicles.UnitFields(v),
		[]any{vehicles.Actions(&r.contact.Actions), &r.bestEffort, &r.currency, &r.tax, &r.plan})
}

// read sets the facts about the vehicle.
func (r *pricedRow) read(facts *rental.Facts) error {
	facts.Vehicle, facts.Rate, facts.Lacking = r.vehicle, vehicles.RateOf(r.hourly, r.deposit), isLacking(r.vehicle, r.contact)
	facts.NotOpened = !r.bestEffort && dialects.Spoken.OpensLate(facts.Vehicle, telematics.Unlock)
	if r.plan != nil {
		if err := json.Unmarshal(r.plan, &facts.Plan); err != nil {
			return fmt.Errorf("tariff of vehicle %d: %w", r.vehicle.ID, err)
		}
	}
	return nil
}

// readTaken reads whether the vehicle is taken in the time of a draft. A booking has locked it.
func readTaken(ctx context.Context, tx *sqlx.Tx, draft rental.Draft, now time.Time, facts *rental.Facts) error {
	return tx.GetContext(ctx, &facts.Taken, `select `+isTaken(`$1`, `$2::timestamptz`, `$3::timestamptz`, `$4::timestamptz`),
		draft.Vehicle, pg.Timestamp(draft.Start), pg.Timestamp(draft.End), pg.Timestamp(now.Add(rental.MaxLate)))
}

// readStationsAndCards reads the stations of a draft, and the payment methods of its client.
func readStationsAndCards(ctx context.Context, tx *sqlx.Tx, draft rental.Draft, facts *rental.Facts) error {
	var stations []telematics.Station
	err := tx.SelectContext(ctx, &stations, `
		select `+vehicles.StationColumns+` from stations where id in ($1, $2)`, draft.Pickup, draft.Dropoff)
	if err != nil {
		return err
	}
	for _, s := range stations {
		if s.ID == draft.Pickup {
			facts.Pickup = &s
		}
		if s.ID == draft.Dropoff {
			facts.Dropoff = &s
		}
	}
	return tx.SelectContext(ctx, &facts.Methods, `select id from payment_methods where client_id = $1`, facts.Client)
}

// identityOf returns the identity of a new booking. The caller has locked the client and the
// vehicle.
func identityOf(ctx context.Context, tx *sqlx.Tx, installation string, b rental.Booking, subject string) (uuid.UUID, error) {
	var earlier int
	err := tx.GetContext(ctx, &earlier, `select count(*) from bookings where client_id = $1 and vehicle_id = $2 and start_at = $3`,
		b.Client, b.VehicleID, pg.Timestamp(b.Start))
	return rental.BookingIdentity(installation, b, subject, earlier+1), err
}

// insertBooking inserts a booking, and sets its id and its reference. The counter of the year stays
// locked until the transaction ends, so that references have no gaps: it is the last lock that a
// booking waits for.
//
// References jump where the server has started since the last one (see migration 70), and where a
// dump was restored into a server that runs: the numbers of commands were raised since the last
// booking. Which of two concurrent bookings comes first is not known then: both may jump.
func insertBooking(ctx context.Context, tx *sqlx.Tx, b *rental.Booking) error {
	year := b.Created.UTC().Year()
	var n int64
	err := tx.GetContext(ctx, &n, `
		with lost as (
			select exists (select from booking_numbers where server_start = pg_postmaster_start_time())
				and raised_at > (select created_at from bookings order by id desc limit 1) as happened
			from command_numbering)
		insert into booking_numbers as n (year, last) values ($1, 1)
		on conflict (year) do update set last = n.last + 1 + case when (select happened from lost) then 100000 else 0 end
		returning last`, year)
	if err != nil {
		return err
	}
	b.Reference = rental.Reference(year, n)
	return tx.GetContext(ctx, &b.ID, `
		insert into bookings (cause, reference, state, agency_id, client_id, vehicle_id, pickup_station_id, dropoff_station_id, start_at,
		end_at,
			currency, hourly_rate, tax_ppm, hours, subtotal, tax, deposit, payment_method_id, created_at, tariff, reserved_until)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
		returning id`,
		b.Identity, b.Reference, b.State, b.Agency, b.Client, b.VehicleID, b.PickupID, b.DropoffID,
		pg.Timestamp(b.Start), pg.Timestamp(b.End), b.Price.Currency, b.Price.HourlyRate, b.Price.Tax, b.Price.Hours,
		b.Price.Subtotal, b.Price.TaxDue, b.Price.Deposit, pg.Nullable(b.Method), pg.Timestamp(b.Created),
		planText(b.Plan), pg.Timestamp(b.ReservedUntil),
	)
}

// planText returns the JSON of a plan; nil for none.
func planText(p *rental.Plan) *string {
	if p == nil {
		return nil
	}
	return new(pg.JSON(p))
}
