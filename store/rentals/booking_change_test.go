package rentals

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

func TestAmend_WritesBookingChargesAndAuditEntry(t *testing.T) {
	w := newRentalWorld(t)
	booking := w.book(draft(1, 0, 8))
	started := w.amend(rental.BookingStart, booking.ID, noon, beginAt(noon))
	if started.State != rental.Active || !started.ActualStart.Equal(noon) || len(started.Charges) != 2 {
		t.Fatalf("started booking %+v, want it active with two charges", started)
	}
	rent, deposit := started.Charges[0], started.Charges[1]
	if rent.Kind != rental.StartCharge || rent.Amount != 13_200 || rent.Number != 1 || rent.State != rental.Pending ||
		!rent.NextAttempt.Equal(noon) ||
		rent.ID == (rental.ChargeID{}) || rent.Currency != "EUR" {
		t.Errorf("charge of the rental %+v", rent)
	}
	if deposit.Kind != rental.DepositCharge || deposit.Amount != 20_000 || deposit.Goal != rental.Hold || deposit.ID == rent.ID {
		t.Errorf("charge of the deposit %+v", deposit)
	}
	extended := w.amend(rental.BookingExtend, booking.ID, noon.Add(time.Hour), func(d rental.BookingDetails) (rental.Change, error) {
		return d.Extend(noon.Add(time.Hour), noon.Add(10*time.Hour), telematics.Client)
	})
	if !extended.End.Equal(noon.Add(10*time.Hour)) || extended.Extensions != 1 || extended.Price.Hours != 1000 ||
		extended.Charges[2].Amount != 3_300 {
		t.Errorf("extended booking %+v", extended)
	}
	// The fee is decided as of noon, before the extension.
	fined := w.amend(rental.BookingFee, booking.ID, noon.Add(time.Hour), fineOf(4_550))
	if fee := fined.Charges[2]; fee.Fee != "cleaning" || fee.Reason != "dog hair" || fee.Amount != 4_550 || fee.Number != 1 {
		t.Errorf("charge of the fee %+v", fee)
	}
	w.exec(`update charges set state = 'paid', settled = amount where kind in ('start', 'extension')`)
	ended := w.amend(rental.BookingEnd, booking.ID, noon.Add(9*time.Hour), finishAt(noon.Add(9*time.Hour)))
	if ended.State != rental.Completed || !ended.ActualEnd.Equal(noon.Add(9*time.Hour)) || ended.Charges[1].Goal != rental.Release ||
		!ended.Charges[1].NextAttempt.Equal(noon.Add(9*time.Hour)) {
		t.Errorf("ended booking %+v", ended)
	}
	if n := w.count(`select count(*) from charges where kind = 'deposit' and woken_at = $1`, noon.Add(9*time.Hour)); n != 1 {
		t.Error("the deposit was not woken for its new goal")
	}
	lines := w.lines(booking.ID)
	var actions []string
	for _, line := range lines {
		actions = append(actions, line.Action)
	}
	if want := []string{
		rental.BookingCreate, rental.BookingStart, rental.BookingExtend, rental.BookingFee, rental.BookingEnd,
	}; !reflect.DeepEqual(actions, want) {
		t.Errorf("audit entries %v, want %v", actions, want)
	}
	if fee := lines[3]; fee.Note != "dog hair" || fee.Details["amount"] != "45.50" || fee.Agency != 1 || fee.Vehicle != 1 ||
		fee.Outcome != telematics.Executed {
		t.Errorf("audit entry of the fee %+v", fee)
	}
}

// everything returns all rows that a change could touch.
func (w *rentalWorld) everything() (rows [5]string) {
	w.t.Helper()
	for i, query := range []string{
		`select json_agg(b order by id)::text from bookings b`, `select coalesce(json_agg(c order by id)::text, '') from charges c`,
		`select json_agg(v order by id)::text from vehicles v`,
		`select coalesce(json_agg(k order by key)::text, '') from idempotency_keys k`,
		`select json_agg(a order by id)::text from activity a`,
	} {
		require.NoError(w.t, w.here.Pool.Get(&rows[i], query))
	}
	return rows
}

