package rental_test

import (
	"testing"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

func TestTheStartChargesTheRentalAndHoldsTheDeposit(t *testing.T) {
	for what, now := range map[string]time.Time{
		"on time": start, "a day early": start.Add(-24 * time.Hour), "late": start.Add(3 * time.Hour), "at the last moment": start.Add(8*time.Hour - 1),
	} {
		d := upcoming()
		change := do(t)(d.Begin(now))
		b := d.Booking
		b.State, b.ActualStart = rental.Active, now
		if change.Booking != b {
			t.Errorf("%s: %+v, want %+v", what, change.Booking, b)
		}
		charge := rental.Charge{Booking: 42, State: rental.Pending, Currency: "EUR", NextAttempt: now, Created: now}
		paid, held := charge, charge
		paid.Kind, paid.Amount = rental.StartCharge, 13_200
		held.Kind, held.Amount, held.Goal = rental.DepositCharge, 20_000, rental.Hold
		if len(change.Charges) != 2 || change.Charges[0] != paid || change.Charges[1] != held || len(change.Amended) > 0 {
			t.Errorf("%s: %+v", what, change.Charges)
		}
	}
}

func TestAZeroChargeIsPaidWithoutTheProcessor(t *testing.T) {
	d := upcoming()
	d.Price = rental.Price{Tariff: rental.Tariff{Currency: "EUR"}, Hours: 800}
	change := do(t)(d.Begin(start))
	if len(change.Charges) != 1 {
		t.Fatalf("%+v", change.Charges) // a deposit of nothing is none
	}
	c := change.Charges[0]
	if c.Kind != rental.StartCharge || c.State != rental.Paid || c.PaidAt != start || !c.NextAttempt.IsZero() || c.Amount != 0 || c.Settled != 0 {
		t.Errorf("%+v", c)
	}
	if p := after(d, change).Payment(); p.Status != rental.PaymentPaid || p.PaidAt != start {
		t.Errorf("%+v", p)
	}
}

func TestWhenABookingIsNotStarted(t *testing.T) {
	for what, c := range map[string]struct {
		now  time.Time
		with func(*rental.Dossier)
		code telematics.Code
		says string
	}{
		"active":       {start, func(d *rental.Dossier) { d.State = rental.Active }, rental.BookingStateConflict, "The booking is active; only an upcoming one can be started."},
		"completed":    {start, func(d *rental.Dossier) { d.State = rental.Completed }, rental.BookingStateConflict, "The booking is completed; only an upcoming one can be started."},
		"cancelled":    {start, func(d *rental.Dossier) { d.State = rental.Cancelled }, rental.BookingStateConflict, "The booking is cancelled; only an upcoming one can be started."},
		"over":         {start.Add(8 * time.Hour), func(*rental.Dossier) {}, rental.BookingStateConflict, "The booking's time is over; it cannot be started any more."},
		"overdue car":  {start, func(d *rental.Dossier) { d.InOther = true }, rental.VehicleNotAvailable, "The vehicle is still in the hands of another booking."},
		"other before": {start.Add(-time.Hour), func(d *rental.Dossier) { d.Before = true }, rental.VehicleNotAvailable, "The vehicle has another booking before this booking's start."},
		"maintenance":  {start, func(d *rental.Dossier) { d.Vehicle.Status = telematics.Maintenance }, rental.VehicleNotAvailable, "The vehicle is withdrawn (maintenance)."},
		"inactive":     {start, func(d *rental.Dossier) { d.Vehicle.Status = telematics.Inactive }, rental.VehicleNotAvailable, "The vehicle is withdrawn (inactive)."},
		"moved":        {start, func(d *rental.Dossier) { d.Vehicle.AgencyID = 2 }, rental.VehicleNotAvailable, "The vehicle belongs to another agency by now."},
		"no card":      {start, func(d *rental.Dossier) { d.Card = nil }, rental.MethodRequired, "The client has no payment method; at least one is required for bookings."},
	} {
		d := upcoming()
		c.with(&d)
		refused(t, what, c.code, c.says)(d.Begin(c.now))
	}
}
