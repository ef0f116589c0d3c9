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

// Lapse cancels bookings that were not started until their end, or as long as they were reserved,
// up to limit of them, and returns them. One whose start is still open is left until that ends. It
// is safe at any number of instances concurrently.
//
// The time is Postgres's. A leap of its clock cancels reservations too early: no money is lost.
// Other bookings may be far ahead: they are left until the clock has been steady for some hours.
func Lapse(ctx context.Context, db *pg.DB, limit int) ([]rental.Booking, error) {
	var due []rental.BookingID
	err := db.Pool.SelectContext(ctx, &due, `
		select id from bookings b
		where state = 'upcoming' and `+noOpenTransition+` and (reserved_until <= now()
			-- over, by the index of bookings_no_overlap
			or reserved_until is null and tstzrange(least(start_at, started_at), end_at) << tstzrange(now(), null) and `+pg.Steady+`)
		order by coalesce(reserved_until, end_at) limit $1`, limit)
	if err != nil {
		return nil, unavailable.Wrap("read bookings that lapse", err)
	}
	var lapsed []rental.Booking
	var failed []error
	for _, id := range due {
		var b *rental.Booking
		err := retryTransaction(ctx, db, func(tx *sqlx.Tx) (err error) {
			b, err = lapse(ctx, tx, id)
			return err
		})
		if err == nil && b != nil {
			lapsed = append(lapsed, *b)
		}
		failed = append(failed, unavailable.Wrap("cancel a booking that lapses", err))
	}
	return lapsed, errors.Join(failed...)
}

// noOpenTransition is the SQL of whether nothing that changes the state of a booking b is open.
const noOpenTransition = `not exists (select from transitions t where t.booking_id = b.id and t.state = 'open')`

// lapse cancels a booking, and returns it; nil where it does not lapse by now.
func lapse(ctx context.Context, tx *sqlx.Tx, id rental.BookingID) (*rental.Booking, error) {
	if err := lockBooking(ctx, tx, id); err != nil {
		return nil, err
	}
	// The booking is locked: no start of it begins now.
	var now time.Time
	err := tx.GetContext(ctx, &now, `select now() from bookings b where id = $1 and `+noOpenTransition, id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d, err := readDetails(ctx, tx, id, now)
	if err != nil {
		return nil, err
	}
	change, lapses := d.Lapse(now)
	if !lapses {
		return nil, nil
	}
	by := rental.System()
	err = writeChange(ctx, tx, rental.Request{Booking: id, Actor: by, Now: now, Activity: telematics.Activity{
		At: now, Actor: by, Action: rental.BookingLapse, RequestID: uuid.New(),
	}}, d, change)
	return &change.Booking, err
}
