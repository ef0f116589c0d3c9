package rentals

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"motorpool/rental"
	"motorpool/store/activity"
	"motorpool/store/idempotency"
	"motorpool/store/pg"
	"motorpool/store/settings"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Amend implements httpapi.Bookings, in one transaction. It may call decide more than once.
func (p Bookings) Amend(ctx context.Context, r rental.Request, decide rental.Decision) (rental.BookingDetails, bool, error) {
	var after rental.BookingDetails
	var replayed bool
	var installation string
	var err error
	if r.MoveTo != 0 {
		if installation, err = settings.Installation(ctx, p.DB); err != nil {
			return rental.BookingDetails{}, false, err
		}
	}
	r = keyed(r)
	replayed, err = retryKeyed(ctx, p.DB, func(tx *sqlx.Tx) (found bool, err error) {
		after, found, err = amend(ctx, tx, r, func(d rental.BookingDetails) (rental.Change, error) {
			if r.MoveTo == 0 {
				return decide(d)
			}
			return decideMove(ctx, tx, installation, d, r, decide)
		})
		return found, err
	})
	if err != nil {
		return rental.BookingDetails{}, false, unavailable.Wrap("change booking", err)
	}
	return after, replayed, nil
}

func amend(ctx context.Context, tx *sqlx.Tx, r rental.Request, decide rental.Decision) (rental.BookingDetails, bool, error) {
	before, err := lockedDetails(ctx, tx, r)
	if err != nil {
		return rental.BookingDetails{}, false, err
	}
	if made, err := idempotency.Find(ctx, tx, r.Key); err != nil || made != nil {
		return before, made != nil, err
	}
	change, err := decide(before)
	if err != nil {
		return rental.BookingDetails{}, false, err
	}
	if err := writeChange(ctx, tx, r, before, change); err != nil {
		return rental.BookingDetails{}, false, err
	}
	after, err := readDetails(ctx, tx, r.Booking, r.Now)
	return after, false, err
}

// decideMove locks and reads the vehicle to which a booking is to move, and then calls decide. A
// booking that moves gets the identity of one that is made for the vehicle: a later booking of the
// former one must not have its payments.
func decideMove(
	ctx context.Context, tx *sqlx.Tx, installation string, d rental.BookingDetails, r rental.Request, decide rental.Decision,
) (rental.Change, error) {
	draft := rental.Draft{Agency: d.Agency, Vehicle: r.MoveTo, Start: d.Start, End: d.End}
	d.MoveTo.Terms = d.Terms
	if err := readVehicle(ctx, tx, draft, " for no key update of v", &d.MoveTo); err != nil {
		return rental.Change{}, err
	}
	if d.MoveTo.Vehicle.ID == 0 {
		return rental.Change{}, telematics.NoSuchVehicle(r.MoveTo)
	}
	if err := readTaken(ctx, tx, draft, r.Now, &d.MoveTo); err != nil {
		return rental.Change{}, err
	}
	var present rental.Facts
	if err := readVehicle(ctx, tx, rental.Draft{Vehicle: d.VehicleID}, "", &present); err != nil {
		return rental.Change{}, err
	}
	d.MoveTo.Lacking = d.MoveTo.Lacking && !present.Lacking
	change, err := decide(d)
	if err == nil && change.Booking.VehicleID != d.VehicleID {
		change.Booking.Identity, err = identityOf(ctx, tx, installation, change.Booking, d.Subject)
	}
	return change, err
}

// lockBooking locks a booking and all rows that a change of it may touch, in the order of all
// transactions: client, booking, vehicle, charges. The first three are one statement, in which each
// needs the one before, and so waits for it.
func lockBooking(ctx context.Context, tx *sqlx.Tx, id rental.BookingID) error {
	_, err := tx.ExecContext(ctx, `
		with client as materialized (
			select id from clients where id = (select client_id from bookings where id = $1) for no key update
		), booking as materialized (
			select vehicle_id from bookings where id = $1 and client_id = (select id from client) for no key update
		)
		select from vehicles where id = (select vehicle_id from booking) for no key update`, id)
	if err != nil {
		return err
	}
	return lockCharges(ctx, tx, id)
}

// lockCharges locks the charges of a booking that is locked.
func lockCharges(ctx context.Context, tx *sqlx.Tx, of rental.BookingID) error {
	_, err := tx.ExecContext(ctx, `select from charges where booking_id = $1 order by id for no key update`, of)
	return err
}

// writeChange writes the change of a locked booking, its idempotency key, and its audit log entry,
// if that has an action.
func writeChange(ctx context.Context, tx *sqlx.Tx, r rental.Request, before rental.BookingDetails, c rental.Change) error {
	if c.Booking != before.Booking {
		if err := updateBooking(ctx, tx, c.Booking); err != nil {
			return err
		}
		for _, vehicle := range slices.Compact([]telematics.VehicleID{before.VehicleID, c.Booking.VehicleID}) {
			if err := followBookings(ctx, tx, vehicle); err != nil {
				return err
			}
		}
	}
	if err := insertCharges(ctx, tx, r.Actor, before, c.Charges); err != nil {
		return err
	}
	if err := amendCharges(ctx, tx, r, before.ID, c.Amended); err != nil {
		return err
	}
	if err := keepKey(ctx, tx, r.Key, idempotency.Names{Booking: before.ID}); err != nil {
		return err
	}
	if r.Activity.Action == "" {
		return nil
	}
	return activity.Insert(ctx, tx, bookingLine(r, c))
}

