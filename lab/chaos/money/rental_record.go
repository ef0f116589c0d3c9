package money

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"motorpool/rental"
	"motorpool/simulator"
	"motorpool/telematics"
)

// RentalEvidence is the accounts of a round of rentals: also that of the cars.
type RentalEvidence struct {
	Evidence
	Rents       []Rent
	Rentals     []RentalRow
	Transitions []TransitionRow
	Orders      []OrderRow
	Events      []simulator.Event // of all cars
	ReadAt      time.Time
}

// RentalRow is a stored booking.
type RentalRow struct {
	ID         rental.BookingID
	State      rental.BookingState
	Vehicle    telematics.VehicleID
	Unit       telematics.Unit
	Rental     rental.Minor // subtotal and tax
	Start, End *time.Time   // in fact; nil: it has not
}

func (b RentalRow) String() string {
	return fmt.Sprintf("booking %d of %s (%s, %s to %s)", b.ID, b.Unit, b.State, clock(b.Start), clock(b.End))
}

func clock(t *time.Time) string {
	if t == nil {
		return "–"
	}
	return t.Format("15:04:05.000")
}

// TransitionRow is a stored transition.
type TransitionRow struct {
	ID         uuid.UUID
	Booking    rental.BookingID
	Kind       rental.TransitionKind
	State      rental.TransitionState
	Step       rental.TransitionStep
	Override   string
	NeedsStaff bool
	Requested  time.Time
	Ended      *time.Time
}

func (t TransitionRow) String() string {
	return fmt.Sprintf(
		"%s %s of booking %d (%s, %s, from %s to %s)", t.Kind, t.ID, t.Booking, t.State, t.Step, clock(&t.Requested), clock(t.Ended),
	)
}

// OrderRow is a command that a transition has ordered, by its idempotency key.
type OrderRow struct {
	Key     string
	Command telematics.CommandID
}

// readRentals returns what Postgres has stored of rentals.
func (r *driving) readRentals(ctx context.Context) error {
	return errors.Join(
		r.db.SelectContext(ctx, &r.accounts.Rentals, `
			select b.id, b.state, b.vehicle_id as vehicle, u.serial as unit, b.subtotal + b.tax as rental, b.started_at as start,
				b.ended_at as "end"
			from bookings b join units u on u.vehicle_id = b.vehicle_id order by b.id`),
		r.db.SelectContext(ctx, &r.accounts.Transitions, `
			select id, booking_id as booking, kind, state, step, coalesce(content ->> 'override', '') as override,
				needs_staff as needsstaff, requested_at as requested, ended_at as ended
			from transitions order by requested_at`),
		r.db.SelectContext(ctx, &r.accounts.Orders, `
			select key, command_id as command from idempotency_keys
			where subject = $1 and key like 'transition-%' and command_id is not null`, rental.System().Subject))
}
