package rentals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"motorpool/rental"
	"motorpool/store/activity"
	"motorpool/store/idempotency"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// transitionColumns are those of a transitionRow, of transitions under the name x.
const transitionColumns = `x.id, x.booking_id, (select of.vehicle_id from bookings of where of.id = x.booking_id) as vehicle_id,
	x.kind, x.state, x.step, x.requested_at, x.requested_by, x.content, x.lease, x.needs_staff, x.ended_at`

// transitionRow is a row of transitions, also as JSON.
type transitionRow struct {
	ID          uuid.UUID              `json:"id"`
	BookingID   rental.BookingID       `json:"booking_id"`
	VehicleID   telematics.VehicleID   `json:"vehicle_id"`
	Kind        rental.TransitionKind  `json:"kind"`
	State       rental.TransitionState `json:"state"`
	Step        rental.TransitionStep  `json:"step"`
	RequestedAt time.Time              `json:"requested_at"`
	RequestedBy json.RawMessage        `json:"requested_by"`
	Content     json.RawMessage        `json:"content"`
	Lease       *uuid.UUID             `json:"lease"`
	NeedsStaff  bool                   `json:"needs_staff"`
	EndedAt     *time.Time             `json:"ended_at"`
}

// actorRow is the JSON of the actor of a transition.
type actorRow struct {
	Subject string              `json:"subject"`
	Role    telematics.Role     `json:"role"`
	Agency  telematics.AgencyID `json:"agency,omitempty"`
}

// fields are where transitionColumns go.
func (r *transitionRow) fields() []any {
	return []any{
		&r.ID, &r.BookingID, &r.VehicleID, &r.Kind, &r.State, &r.Step, &r.RequestedAt, &r.RequestedBy, &r.Content, &r.Lease, &r.NeedsStaff,
		&r.EndedAt,
	}
}

func (r *transitionRow) transition() (rental.Transition, error) {
	t := rental.Transition{
		ID: r.ID, Booking: r.BookingID, Vehicle: r.VehicleID, Kind: r.Kind, State: r.State, Step: r.Step,
		Requested: r.RequestedAt.UTC(), Ended: pg.FromTimestamp(r.EndedAt), NeedsStaff: r.NeedsStaff, Lease: pg.Deref(r.Lease),
	}
	var by actorRow
	if err := errors.Join(json.Unmarshal(r.RequestedBy, &by), json.Unmarshal(r.Content, &t.Progress)); err != nil {
		return rental.Transition{}, fmt.Errorf("decode transition %s: %w", r.ID, err)
	}
	t.By = telematics.Actor{Subject: by.Subject, Role: by.Role, Agency: by.Agency}
	return t, nil
}

// Transitions stores starts, pauses, resumptions and ends of rentals, each with the change of its
// booking. It is safe for concurrent use.
type Transitions struct{ DB *pg.DB }

// Transition implements transitions.Store.
func (p Transitions) Transition(ctx context.Context, id rental.TransitionID) (rental.Transition, error) {
	found, err := p.find(ctx, `x.id = $1`, id)
	if err == nil && len(found) == 0 {
		return rental.Transition{}, rental.NoSuchTransition(id)
	}
	if err != nil {
		return rental.Transition{}, unavailable.Wrap("read transition", err)
	}
	return found[0], nil
}

// OfBooking implements httpapi.Rentals.
func (p Transitions) OfBooking(ctx context.Context, id rental.BookingID) ([]rental.Transition, error) {
	found, err := p.find(ctx, `x.booking_id = $1`, id)
	return found, unavailable.Wrap("read transitions", err)
}

func (p Transitions) find(ctx context.Context, where string, args ...any) ([]rental.Transition, error) {
	return pg.Read(ctx, p.DB.Clients, (*transitionRow).fields, (*transitionRow).transition, `
		select `+transitionColumns+` from transitions x where `+where+` order by x.requested_at desc, x.id desc`, args...)
}

// RequestedWith implements transitions.Store.
func (p Transitions) RequestedWith(ctx context.Context, key *telematics.IdempotencyKey) (rental.Transition, bool, error) {
	made, err := idempotency.Find(ctx, p.DB.Pool, key)
	if err != nil || made == nil || made.Transition == nil {
		return rental.Transition{}, false, unavailable.Wrap("read idempotency key", err)
	}
	t, err := p.Transition(ctx, *made.Transition)
	return t, err == nil, err
}