func TestAmend_FailedChangeWritesNothing(t *testing.T) {
	w := newRentalWorld(t)
	booking := w.book(draft(1, 0, 8))
	refusal := errors.New("refused by the decision")
	before := w.everything()
	for name, decide := range map[string]rental.Decision{
		"decision": func(rental.BookingDetails) (rental.Change, error) { return rental.Change{}, refusal },
		"charge": func(d rental.BookingDetails) (rental.Change, error) {
			c, err := d.Begin(noon)
			c.Charges[1].Amount = -1
			return c, err
		},
		"booking": func(d rental.BookingDetails) (rental.Change, error) {
			c, err := d.Begin(noon)
			c.Booking.Extensions = 4
			return c, err
		},
		"audit entry": func(d rental.BookingDetails) (rental.Change, error) {
			c, err := d.Begin(noon)
			c.Note = "\x00"
			return c, err
		},
	} {
		_, replayed, err := w.here.Amend(t.Context(), named(asks(operator, rental.BookingStart, booking.ID, noon), "k", "start"), decide)
		if err == nil || replayed || unavailable.Is(err) || name == "decision" && !errors.Is(err, refusal) {
			t.Errorf("%s fails: error %v", name, err)
		}
		assert.Equal(t, w.everything(), before, "%s fails: rows were written", name)
	}
	// The key was not used up.
	if _, replayed, err := w.here.Amend(t.Context(), named(asks(operator, rental.BookingStart, booking.ID, noon), "k", "start"),
		beginAt(noon)); err != nil || replayed {
		t.Errorf("with the key of the failed changes: replayed %v, %v", replayed, err)
	}
}

func TestAmend_RepetitionReturnsThePresentBooking(t *testing.T) {
	w := newRentalWorld(t)
	booking := w.book(draft(1, 0, 8))
	request := named(asks(operator, rental.BookingStart, booking.ID, noon), "k", "start")
	if _, replayed, err := w.here.Amend(t.Context(), request, beginAt(noon)); err != nil || replayed {
		t.Fatal(replayed, err)
	}
	w.amend(rental.BookingEnd, booking.ID, noon.Add(time.Hour), finishAt(noon.Add(time.Hour)))
	before := w.everything()
	d, replayed, err := w.there.Amend(t.Context(), request, func(rental.BookingDetails) (rental.Change, error) {
		t.Error("the decision ran for a repetition")
		return rental.Change{}, nil
	})
	if err != nil || !replayed || d.State != rental.Completed {
		t.Errorf("repeated: state %s, replayed %v, %v", d.State, replayed, err)
	}
	if _, _, err := w.there.Amend(t.Context(), named(request, "k", "another"),
		beginAt(noon)); codeOf(err) != telematics.IdempotencyMismatch {
		t.Errorf("another request with the key: %v, want a mismatch", err)
	}
	if after := w.everything(); after != before {
		t.Error("a repetition wrote rows")
	}
	// A key belongs to its caller, and expires after a day.
	w.exec(`update idempotency_keys set made_at = clock_timestamp() - interval '24 hours'`)
	if _, replayed, err := w.here.Amend(t.Context(), named(request, "k", "another"), fineOf(100)); err != nil || replayed {
		t.Errorf("with the key after a day: replayed %v, %v", replayed, err)
	}
	other := asks(telematics.Actor{Subject: "admin-8", Role: telematics.Admin}, rental.BookingFee, booking.ID, noon)
	if _, replayed, err := w.here.Amend(t.Context(), named(other, "k", "a third"), fineOf(100)); err != nil || replayed {
		t.Errorf("another caller with the key: replayed %v, %v", replayed, err)
	}
}

func TestAmend_InvisibleBookingIsNotFound(t *testing.T) {
	w := newRentalWorld(t)
	booking := w.book(draft(1, 0, 8))
	before := w.everything()
	for _, actor := range []telematics.Actor{
		{Subject: "ben", Role: telematics.Client, Agency: 1}, {Subject: "anna", Role: telematics.Client, Agency: 2},
		{Subject: "anna", Role: telematics.Client}, {Subject: "admin", Role: telematics.Admin, Agency: 2}, {},
	} {
		_, _, err := w.here.Amend(t.Context(), named(asks(actor, rental.BookingCancel, booking.ID, noon), "k", "cancel"), cancelAt(noon))
		var foreign, missing *telematics.Error
		_, _, err2 := w.here.Amend(t.Context(), asks(actor, rental.BookingCancel, booking.ID+1, noon), cancelAt(noon))
		if !errors.As(err, &foreign) || !errors.As(err2, &missing) {
			t.Fatalf("%+v: errors %v and %v, want not found", actor, err, err2)
		}
		if *foreign != *rental.NoSuchBooking(booking.ID) || *missing != *rental.NoSuchBooking(booking.ID + 1) {
			t.Errorf("%+v: errors %+v and %+v, want the same text for both", actor, foreign, missing)
		}
	}
	if after := w.everything(); after != before {
		t.Error("a refused change wrote rows")
	}
	if _, _, err := w.here.Amend(t.Context(), asks(anna, rental.BookingCancel, booking.ID, noon.Add(-3*time.Hour)),
		cancelAt(noon.Add(-3*time.Hour))); err != nil {
		t.Error(err)
	}
}

