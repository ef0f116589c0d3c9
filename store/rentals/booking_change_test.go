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

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

func TestAChangeIsWrittenWhole(t *testing.T) {
	w := newRentalWorld(t)
	booking := w.book(draft(1, 0, 8))
	started := w.amend(rental.BookingStart, booking.ID, noon, beginAt(noon))
	if started.State != rental.Active || !started.ActualStart.Equal(noon) || len(started.Charges) != 2 {
		t.Fatalf("started: %+v", started)
	}
	rent, deposit := started.Charges[0], started.Charges[1]
	if rent.Kind != rental.StartCharge || rent.Amount != 13_200 || rent.Number != 1 || rent.State != rental.Pending || !rent.NextAttempt.Equal(noon) ||
		rent.ID == (rental.ChargeID{}) || rent.Currency != "EUR" {
		t.Errorf("rental %+v", rent)
	}
	if deposit.Kind != rental.DepositCharge || deposit.Amount != 20_000 || deposit.Goal != rental.Hold || deposit.ID == rent.ID {
		t.Errorf("deposit %+v", deposit)
	}
	extended := w.amend(rental.BookingExtend, booking.ID, noon.Add(time.Hour), func(d rental.BookingDetails) (rental.Change, error) {
		return d.Extend(noon.Add(time.Hour), noon.Add(10*time.Hour))
	})
	if !extended.End.Equal(noon.Add(10*time.Hour)) || extended.Extensions != 1 || extended.Price.Hours != 1000 || extended.Charges[2].Amount != 3_300 {
		t.Errorf("extended: %+v", extended)
	}
	// As of noon: before the extension.
	fined := w.amend(rental.BookingFee, booking.ID, noon.Add(time.Hour), fineOf(4_550))
	if fee := fined.Charges[2]; fee.Fee != "cleaning" || fee.Reason != "dog hair" || fee.Amount != 4_550 || fee.Number != 1 {
		t.Errorf("fee %+v", fee)
	}
	ended := w.amend(rental.BookingEnd, booking.ID, noon.Add(9*time.Hour), finishAt(noon.Add(9*time.Hour)))
	if ended.State != rental.Completed || !ended.ActualEnd.Equal(noon.Add(9*time.Hour)) || ended.Charges[1].Goal != rental.Release ||
		!ended.Charges[1].NextAttempt.Equal(noon.Add(9*time.Hour)) {
		t.Errorf("ended: %+v", ended)
	}
	if n := w.count(`select count(*) from charges where kind = 'deposit' and woken_at = $1`, noon.Add(9*time.Hour)); n != 1 {
		t.Error("a worker at the deposit does not get its new goal")
	}
	lines := w.lines(booking.ID)
	var actions []string
	for _, line := range lines {
		actions = append(actions, line.Action)
	}
	if want := []string{rental.BookingCreate, rental.BookingStart, rental.BookingExtend, rental.BookingFee, rental.BookingEnd}; !reflect.DeepEqual(actions, want) {
		t.Errorf("history %v", actions)
	}
	if fee := lines[3]; fee.Note != "dog hair" || fee.Details["amount"] != "45.50" || fee.Agency != 1 || fee.Vehicle != 1 || fee.Outcome != telematics.Executed {
		t.Errorf("line of the fee %+v", fee)
	}
}

func TestADepositIsCapturedByItsGoal(t *testing.T) {
	w := newRentalWorld(t)
	booking := w.book(draft(1, 0, 8))
	w.amend(rental.BookingStart, booking.ID, noon, beginAt(noon))
	w.exec(`update charges set state = 'authorized', settled = amount, next_attempt_at = null where kind = 'deposit'`)
	d := w.amend(rental.BookingCapture, booking.ID, noon, func(d rental.BookingDetails) (rental.Change, error) {
		return d.CaptureDeposit(noon, 15_000, "scratch")
	})
	if c := d.Charges[1]; c.Goal != rental.Capture || c.CaptureAmount != 15_000 || c.Reason != "scratch" || !c.NextAttempt.Equal(noon) {
		t.Errorf("deposit %+v", c)
	}
}

// everything is what a change could touch.
func (w *rentalWorld) everything() (rows [5]string) {
	w.t.Helper()
	for i, query := range []string{
		`select json_agg(b order by id)::text from bookings b`, `select coalesce(json_agg(c order by id)::text, '') from charges c`,
		`select json_agg(v order by id)::text from vehicles v`, `select coalesce(json_agg(k order by key)::text, '') from idempotency_keys k`,
		`select json_agg(a order by id)::text from activity a`,
	} {
		if err := w.here.Pool.Get(&rows[i], query); err != nil {
			w.t.Fatal(err)
		}
	}
	return rows
}

func TestAChangeThatFailsLeavesNothing(t *testing.T) {
	w := newRentalWorld(t)
	booking := w.book(draft(1, 0, 8))
	refusal := errors.New("decided against it")
	before := w.everything()
	for name, decide := range map[string]rental.Decision{
		"decided": func(rental.BookingDetails) (rental.Change, error) { return rental.Change{}, refusal },
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
		"history": func(d rental.BookingDetails) (rental.Change, error) {
			c, err := d.Begin(noon)
			c.Note = "\x00"
			return c, err
		},
	} {
		_, replayed, err := w.here.Amend(t.Context(), named(asks(operator, rental.BookingStart, booking.ID, noon), "k", "start"), decide)
		if err == nil || replayed || unavailable.Is(err) || name == "decided" && !errors.Is(err, refusal) {
			t.Errorf("%s: %v", name, err)
		}
		if after := w.everything(); after != before {
			t.Errorf("%s: something was written: %s", name, after)
		}
	}
	// The key is free.
	if _, replayed, err := w.here.Amend(t.Context(), named(asks(operator, rental.BookingStart, booking.ID, noon), "k", "start"), beginAt(noon)); err != nil || replayed {
		t.Error(replayed, err)
	}
}