// OpenTransition implements transitions.Store: a booking has at most one open transition, and
// decide refuses another. An override has an audit log entry in it. Where the connection ends
// before the answer of the commit, it looks whether the transition is there.
func (p Transitions) OpenTransition(
	ctx context.Context, r rental.Request, t rental.Transition, lease time.Duration, decide rental.Decision,
) (replayed bool, err error) {
	err = retryLost(ctx, p.DB, func(tx *sqlx.Tx, _ bool) (err error) {
		replayed, err = openTransition(ctx, tx, r, t, lease, decide)
		return err
	})
	return replayed && err == nil, unavailable.Wrap("open transition", err)
}

func openTransition(
	ctx context.Context, tx *sqlx.Tx, r rental.Request, t rental.Transition, lease time.Duration, decide rental.Decision,
) (replayed bool, err error) {
	before, err := lockedDetails(ctx, tx, r)
	if err != nil {
		return false, err
	}
	if before.Transition != nil && before.Transition.ID == t.ID {
		return false, nil
	}
	if made, err := idempotency.Find(ctx, tx, r.Key); err != nil || made != nil {
		return made != nil, err
	}
	change, err := decide(before)
	if err != nil {
		return false, err
	}
	_, err = tx.ExecContext(ctx, `
		insert into transitions (id, booking_id, kind, state, step, requested_at, requested_by, content, due_at, lease, lease_until)
		values ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp(), $9, clock_timestamp() + $10 * interval '1 microsecond')`,
		t.ID, r.Booking, t.Kind, t.State, t.Step, pg.Timestamp(t.Requested),
		pg.JSON(actorRow{Subject: t.By.Subject, Role: t.By.Role, Agency: t.By.Agency}), pg.JSON(t.Progress), t.Lease, lease.Microseconds())
	if err != nil {
		return false, err
	}
	if err := insertCharges(ctx, tx, r.Actor, before, change.Charges); err != nil {
		return false, err
	}
	if t.Override != "" {
		if err := insertWish(ctx, tx, r.Activity, t, rental.TransitionOverride); err != nil {
			return false, err
		}
	}
	return false, keepKey(ctx, tx, r.Key, idempotency.Names{Booking: before.ID, Transition: &t.ID})
}

// lockedDetails locks a booking and returns it, if the actor may see it.
func lockedDetails(ctx context.Context, tx *sqlx.Tx, r rental.Request) (rental.BookingDetails, error) {
	if err := lockBooking(ctx, tx, r.Booking); err != nil {
		return rental.BookingDetails{}, err
	}
	d, err := readDetails(ctx, tx, r.Booking, r.Now)
	if err == nil && !d.VisibleTo(r.Actor) {
		return rental.BookingDetails{}, rental.NoSuchBooking(r.Booking)
	}
	return d, err
}

// TakeTransitions implements transitions.Store, by Postgres's clock.
func (p Transitions) TakeTransitions(ctx context.Context, limit int, lease time.Duration) ([]rental.Transition, error) {
	taken, err := pg.Read(ctx, p.DB.Pool, (*transitionRow).fields, (*transitionRow).transition, `
		with due as (
			select id from transitions
			where due_at <= now() and (lease_until is null or lease_until <= now())
			order by due_at limit $1
			for update skip locked
		)
		update transitions x
		set lease = gen_random_uuid(), lease_until = clock_timestamp() + $2 * interval '1 microsecond'
		from due where x.id = due.id
		returning `+transitionColumns, limit, lease.Microseconds())
	return taken, unavailable.Wrap("take transitions", err)
}

// WriteTransition implements transitions.Store.
func (p Transitions) WriteTransition(ctx context.Context, t rental.Transition, lease, wait time.Duration) (bool, error) {
	written, err := writeTransition(ctx, p.DB.Clients, t, lease, wait)
	return written, unavailable.Wrap("write transition", err)
}

