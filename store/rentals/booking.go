// Package rentals stores bookings, charges, payment methods, and the notices of the payment
// processor in Postgres.
//
// Where a comment names no error, the error is the database's; unavailable.Is reports whether
// Postgres could not be used.
package rentals

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/rental"
	"motorpool/store/activity"
	"motorpool/store/idempotency"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// Bookings stores bookings with their charges. It is safe for concurrent use.
type Bookings struct{ DB *pg.DB }

// BookingDetails implements httpapi.Bookings.
func (p Bookings) BookingDetails(ctx context.Context, id rental.BookingID) (rental.BookingDetails, error) {
	d, err := readDetails(ctx, p.DB.Clients, id, time.Now())
	return d, unavailable.Wrap("read booking", err)
}

func readDetails(ctx context.Context, db pg.Querier, id rental.BookingID, now time.Time) (rental.BookingDetails, error) {
	found, err := pg.Read(ctx, db, (*detailsRow).fields, (*detailsRow).details, selectDetailsOf+` where b.id = $2`, pg.Timestamp(now), id)
	switch {
	case err != nil:
		return rental.BookingDetails{}, err
	case len(found) == 0:
		return rental.BookingDetails{}, rental.NoSuchBooking(id)
	}
	return found[0], nil
}

// FindBookings returns bookings by descending id, which is also the cursor of the pages.
func (p Bookings) FindBookings(ctx context.Context, q rental.BookingQuery) ([]rental.BookingDetails, error) {
	states := pg.Map(q.States, func(s rental.BookingState) string { return string(s) })
	if !pg.Searchable(append(states, q.Client, q.Reference)...) {
		return nil, nil
	}
	// The page is selected first, so that charges and neighbours are read only for its bookings.
	found, err := pg.Read(ctx, p.DB.Lists, (*detailsRow).fields, (*detailsRow).details, `
		with page as materialized (
			select b.id
			from bookings b join clients c on c.id = b.client_id
			where ($2::bigint = 0 or b.agency_id = $2)
				and ($3::text = '' or c.subject = $3 and ($2 = 0 or c.agency_id = $2)) -- the key of clients begins with the agency
				and (cardinality($4::text[]) = 0 or b.state = any ($4))
				and ($5::bigint = 0 or b.vehicle_id = $5)
				and ($6::bigint = 0 or b.id < $6)
				and ($8::text = '' or b.reference = $8)
				and ($9::timestamptz is null
					or coalesce(b.ended_at, greatest(b.end_at, case b.state when 'active' then $1::timestamptz end)) > $9)
				and ($10::timestamptz is null or coalesce(b.started_at, b.start_at) < $10)
			order by b.id desc
			limit nullif($7::bigint, 0)
		)`+selectDetailsOf+`
		where b.id = any (array (select id from page)) -- in (…) is taken for many, and reads whole tables
		order by b.id desc`,
		pg.Timestamp(time.Now()), q.Agency, q.Client, pq.Array(states), q.Vehicle, q.Before, q.Limit, q.Reference,
		pg.Timestamp(q.From), pg.Timestamp(q.To))
	return found, unavailable.Wrap("read bookings", err)
}

// followBookings sets a vehicle's status by its bookings, in the transaction that changed one. A
// withdrawn vehicle stays withdrawn.
func followBookings(ctx context.Context, tx *sqlx.Tx, vehicle telematics.VehicleID) error {
	_, err := tx.ExecContext(ctx, `
		update vehicles v
		set status = n.status
		from (
			select case when bool_or(state = 'active') then 'in_use' when bool_or(state = 'upcoming') then 'booked'
			else 'available' end as status
			from bookings
			where vehicle_id = $1 and state in ('upcoming', 'active')
		) n
		where v.id = $1 and v.status not in ('maintenance', 'inactive') and v.status <> n.status`, vehicle)
	return err
}

// EndMaintenance returns vehicles to service whose maintenance is over, up to limit of them, each
// with one audit log entry at any number of instances, and reports whether there may be others. The
// time is Postgres's; after a leap of its clock it returns pg.ErrClockLeapt.
func EndMaintenance(ctx context.Context, db *pg.DB, limit int) (more bool, err error) {
	var found []telematics.VehicleID
	err = db.Within(ctx, func(tx *sqlx.Tx) error {
		var now time.Time
		if err := tx.GetContext(ctx, &now, `select now() where `+pg.Steady); errors.Is(err, sql.ErrNoRows) {
			return pg.ErrClockLeapt
		} else if err != nil {
			return err
		}
		// The vehicles are locked first, so that followBookings sees a booking that is made
		// meanwhile.
		err := tx.SelectContext(ctx, &found, `
			select id from vehicles where status = 'maintenance' and maintenance_until <= now()
			order by id limit $1 for no key update skip locked`, limit)
		if err != nil {
			return err
		}
		for _, vehicle := range found {
			if err := endMaintenance(ctx, tx, vehicle, now); err != nil {
				return err
			}
		}
		return nil
	})
	return err == nil && len(found) == limit, unavailable.Wrap("end the maintenance of vehicles", err)
}