func TestAmend_VehicleStatusFollowsTheBookings(t *testing.T) {
	w := newRentalWorld(t)
	is := func(want telematics.VehicleStatus) {
		t.Helper()
		assert.Equal(t, w.status(1), want, "status")
	}
	is(telematics.Available)
	first := w.book(draft(1, 0, 1))
	is(telematics.Booked)
	second := w.book(draft(1, 4, 5))
	w.amend(rental.BookingStart, first.ID, noon, beginAt(noon))
	is(telematics.InUse)
	w.amend(rental.BookingEnd, first.ID, noon, finishAt(noon))
	is(telematics.Booked)
	w.amend(rental.BookingCancel, second.ID, noon, cancelAt(noon))
	is(telematics.Available)

	third := w.book(draft(1, 6, 7))
	for _, withdrawn := range []telematics.VehicleStatus{telematics.Maintenance, telematics.Inactive} {
		w.exec(`update vehicles set status = $1 where id = 1`, withdrawn)
		w.amend(rental.BookingFee, first.ID, noon, fineOf(1))
		is(withdrawn)
	}
	w.amend(rental.BookingCancel, third.ID, noon, cancelAt(noon))
	is(telematics.Inactive)
	if w.status(2) != telematics.Available {
		t.Error("another vehicle's status changed")
	}
}

func TestAmend_LockNotAvailableIsUnavailable(t *testing.T) {
	w := newRentalWorld(t)
	booking := w.book(draft(1, 0, 1))
	hurried := Bookings{storetest.OpenWith(t, pg.Config{URL: w.address, Timeout: time.Second})}
	for _, table := range []string{"clients", "bookings", "vehicles"} {
		tx, err := w.there.Pool.Beginx()
		require.NoError(t, err)
		storetest.Exec(t, tx, `select from `+table+` for update`)
		if _, _, err := hurried.Amend(t.Context(), asks(operator, rental.BookingStart, booking.ID, noon),
			beginAt(noon)); !unavailable.Is(err) {
			t.Errorf("while %s are locked: %v, want unavailable", table, err)
		}
		require.NoError(t, tx.Rollback())
	}
	w.amend(rental.BookingStart, booking.ID, noon, beginAt(noon))
}

func TestAmend_LocksInOneOrder(t *testing.T) {
	w := newRentalWorld(t)
	booking := w.book(draft(1, 0, 1))
	w.amend(rental.BookingStart, booking.ID, noon, beginAt(noon))
	order := []string{"clients where subject = 'anna'", "bookings", "vehicles where id = 1", "charges"}
	for i, held := range order {
		tx, err := w.there.Pool.Beginx()
		require.NoError(t, err)
		storetest.Exec(t, tx, `select from `+held+` for update`)
		done := make(chan error, 1)
		go func() {
			_, _, err := w.here.Amend(context.Background(), asks(operator, rental.BookingFee, booking.ID, noon), fineOf(100))
			done <- err
		}()
		storetest.WaitForLock(t, w.there.DB)
		for j, other := range order {
			if j == i {
				continue
			}
			_, err := w.there.Pool.Exec(`select from ` + other + ` for update nowait`)
			if free := err == nil; free != (j > i) {
				t.Errorf("while %s are locked by another transaction, %s can be locked: %v (%v)", held, other, free, err)
			}
		}
		require.NoError(t, tx.Rollback())
		assert.NoError(t, <-done)
	}
}

func TestRetryTransaction_RepeatsAfterDeadlockOrSerializationFailure(t *testing.T) {
	w := newRentalWorld(t)
	// A deadlock, and a serialisation failure.
	for _, failure := range []*pq.Error{{Code: "40P01"}, {Code: "40001"}} {
		attempts := 0
		err := retryTransaction(t.Context(), w.here.DB, func(*sqlx.Tx) error {
			if attempts++; attempts < changeAttempts {
				return fmt.Errorf("lock: %w", failure)
			}
			return nil
		})
		if err != nil || attempts != changeAttempts {
			t.Errorf("%s: %d attempts, %v", failure.Code, attempts, err)
		}
		if err := retryTransaction(t.Context(), w.here.DB, func(*sqlx.Tx) error { return failure }); !unavailable.Is(err) {
			t.Errorf("a permanent %s: %v, want unavailable", failure.Code, err)
		}
	}
	attempts := 0
	_ = retryTransaction(t.Context(), w.here.DB, func(*sqlx.Tx) error { attempts++; return &pq.Error{Code: "23514"} })
	assert.Equal(t, attempts, 1, "attempts after an error that stays")
}

// move moves a booking to a vehicle by an administrator.
func (w *rentalWorld) move(id rental.BookingID, to telematics.VehicleID, now time.Time) (rental.BookingDetails, error) {
	r := asks(operator, rental.BookingMove, id, now)
	r.MoveTo = to
	d, _, err := w.here.Amend(w.t.Context(), r, rental.Move)
	return d, err
}

