package rental_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

var visa = rental.Card{Token: "pm_1", Brand: "visa", LastFour: "4242", ExpMonth: 12, ExpYear: 2030}

// upcoming is a booking of 8 hours that begins at start, for 132 EUR and a deposit of 200. The
// vehicle has no other booking.
func upcoming() rental.BookingDetails {
	price, err := rental.Tariff{Currency: "EUR", HourlyRate: 1500, Tax: 100_000, Deposit: 20_000}.Over(start, start.Add(8*time.Hour))
	if err != nil {
		panic(err)
	}
	card := visa
	return rental.BookingDetails{
		Booking: rental.Booking{
			ID: 42, Reference: "BK-2026-00042", State: rental.Upcoming, Agency: 1, Client: 7, VehicleID: 5, PickupID: 1, DropoffID: 2,
			Start: start, End: start.Add(8 * time.Hour), Price: price, Created: start.Add(-24 * time.Hour),
		},
		Terms:   rental.Terms{Currency: "EUR", Tax: 100_000, CancelCutoff: time.Hour, Buffer: 15 * time.Minute},
		Subject: "client-7", Vehicle: telematics.Vehicle{ID: 5, AgencyID: 1, Status: telematics.Booked}, Card: &card,
	}
}

// after returns the details of a booking after a change, as the store writes it.
func after(d rental.BookingDetails, c rental.Change) rental.BookingDetails {
	d.Booking = c.Booking
	charges := append([]rental.Charge{}, d.Charges...)
	for _, amended := range c.Amended {
		for i := range charges {
			if charges[i].ID == amended.ID {
				charges[i] = amended
			}
		}
	}
	for _, added := range c.Charges {
		added.ID, added.Number = uuid.New(), 1
		for _, other := range charges {
			if other.Kind == added.Kind {
				added.Number++
			}
		}
		charges = append(charges, added)
	}
	d.Charges = charges
	return d
}

// active is the booking after it was started on time: the rental is paid and the deposit held.
func active(t *testing.T) rental.BookingDetails {
	t.Helper()
	d := upcoming()
	d = after(d, do(t)(d.Begin(start)))
	for i := range d.Charges {
		carryOut(&d.Charges[i], start.Add(time.Second))
	}
	return d
}

// carryOut settles a charge as a processor does that refuses nothing.
func carryOut(c *rental.Charge, now time.Time) {
	switch c.Goal {
	case rental.Hold:
		c.State, c.Settled = rental.Authorized, c.Amount
	case rental.Capture:
		c.State, c.Settled, c.PaidAt = rental.Captured, c.CaptureAmount, now
	case rental.Release:
		c.State, c.Settled = rental.Released, 0
	default:
		c.State, c.Settled, c.PaidAt = rental.Paid, c.Amount, now
	}
	c.NextAttempt = time.Time{}
}

// do returns the change of a decision that must succeed.
func do(t *testing.T) func(rental.Change, error) rental.Change {
	return func(c rental.Change, err error) rental.Change {
		t.Helper()
		require.NoError(t, err)
		return c
	}
}

// refused checks that a decision is refused and changes nothing.
func refused(t *testing.T, what string, want telematics.Code, says string) func(rental.Change, error) {
	return func(c rental.Change, err error) {
		t.Helper()
		var refusal *telematics.Error
		if !errors.As(err, &refusal) || refusal.Code != want || refusal.Message != says || refusal.Retryable {
			t.Errorf("%s: error %v, want %s: %s", what, err, want, says)
		}
		if c.Booking != (rental.Booking{}) || c.Charges != nil || c.Amended != nil {
			t.Errorf("%s: the refusal came with a change: %+v", what, c)
		}
	}
}

// fieldIsWrong checks that a decision is refused because of a field.
func fieldIsWrong(t *testing.T, err error, field, message string) {
	t.Helper()
	var wrong *rental.FieldError
	if !errors.As(err, &wrong) || wrong.Field != field || wrong.Message != message || err.Error() != field+" "+message {
		t.Errorf("error %v, want %s %s", err, field, message)
	}
}

func TestBooking_VisibleToItsClientAndAgency(t *testing.T) {
	d := upcoming()
	for _, c := range []struct {
		actor telematics.Actor
		sees  bool
	}{
		{telematics.Actor{Role: telematics.Client, Agency: 1, Subject: "client-7"}, true},
		{telematics.Actor{Role: telematics.Client, Agency: 1, Subject: "client-8"}, false},
		// A client of another agency with the same name.
		{telematics.Actor{Role: telematics.Client, Agency: 2, Subject: "client-7"}, false},
		{telematics.Actor{Role: telematics.Client, Subject: "client-7"}, false},
		{telematics.Actor{Role: telematics.Admin, Subject: "a"}, true},
		{telematics.Actor{Role: telematics.Admin, Agency: 1, Subject: "a"}, true},
		{telematics.Actor{Role: telematics.Admin, Agency: 2, Subject: "a"}, false},
		{telematics.Actor{Agency: 1, Subject: "client-7"}, false},
	} {
		if d.VisibleTo(c.actor) != c.sees {
			t.Errorf("%+v sees the booking: %v, want the opposite", c.actor, !c.sees)
		}
	}
}