func endMaintenance(ctx context.Context, tx *sqlx.Tx, vehicle telematics.VehicleID, now time.Time) error {
	if _, err := tx.ExecContext(ctx, `update vehicles set status = 'available' where id = $1`, vehicle); err != nil {
		return err
	}
	if err := followBookings(ctx, tx, vehicle); err != nil {
		return err
	}
	if err := vehicles.NoteReturn(ctx, tx, vehicle); err != nil {
		return err
	}
	var is struct {
		Agency telematics.AgencyID      `db:"agency_id"`
		Status telematics.VehicleStatus `db:"status"`
	}
	if err := tx.GetContext(ctx, &is, `select agency_id, status from vehicles where id = $1`, vehicle); err != nil {
		return err
	}
	return activity.Insert(ctx, tx, telematics.Activity{
		At: now, Actor: rental.System(), Action: telematics.VehicleChange, RequestID: uuid.New(), Outcome: telematics.Executed,
		Agency: is.Agency, Vehicle: vehicle, Details: map[string]any{
			"changes": []string{fmt.Sprintf("vehicle %d: status %s → %s", vehicle, telematics.Maintenance, is.Status)},
		},
	})
}

// changeAttempts is how often a transaction is tried that the database aborts in favour of others.
// Together, the attempts wait for a lock for about as long as one statement may take: concurrent
// changes of the same rows queue up.
const changeAttempts = pg.LockShare

// retryTransaction runs a transaction, up to changeAttempts times while the database aborts it: an
// aborted one has changed nothing. After the last attempt the error counts as that of an
// unavailable server.
func retryTransaction(ctx context.Context, db *pg.DB, run func(*sqlx.Tx) error) error {
	var err error
	for range changeAttempts {
		if err = pg.WithinLocks(ctx, db, run); !isGivenUp(err) || ctx.Err() != nil {
			return translated(err)
		}
	}
	return unavailable.Mark(err)
}

// retryLost is retryTransaction for a transaction that recognises what it has written: where the
// connection ends before the answer of the commit, which may have succeeded, it runs once more.
func retryLost(ctx context.Context, db *pg.DB, run func(tx *sqlx.Tx, again bool) error) error {
	once := func(again bool) error {
		return retryTransaction(ctx, db, func(tx *sqlx.Tx) error { return run(tx, again) })
	}
	err := once(false)
	if unavailable.IsCause(err) && !unavailable.Is(err) {
		err = once(true)
	}
	return err
}

// keyed returns a request with an idempotency key. One without gets its own, by which it finds what
// it has written.
func keyed(r rental.Request) rental.Request {
	if r.Key == nil {
		r.Key = &telematics.IdempotencyKey{Agency: r.Actor.Agency, Subject: r.Actor.Subject, Key: uuid.NewString()}
	}
	return r
}

// retryKeyed is retryLost for a request that finds what it has written by its idempotency key: what
// it finds when it runs again is not an earlier request's.
func retryKeyed(ctx context.Context, db *pg.DB, run func(*sqlx.Tx) (found bool, err error)) (replayed bool, err error) {
	err = retryLost(ctx, db, func(tx *sqlx.Tx, again bool) error {
		found, err := run(tx)
		replayed = found && !again
		return err
	})
	return replayed, err
}

// errKeyCame means that an idempotency key came into use after it was looked up.
var errKeyCame = errors.New("the idempotency key came into use meanwhile")

// errCurrencyChanged means that the currency of an agency changed after its terms were read: what
// its vehicles cost is in another one.
var errCurrencyChanged = errors.New("the currency of the agency changed meanwhile")

// isGivenUp reports whether a transaction was aborted because of another one: by a deadlock, a lock
// that took too long, a key, or a currency.
func isGivenUp(err error) bool {
	return pg.IsContended(err) || errors.Is(err, errKeyCame) || errors.Is(err, errCurrencyChanged)
}

// keepKey stores what an idempotency key names, once nothing else can refuse the request.
func keepKey(ctx context.Context, tx *sqlx.Tx, key *telematics.IdempotencyKey, n idempotency.Names) error {
	earlier, err := idempotency.Take(ctx, tx, key, n)
	if err == nil && earlier != nil {
		return errKeyCame
	}
	return err
}

// translated returns the caller's error for a violated constraint.
func translated(err error) error {
	refusal := pq.As(err)
	if refusal == nil {
		return err
	}
	switch refusal.Constraint {
	case "bookings_no_overlap":
		return rental.Taken()
	case "bookings_one_active":
		return rental.NotAvailable("The vehicle is still in use by another booking.")
	}
	return err
}

// Redate shifts all times of a booking. It is for development worlds, whose bookings must not grow
// old: it changes no price, and adds no audit log entry.
func (p Bookings) Redate(ctx context.Context, id rental.BookingID, by time.Duration) error {
	_, err := p.DB.Pool.ExecContext(ctx, `
		update bookings
		set start_at = start_at + moved, end_at = end_at + moved,
			-- greatest() passes over a null, but what has not happened has no time
			started_at = case when started_at is not null then greatest(started_at, start_at) + moved end,
			ended_at = case when ended_at is not null then greatest(ended_at, start_at) + moved end,
			created_at = least(created_at, created_at + moved)
		from make_interval(secs => $2::double precision / 1000) as moved
		where id = $1`, int64(id), by.Milliseconds())
	return unavailable.Wrap("move a booking", translated(err))
}