func writeTransition(
	ctx context.Context, db sqlx.ExecerContext, t rental.Transition, lease, wait time.Duration,
) (bool, error) {
	n, err := pg.Affected(db.ExecContext(ctx, `
		update transitions
		set state = $3, step = $4, content = $5, needs_staff = $6, ended_at = $7,
			due_at = case when $3 = 'open' then clock_timestamp() + $8 * interval '1 microsecond' end,
			lease = case when $3 = 'open' and $8 = 0 then lease end,
			lease_until = case when $3 = 'open' and $8 = 0 then clock_timestamp() + $9 * interval '1 microsecond' end
		where id = $1 and lease = $2 and state = 'open'`,
		t.ID, t.Lease, t.State, t.Step, pg.JSON(t.Progress), t.NeedsStaff, pg.Timestamp(t.Ended),
		wait.Microseconds(), lease.Microseconds()))
	return n == 1, err
}

// SettleTransition implements transitions.Store. decide may change the transition, and be called
// more than once. The lease ends with the write, which shows that it is done where the connection
// ends before the answer of the commit.
func (p Transitions) SettleTransition(
	ctx context.Context, t *rental.Transition, lease time.Duration, decide func(rental.BookingDetails) (rental.Settlement, error),
) (bool, error) {
	written := false
	err := retryLost(ctx, p.DB, func(tx *sqlx.Tx, again bool) error {
		r := rental.Request{Booking: t.Booking, Actor: rental.System(), Now: time.Now()}
		d, err := lockedDetails(ctx, tx, r)
		if err != nil || again && written && d.Transition.Lease != t.Lease {
			return err
		}
		settled, err := decide(d)
		if err != nil {
			return err
		}
		if written, err = writeTransition(ctx, tx, *t, lease, settled.Wait); err != nil || !written {
			return err
		}
		r.Actor, r.Activity = t.By, settled.Activity
		return writeChange(ctx, tx, r, d, settled.Change)
	})
	return written && err == nil, unavailable.Wrap("settle transition", err)
}

// Wish implements transitions.Store, in one transaction. A worker of the transition loses its
// lease. With an empty activity only the key is written.
func (p Transitions) Wish(
	ctx context.Context, r rental.Request, id rental.TransitionID, decide func(*rental.Transition) (activity string, err error),
) (t rental.Transition, replayed bool, err error) {
	r = keyed(r)
	replayed, err = retryKeyed(ctx, p.DB, func(tx *sqlx.Tx) (found bool, err error) {
		t, found, err = wish(ctx, tx, r, id, decide)
		return found, err
	})
	return t, replayed && err == nil, unavailable.Wrap("change transition", err)
}

func wish(
	ctx context.Context, tx *sqlx.Tx, r rental.Request, id rental.TransitionID, decide func(*rental.Transition) (string, error),
) (rental.Transition, bool, error) {
	found, err := pg.Read(ctx, tx, (*transitionRow).fields, (*transitionRow).transition, `
		select `+transitionColumns+` from transitions x where x.id = $1 and x.booking_id = $2 for no key update`, id, r.Booking)
	switch {
	case err != nil:
		return rental.Transition{}, false, err
	case len(found) == 0:
		return rental.Transition{}, false, rental.NoSuchTransition(id)
	}
	t := found[0]
	if made, err := idempotency.Find(ctx, tx, r.Key); err != nil || made != nil {
		return t, made != nil, err
	}
	wanted, err := decide(&t)
	if err != nil {
		return rental.Transition{}, false, err
	}
	if wanted != "" {
		_, err := tx.ExecContext(ctx, `
			update transitions set content = $2, due_at = clock_timestamp(), lease = null, lease_until = null where id = $1`,
			id, pg.JSON(t.Progress))
		if err != nil {
			return rental.Transition{}, false, err
		}
		if err := insertWish(ctx, tx, r.Activity, t, wanted); err != nil {
			return rental.Transition{}, false, err
		}
	}
	return t, false, keepKey(ctx, tx, r.Key, idempotency.Names{Booking: t.Booking, Transition: &t.ID})
}

// insertWish inserts the audit log entry of what a request wants of a transition.
func insertWish(ctx context.Context, tx *sqlx.Tx, line telematics.Activity, t rental.Transition, wanted string) error {
	line.Action, line.Booking, line.Vehicle, line.Outcome = wanted, int64(t.Booking), t.Vehicle, telematics.Executed
	return activity.Insert(ctx, tx, line)
}