func TestARepeatedChangeIsAnsweredFromWhatIsThereNow(t *testing.T) {
	w := newRentalWorld(t)
	booking := w.book(draft(1, 0, 8))
	request := named(asks(operator, rental.BookingStart, booking.ID, noon), "k", "start")
	if _, replayed, err := w.here.Amend(t.Context(), request, beginAt(noon)); err != nil || replayed {
		t.Fatal(replayed, err)
	}
	w.amend(rental.BookingEnd, booking.ID, noon.Add(time.Hour), finishAt(noon.Add(time.Hour)))
	before := w.everything()
	d, replayed, err := w.there.Amend(t.Context(), request, func(rental.BookingDetails) (rental.Change, error) {
		t.Error("a repetition was decided about")
		return rental.Change{}, nil
	})
	if err != nil || !replayed || d.State != rental.Completed {
		t.Errorf("repeated: %s %v %v", d.State, replayed, err)
	}
	if _, _, err := w.there.Amend(t.Context(), named(request, "k", "another"), beginAt(noon)); codeOf(err) != telematics.IdempotencyMismatch {
		t.Errorf("another request under the key: %v", err)
	}
	if after := w.everything(); after != before {
		t.Error("a repetition wrote something")
	}
	// Another caller's key is another key, and a key is forgotten after a day.
	w.exec(`update idempotency_keys set made_at = clock_timestamp() - interval '24 hours'`)
	if _, replayed, err := w.here.Amend(t.Context(), named(request, "k", "another"), fineOf(100)); err != nil || replayed {
		t.Errorf("after a day: %v %v", replayed, err)
	}
	other := asks(telematics.Actor{Subject: "admin-8", Role: telematics.Admin}, rental.BookingFee, booking.ID, noon)
	if _, replayed, err := w.here.Amend(t.Context(), named(other, "k", "a third"), fineOf(100)); err != nil || replayed {
		t.Errorf("another caller: %v %v", replayed, err)
	}
}

func TestWhatAnActorMayNotSeeIsNotThereForIt(t *testing.T) {
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
			t.Fatalf("%+v: %v, %v", actor, err, err2)
		}
		if *foreign != *rental.NoSuchBooking(booking.ID) || *missing != *rental.NoSuchBooking(booking.ID + 1) {
			t.Errorf("%+v: %+v, %+v", actor, foreign, missing)
		}
	}
	if after := w.everything(); after != before {
		t.Error("something was written")
	}
	if _, _, err := w.here.Amend(t.Context(), asks(anna, rental.BookingCancel, booking.ID, noon.Add(-3*time.Hour)), cancelAt(noon.Add(-3*time.Hour))); err != nil {
		t.Error(err)
	}
}

func TestAVehiclesStatusFollowsItsBookings(t *testing.T) {
	w := newRentalWorld(t)
	is := func(want telematics.VehicleStatus) {
		t.Helper()
		if got := w.status(1); got != want {
			t.Errorf("status %s, want %s", got, want)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(`select from ` + table + ` for update`); err != nil {
			t.Fatal(err)
		}
		if _, _, err := hurried.Amend(t.Context(), asks(operator, rental.BookingStart, booking.ID, noon), beginAt(noon)); !unavailable.Is(err) {
			t.Errorf("%s are held: %v", table, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
	w.amend(rental.BookingStart, booking.ID, noon, beginAt(noon))
}

func TestAChangeTakesItsLocksInOneOrder(t *testing.T) {
	w := newRentalWorld(t)
	booking := w.book(draft(1, 0, 1))
	w.amend(rental.BookingStart, booking.ID, noon, beginAt(noon))
	order := []string{"clients where subject = 'anna'", "bookings", "vehicles where id = 1", "charges"}
	for i, held := range order {
		tx, err := w.there.Pool.Beginx()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(`select from ` + held + ` for update`); err != nil {
			t.Fatal(err)
		}
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
				t.Errorf("while %s are held by another transaction, %s are free: %v (%v)", held, other, free, err)
			}
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestAChangeThatIsGivenUpForAnotherIsMadeAgain(t *testing.T) {
	w := newRentalWorld(t)
	// Deadlock, no serial order.
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
			t.Errorf("%s for ever: %v", failure.Code, err)
		}
	}
	attempts := 0
	_ = retryTransaction(t.Context(), w.here.DB, func(*sqlx.Tx) error { attempts++; return &pq.Error{Code: "23514"} })
	if attempts != 1 {
		t.Errorf("what can never succeed was tried %d times", attempts)
	}
}

func TestAmend_DeadlockIsRepeated(t *testing.T) {
	w := newRentalWorld(t)
	booking := w.book(draft(1, 0, 1))
	tx, err := w.there.Pool.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // it has done nothing
	if _, err := tx.Exec(`select from vehicles where id = 1 for update`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := w.here.Amend(context.Background(), asks(operator, rental.BookingStart, booking.ID, noon), beginAt(noon))
		done <- err
	}()
	storetest.WaitForLock(t, w.there.DB)
	// One of the two is given up.
	_, _ = tx.Exec(`select from clients where subject = 'anna' for update`)
	_ = tx.Rollback()
	if err := <-done; err != nil && !unavailable.Is(err) {
		t.Error(err)
	}
}
