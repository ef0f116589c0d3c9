package money

import (
	"context"
	"database/sql"
	"encoding/json"
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
	return fmt.Sprintf("charge %s (%s %d of booking %d, %s, %d %s, settled %d)", c.ID, c.Kind, c.Number, c.Booking, c.State, c.Amount, c.Currency, c.Settled)
}

// Entry is one of the audit log.
type Entry struct {
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
	record.Bookings, err = rows(ctx, r.db, `select id, state, subtotal + tax, deposit, extensions, end_at from bookings order by id`,
		func(s *sql.Rows, b *BookingRow) error {
			return s.Scan(&b.ID, &b.State, &b.Rental, &b.Deposit, &b.Extensions, &b.End)
		})
	if err != nil {
		return record, err
	}
	record.Charges, err = rows(ctx, r.db, `
		select id, booking_id, kind, number, state, currency, amount, settled, capture_amount, coalesce(goal, ''), coalesce(refunds_charge_id::text, ''),
			reason, coalesce(intent, ''), `+openSQL+`
		from charges order by id`,
		func(s *sql.Rows, c *ChargeRow) error {
			return s.Scan(&c.ID, &c.Booking, &c.Kind, &c.Number, &c.State, &c.Currency, &c.Amount, &c.Settled, &c.CaptureAmount, &c.Goal,
				&c.Refunds, &c.Reason, &c.Intent, &c.Due)
		})
	if err != nil {
		return record, err
	}
	record.Entries, err = rows(ctx, r.db, `
		select booking_id, action, outcome, code, note, coalesce(parameters, '{}') from activity where booking_id is not null order by id`,
		func(s *sql.Rows, l *Entry) error {
			var details []byte
			if err := s.Scan(&l.Booking, &l.Action, &l.Outcome, &l.Code, &l.Note, &details); err != nil {
				return err
			}
			var of struct {
				Number int
				State  rental.ChargeState
			}
			err := json.Unmarshal(details, &of)
			l.Number, l.State = of.Number, of.State
			return err
		})
	return record, err
}

func rows[T any](ctx context.Context, db *sql.DB, query string, scan func(*sql.Rows, *T) error) ([]T, error) {
	found, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	defer found.Close()
	var all []T
	for found.Next() {
		var one T
		if err := scan(found, &one); err != nil {
			return nil, fmt.Errorf("read the record: %w", err)
		}
		all = append(all, one)
	}
	if err := found.Err(); err != nil {
		return nil, fmt.Errorf("read the record: %w", err)
	}
	return all, nil
}
