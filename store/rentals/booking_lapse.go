package rentals

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// dueBooking is a booking that is to change by itself, because of what happened at a time.
type dueBooking struct {
	ID rental.BookingID `db:"id"`
	At time.Time        `db:"at"`
}

// Lapse cancels bookings that were not started until their end, or as long as they were reserved,
// up to limit of them, and returns them. One whose start is still open is left until that ends. It
// is safe at any number of instances concurrently.
//
// The time is Postgres's. A leap of its clock cancels immediate bookings too early: no money is
// lost. Other bookings may be far ahead: they are left until the clock has been steady for some
// hours.
func Lapse(ctx context.Context, db *pg.DB, limit int) ([]rental.Booking, error) {
	lapsed, err := changeDue(ctx, db, rental.BookingLapse, limit, `
		select id, least(reserved_until, end_at) as at from bookings b
		where state = 'upcoming' and `+noOpenTransition+` and (
			reserved_until <= now() and (start_at <= created_at + `+pg.Interval(rental.MaxLate)+` or `+pg.Steady+` and not `+hadNoVehicle+`)
			-- over, by the index of bookings_no_overlap
			or tstzrange(least(start_at, started_at), end_at) << tstzrange(now(), null) and `+pg.Steady+`)`,
		func(d rental.BookingDetails, now, _ time.Time) (rental.Change, bool) { return d.Lapse(now) })
	return lapsed, unavailable.Wrap("cancel bookings that lapse", err)
}

// hadNoVehicle is the SQL of whether the client of a booking b could not have started it in all the
// time for which it is kept after its start: others have the vehicle, had it until then, or it is
// withdrawn, or was until then. A start that is undone has it, too.
const hadNoVehicle = `(exists (
		select from vehicles v left join bookings o on o.vehicle_id = v.id and o.id <> b.id
			and (o.state = 'active' or o.ended_at > b.start_at - interval '1 day')
		where v.id = b.vehicle_id and (v.status in ('maintenance', 'inactive') or o.state = 'active'
			or greatest(v.maintenance_since, ` + backAt + `) > now() - (b.reserved_until - b.start_at))
	) or exists (
		select from bookings o join transitions t on t.booking_id = o.id and t.kind = 'start'
		where o.vehicle_id = b.vehicle_id and o.id <> b.id and (
			o.state = 'upcoming' and t.state = 'open' and t.step <> 'refund'
			or o.end_at > b.start_at - interval '1 day' and ` + undoneAt + ` > now() - (b.reserved_until - b.start_at))))`

// EndPauses ends the pauses of rentals whose vehicles have reported since that their ignition is
// on, up to limit of them, and returns the bookings. What a vehicle reported is that in Postgres,
// which has it a second or two later, or, of a time without reception, in the telemetry history. It
// is safe as Lapse is.
func EndPauses(ctx context.Context, db *pg.DB, limit int) ([]rental.Booking, error) {
	driven, err := changeDue(ctx, db, rental.PauseEnd, limit, `
		select b.id, r.at
		from bookings b cross join lateral (
			select min(on_at) as at
			from (
				select to_timestamp((fields->'telemetry.ignition'->>'at')::float8 / 1000) as on_at from snapshots
				where vehicle_id = b.vehicle_id and fields->'telemetry.ignition'->>'v' = 'on'
				union all
				select at + after * interval '1 s' from telemetry
				where vehicle_id = b.vehicle_id and ignition
					and at > b.paused_at + `+pg.Interval(telematics.MaxAhead)+` -- not from before, by a clock that is ahead
			) reports
			where on_at > b.paused_at
		) r
		where b.state = 'active' and b.paused_at is not null and b.paused_at < r.at and `+noOpenTransition, rental.EndPause)
	return driven, unavailable.Wrap("end the pauses of vehicles that are driven", err)
}

// noOpenTransition is the SQL of whether nothing that changes the state of a booking b is open.
const noOpenTransition = `not exists (select from transitions t where t.booking_id = b.id and t.state = 'open')`

// changeDue changes the bookings that a query returns, up to limit of them, and returns those that
// decide has changed. now is by Postgres's clock.
func changeDue(
	ctx context.Context, db *pg.DB, activity string, limit int, query string,
	decide func(d rental.BookingDetails, now, at time.Time) (rental.Change, bool),
) ([]rental.Booking, error) {
	var due []dueBooking
	if err := db.Pool.SelectContext(ctx, &due, query+` order by at limit $1`, limit); err != nil {
		return nil, err
	}
	var changed []rental.Booking
	var failed []error
	for _, is := range due {
		var b *rental.Booking
		err := retryLost(ctx, db, func(tx *sqlx.Tx, again bool) error {
			now, err := is.change(ctx, tx, activity, decide)
			if now != nil || !again { // else it was changed, though the answer was lost
				b = now
			}
			return err
		})
		if err == nil && b != nil {
			changed = append(changed, *b)
		}
		failed = append(failed, err)
	}
	return changed, errors.Join(failed...)
}

// change changes a booking, and returns it; nil where it is not to change by now.
func (is dueBooking) change(
	ctx context.Context, tx *sqlx.Tx, activity string,
	decide func(d rental.BookingDetails, now, at time.Time) (rental.Change, bool),
) (*rental.Booking, error) {
	if err := lockBooking(ctx, tx, is.ID); err != nil {
		return nil, err
	}
	// The booking is locked: no transition of it begins now.
	var now time.Time
	err := tx.GetContext(ctx, &now, `select now() from bookings b where id = $1 and `+noOpenTransition, is.ID)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d, err := readDetails(ctx, tx, is.ID, now)
	if err != nil {
		return nil, err
	}
	change, isDue := decide(d, now, is.At)
	if !isDue {
		return nil, nil
	}
	by := rental.System()
	err = writeChange(ctx, tx, rental.Request{Booking: is.ID, Actor: by, Now: now, Activity: telematics.Activity{
		At: now, Actor: by, Action: activity, RequestID: uuid.New(),
	}}, d, change)
	return &change.Booking, err
}