func TestAmend_MovesABookingToAnotherVehicle(t *testing.T) {
	w := newRentalWorld(t)
	booking := w.book(draft(1, 0, 8))
	w.exec(`update vehicles set hourly_rate = 9900 where id = 2`)
	moved, err := w.move(booking.ID, 2, noon)
	require.NoError(t, err)
	if moved.VehicleID != 2 || moved.Vehicle.Plate != "M-IM 2" || moved.Price != booking.Price || moved.Identity == booking.Identity {
		t.Errorf("moved booking %+v, want vehicle 2 at the agreed price, with another identity", moved)
	}
	if one, two := w.status(1), w.status(2); one != telematics.Available || two != telematics.Booked {
		t.Errorf("vehicles are %s and %s, want available and booked", one, two)
	}
	lines := w.lines(booking.ID)
	last := lines[len(lines)-1]
	if last.Action != rental.BookingMove || last.Vehicle != 2 || fmt.Sprint(last.Details) != "map[from_vehicle_id:1]" {
		t.Errorf("audit entry %+v", last)
	}
	// Another booking of the former vehicle, at the same start, has other payments.
	again := w.book(draft(1, 0, 8))
	if again.Identity != booking.Identity || again.Identity == moved.Identity {
		t.Errorf("identities %s, %s and %s", booking.Identity, moved.Identity, again.Identity)
	}
	w.amend(rental.BookingStart, booking.ID, noon, beginAt(noon))
	w.amend(rental.BookingStart, again.ID, noon, beginAt(noon))
	assert.Equal(t, w.count(`select count(distinct payment_key) from charges`), 4, "payment keys of 4 charges")
}

func TestAmend_RefusesToMoveABooking(t *testing.T) {
	w := newRentalWorld(t)
	booking := w.book(draft(1, 0, 8))
	w.book(draft(2, 7, 9))
	w.exec(`update vehicles set status = 'maintenance' where id = 3`)
	w.exec(`update vehicles set agency_id = 2 where id = 4`)
	before := w.everything()
	for to, code := range map[telematics.VehicleID]telematics.Code{
		2: rental.VehicleNotAvailable, 3: rental.VehicleNotAvailable, 4: telematics.VehicleNotFound, 99: telematics.VehicleNotFound,
	} {
		_, err := w.move(booking.ID, to, noon)
		if refusal := (*telematics.Error)(nil); !errors.As(err, &refusal) || refusal.Code != code {
			t.Errorf("to vehicle %d: %v, want %s", to, err, code)
		}
	}
	assert.Equal(t, w.everything(), before, "rows were written")
	if d, err := w.move(booking.ID, 1, noon); err != nil || d.VehicleID != 1 || d.Identity != booking.Identity {
		t.Errorf("to its own vehicle: %+v, %v", d, err)
	}
}

// A client who can start alone must be able to still. Where staff hand the vehicle over, they can
// hand over another one.
func TestAmend_MovesToAVehicleWithoutTheCommandsOfARental(t *testing.T) {
	w := newRentalWorld(t)
	booking := w.book(draft(1, 0, 8))
	w.exec(`update units set actions = '{lock,unlock,lock-and-disable-driving}' where vehicle_id = 2`)
	if d, err := w.move(booking.ID, 2, noon); codeOf(err) != rental.VehicleNotAvailable {
		t.Errorf("moved to vehicle %d, %v; want %s", d.VehicleID, err, rental.VehicleNotAvailable)
	}
	w.exec(`update units set actions = '{lock}' where vehicle_id = 1`)
	if d, err := w.move(booking.ID, 2, noon); err != nil || d.VehicleID != 2 {
		t.Errorf("from one that lacks them: %+v, %v; want vehicle 2", d.Booking, err)
	}
}

// Two bookings that change their vehicles wait for each other, and neither is lost.
func TestAmend_MovesConcurrently(t *testing.T) {
	w := newRentalWorld(t)
	first, second := w.book(draft(1, 0, 4)), w.book(draft(2, 5, 9))
	results := make(chan error, 2)
	for _, m := range []struct {
		id rental.BookingID
		to telematics.VehicleID
	}{{first.ID, 2}, {second.ID, 1}} {
		go func() {
			_, err := w.move(m.id, m.to, noon)
			results <- err
		}()
	}
	require.NoError(t, errors.Join(<-results, <-results))
	if n := w.count(`select count(*) from bookings where (id, vehicle_id) in (($1, 2), ($2, 1))`, first.ID, second.ID); n != 2 {
		t.Errorf("%d bookings have moved, want 2", n)
	}
}