// bookingLine returns the audit log entry of a change.
func bookingLine(r rental.Request, c rental.Change) telematics.Activity {
	line := r.Activity
	line.Booking, line.Agency, line.Vehicle = int64(c.Booking.ID), c.Booking.Agency, c.Booking.VehicleID
	line.Outcome = cmp.Or(line.Outcome, telematics.Executed)
	line.Details, line.Note = c.Details, cmp.Or(c.Note, line.Note)
	return line
}

func updateBooking(ctx context.Context, tx *sqlx.Tx, b rental.Booking) error {
	_, err := tx.ExecContext(ctx, `
		update bookings
		set state = $2, start_at = $3, end_at = $4, started_at = $5, ended_at = $6, hourly_rate = $7, hours = $8, subtotal = $9, tax = $10,
			deposit = $11, payment_method_id = $12, extensions = $13, paused_at = $14, paused_ms = $15,
			start_metres = $16, end_metres = $17, reserved_until = $18, vehicle_id = $19,
			cause = case when vehicle_id = $19 then cause else $20 end
		where id = $1`,
		b.ID, b.State, pg.Timestamp(b.Start), pg.Timestamp(b.End), pg.Timestamp(b.ActualStart),
		pg.Timestamp(b.ActualEnd), b.Price.HourlyRate, b.Price.Hours, b.Price.Subtotal, b.Price.TaxDue, b.Price.Deposit,
		pg.Nullable(b.Method), b.Extensions, pg.Timestamp(b.PausedSince), b.PausedFor.Milliseconds(),
		pg.Nullable(b.StartMetres), pg.Nullable(b.EndMetres), pg.Timestamp(b.ReservedUntil), b.VehicleID, b.Identity,
	)
	return err
}

// insertCharges inserts new charges of an actor, each with the next number of its kind. The caller
// has locked the booking.
func insertCharges(ctx context.Context, tx *sqlx.Tx, by telematics.Actor, of rental.BookingDetails, charges []rental.Charge) error {
	if len(charges) == 0 {
		return nil
	}
	last := map[rental.ChargeKind]int{}
	payments := map[rental.ChargeID]uuid.UUID{}
	for _, c := range of.Charges {
		last[c.Kind] = max(last[c.Kind], c.Number)
		payments[c.ID] = c.PaymentID()
	}
	rows := make([]chargeRow, len(charges))
	for i, c := range charges {
		last[c.Kind]++
		c.Number = last[c.Kind]
		rows[i] = chargeRow{
			// Version 7 grows with time: what is made together stays in this order.
			ID: uuid.Must(uuid.NewV7()), PaymentKey: new(of.PaymentKey(c, payments[c.Refunds])), BookingID: int64(c.Booking),
			Kind: string(c.Kind), Number: c.Number, State: string(c.State),
			Currency: string(c.Currency), Amount: int64(c.Amount), Settled: int64(c.Settled), Goal: pg.Nullable(string(c.Goal)),
			RefundsChargeID: pg.Nullable(c.Refunds), AddedMS: c.Added.Milliseconds(), Fee: c.Fee, Reason: c.Reason,
			NextAttemptAt: pg.Timestamp(c.NextAttempt), PaidAt: pg.Timestamp(c.PaidAt), CreatedAt: pg.Deref(pg.Timestamp(c.Created)),
			RequestedBy: by.Subject,
		}
	}
	_, err := tx.ExecContext(ctx, `
		insert into charges (`+newCharges.String()+`) select `+newCharges.String()+` from json_populate_recordset(null::charges, $1)`,
		pg.JSON(rows))
	return err
}

// newCharges are the columns of charges that have no default.
var newCharges = pg.Columns{
	"id", "payment_key", "booking_id", "kind", "number", "state", "currency", "amount", "settled", "goal", "refunds_charge_id", "added_ms",
	"fee", "reason", "next_attempt_at", "paid_at", "created_at", "requested_by",
}

// amendCharges sets another goal for charges, and makes them due. woken_at makes a worker that has
// leased one of them read it again.
func amendCharges(ctx context.Context, tx *sqlx.Tx, r rental.Request, booking rental.BookingID, charges []rental.Charge) error {
	for _, c := range charges {
		_, err := tx.ExecContext(ctx, `
			update charges
			set goal = $3, capture_amount = $4, reason = $5, woken_at = $6, requested_by = $7,
				next_attempt_at = case when state in ('paid', 'captured', 'released', 'waived') then next_attempt_at else $6 end
			where id = $1 and booking_id = $2`,
			c.ID, booking, pg.Nullable(string(c.Goal)), c.CaptureAmount, c.Reason, pg.Timestamp(r.Now), r.Actor.Subject)
		if err != nil {
			return err
		}
	}
	return nil
}
