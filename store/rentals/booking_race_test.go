package rentals

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/rental"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// together runs n calls concurrently, alternating between the instances, and returns the errors.
func (w *rentalWorld) together(n int, run func(i int, p *fixture) error) []error {
	w.t.Helper()
	errs := make([]error, n)
	var start, done sync.WaitGroup
	start.Add(1)
	for i := range n {
		done.Go(func() {
			start.Wait()
			errs[i] = run(i, []*fixture{w.here, w.there}[i%2])
		})
	}
	start.Done()
	done.Wait()
	return errs
}

func TestBook_OneOfManyConcurrentOverlappingBookingsSucceeds(t *testing.T) {
	w := newRentalWorld(t)
	for vehicle := telematics.VehicleID(1); vehicle <= 2; vehicle++ {
		won := 0
		errs := w.together(12, func(i int, p *fixture) error {
			d, by := draft(vehicle, 1+float64(i%3), 4+float64(i%2)), operator // all times overlap
			d.Client = []string{"anna", "ben"}[i/2%2]
			if d.Self = vehicle%2 == 0; d.Self {
				by = telematics.Actor{Subject: d.Client, Role: telematics.Client, Agency: 1}
			}
			_, _, err := p.OpenBooking(t.Context(), d, asks(by, rental.BookingCreate, 0, noon))
			return err
		})
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case codeOf(err) != rental.VehicleNotAvailable || !strings.Contains(err.Error(), "has another booking in that time"):
				t.Errorf("vehicle %d: error %v, want not available", vehicle, err)
			}
		}
		if live := w.count(`select count(*) from bookings where vehicle_id = $1`, vehicle); won != 1 || live != 1 {
			t.Errorf("vehicle %d: %d calls succeeded, %d bookings are stored; want 1 and 1", vehicle, won, live)
		}
	}
	if n, entries := w.count(`select last from booking_numbers where year = 2026`),
		w.count(`select count(*) from activity where action = 'booking.create'`); n != 2 || entries != 2 {
		t.Errorf("the last number is %d, with %d audit log entries; want 2: a refused booking uses none", n, entries)
	}
}

// That a start takes the vehicle before its booking begins is nothing that the schema compares.
func TestTaken_WaitsForAStartThatTakesTheVehicleEarlier(t *testing.T) {
	w := newRentalWorld(t)
	ben := func(vehicle telematics.VehicleID) rental.Draft {
		d := draft(vehicle, 0, 0.2)
		d.Client = "ben"
		return d
	}
	other := w.book(ben(3))
	for vehicle, take := range map[telematics.VehicleID]func() error{
		1: func() error {
			_, _, err := w.there.OpenBooking(context.Background(), ben(1), asks(operator, rental.BookingCreate, 0, noon))
			return err
		},
		2: func() error {
			r := asks(operator, rental.BookingMove, other.ID, noon)
			r.MoveTo = 2
			_, _, err := w.there.Amend(context.Background(), r, rental.Move)
			return err
		},
	} {
		refused := make(chan error, 1)
		w.opens(w.book(draft(vehicle, 0.2, 1)).ID, rental.StartRental, noon, func() {
			go func() { refused <- take() }()
			storetest.WaitForLock(t, w.there.DB)
		})
		if err := <-refused; codeOf(err) != rental.VehicleNotAvailable {
			t.Errorf("vehicle %d, until the start of a booking that has just been started: %v, want not available", vehicle, err)
		}
	}
}

