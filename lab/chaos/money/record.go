package money

import (
	"context"
	"errors"
	"fmt"
	"time"

	"motorpool/rental"
	"motorpool/simulator/sandbox"
	"motorpool/telematics"
)

// Evidence is the three accounts: of the callers, Postgres, and the processor.
type Evidence struct {
	Operations []Operation
	Record
	Ledger []sandbox.Movement
	// Shown are the names of bookings as they were answered, and Named those on record, in a round
	// of lost commits.
	Shown, Named []Name
}

// Record is what Postgres has stored.
type Record struct {
	Bookings []BookingRow
	Charges  []ChargeRow
	Entries  []Entry // of the audit log, about bookings
}

// BookingRow is a stored booking.
type BookingRow struct {
	ID         rental.BookingID
	State      rental.BookingState
	Rental     rental.Minor // subtotal and tax
	Deposit    rental.Minor
	Extensions int
	End        time.Time
}

// ChargeRow is a stored charge.
type ChargeRow struct {
	ID            string
	Booking       rental.BookingID
	Kind          rental.ChargeKind
	Number        int
	State         rental.ChargeState
	Currency      string
	Amount        rental.Minor
	Settled       rental.Minor
	CaptureAmount rental.Minor
	Goal          rental.Goal
	Refunds       string // id of the refunded charge; empty: none
	Reason        string
	Intent        string
	Due           bool // a worker still has to process it
}

func (c ChargeRow) String() string {
	return fmt.Sprintf(
		"charge %s (%s %d of booking %d, %s, %d %s, settled %d)", c.ID, c.Kind, c.Number, c.Booking, c.State, c.Amount,
		c.Currency, c.Settled,
	)
}

// Entry is one of the audit log.
type Entry struct {
	At      time.Time
	Booking rental.BookingID
	Action  string
	Outcome telematics.Outcome
	Code    telematics.Code
	Note    string
	Number  int                // of a charge
	State   rental.ChargeState // likewise
}

// read returns what Postgres has stored.
func (r *round) read(ctx context.Context) (record Record, err error) {
	err = errors.Join(
		r.db.SelectContext(
			ctx, &record.Bookings,
			`select id, state, subtotal + tax as rental, deposit, extensions, end_at as "end" from bookings order by id`,
		),
		r.db.SelectContext(ctx, &record.Charges, `
			select coalesce(payment_key, id) as id, booking_id as booking, kind, number, state, currency, amount, settled,
				capture_amount as captureamount, coalesce(goal, '') as goal, reason, coalesce(intent, '') as intent, `+openSQL+` as due,
				coalesce((select coalesce(p.payment_key, p.id)::text from charges p where p.id = charges.refunds_charge_id), '') as refunds
			from charges order by id`),
		r.db.SelectContext(ctx, &record.Entries, `
			select at, booking_id as booking, action, outcome, code, note, coalesce((parameters->>'number')::int, 0) as number,
				coalesce(parameters->>'state', '') as state
			from activity where booking_id is not null order by id`))
	return record, err
}