func TestAmend_OneActiveBookingPerVehicle(t *testing.T) {
	w := newRentalWorld(t)
	first, second := w.book(draft(1, 0, 1)), w.book(draft(1, 1, 2))
	w.amend(rental.BookingStart, first.ID, noon, beginAt(noon))
	overdue := noon.Add(90 * time.Minute)
	_, _, err := w.here.Amend(t.Context(), asks(operator, rental.BookingStart, second.ID, overdue), beginAt(overdue))
	if codeOf(err) != rental.VehicleNotAvailable || !strings.Contains(err.Error(), "in use by another booking") {
		t.Errorf("start of the next booking while one is overdue: %v, want not available", err)
	}
	// Whatever the program decides, the schema refuses it.
	forced := func(d rental.BookingDetails) (rental.Change, error) {
		d.State, d.ActualStart = rental.Active, overdue
		return rental.Change{Booking: d.Booking}, nil
	}
	if _, _, err := w.here.Amend(t.Context(), asks(operator, rental.BookingStart, second.ID, overdue),
		forced); codeOf(err) != rental.VehicleNotAvailable {
		t.Errorf("a second active booking: %v, want not available", err)
	}
	_, _, err = w.here.Amend(t.Context(), asks(anna, rental.BookingExtend, first.ID, noon),
		func(d rental.BookingDetails) (rental.Change, error) {
			d.End = overdue
			return rental.Change{Booking: d.Booking}, nil
		})
	if codeOf(err) != rental.VehicleNotAvailable || !strings.Contains(err.Error(), "has another booking") {
		t.Errorf("extension into another booking: %v, want not available", err)
	}
	w.amend(rental.BookingEnd, first.ID, overdue, finishAt(overdue))
	w.amend(rental.BookingStart, second.ID, overdue, beginAt(overdue))
}

func TestAmend_ConcurrentFeesHaveConsecutiveNumbers(t *testing.T) {
	w := newRentalWorld(t)
	booking := w.book(draft(1, 0, 1))
	w.amend(rental.BookingStart, booking.ID, noon, beginAt(noon))
	for _, err := range w.together(12, func(_ int, p *fixture) error {
		_, _, err := p.Amend(t.Context(), asks(operator, rental.BookingFee, booking.ID, noon), fineOf(500))
		return err
	}) {
		assert.NoError(t, err)
	}
	if n := w.count(`select count(distinct number) from charges where kind = 'fee' and number between 1 and 12`); n != 12 {
		t.Errorf("%d fees have different numbers from 1 to 12, want 12", n)
	}
}

func TestBook_ConcurrentRequestsWithOneKeyAreOne(t *testing.T) {
	w := newRentalWorld(t)
	var mu sync.Mutex
	made, replays := map[rental.BookingID]bool{}, 0
	for _, err := range w.together(12, func(_ int, p *fixture) error {
		d, replayed, err := p.OpenBooking(t.Context(), draft(1, 0, 1), named(asks(operator, rental.BookingCreate, 0, noon), "k-1", "book"))
		mu.Lock()
		defer mu.Unlock()
		made[d.ID] = true
		if replayed {
			replays++
		}
		return err
	}) {
		assert.NoError(t, err)
	}
	if len(made) != 1 || replays != 11 || w.count(`select count(*) from bookings`) != 1 {
		t.Errorf("bookings %v, %d repetitions; want one and 11", made, replays)
	}
	var booking rental.BookingID
	for booking = range made {
	}
	w.amend(rental.BookingStart, booking, noon, beginAt(noon))
	for _, err := range w.together(12, func(_ int, p *fixture) error {
		_, _, err := p.Amend(t.Context(), named(asks(operator, rental.BookingFee, booking, noon), "k-2", "fine"), fineOf(500))
		return err
	}) {
		assert.NoError(t, err)
	}
	assert.Equal(t, w.count(`select count(*) from charges where kind = 'fee'`), 1, "fees with one key")
}

func TestBook_OneKeyForTwoConcurrentClientsMakesOneBooking(t *testing.T) {
	w := newRentalWorld(t)
	for round := range 2 {
		key := string(rune('a' + round))
		won, mismatched := 0, 0
		for _, err := range w.together(8, func(i int, p *fixture) error {
			d := draft(telematics.VehicleID(1+i%2), float64(round), float64(round)+1)
			d.Client = []string{"anna", "ben"}[i%2]
			_, _, err := p.OpenBooking(t.Context(), d, named(asks(operator, rental.BookingCreate, 0, noon), key, d.Client))
			return err
		}) {
			switch {
			case err == nil:
				won++
			case codeOf(err) == telematics.IdempotencyMismatch:
				mismatched++
			default:
				t.Error(err)
			}
		}
		if n := w.count(`select count(*) from bookings where start_at = $1`, noon.Add(time.Duration(round)*time.Hour)); n != 1 ||
			won != 4 || mismatched != 4 {
			t.Errorf("round %d: %d bookings, %d calls succeeded, %d mismatches; want 1, 4 and 4", round, n, won, mismatched)
		}
	}
}
