package rental_test

import (
	"errors"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/rental"
	"motorpool/telematics"
)

func TestBegin_ChargesTheRentalAndHoldsTheDeposit(t *testing.T) {
	for what, now := range map[string]time.Time{
		"on time": start, "a day early": start.Add(-24 * time.Hour), "late": start.Add(3 * time.Hour),
		"at the last moment": start.Add(8*time.Hour - 1),
	} {
		d := upcoming()
		change := do(t)(d.Begin(now))
		b := d.Booking
		b.State, b.ActualStart = rental.Active, now
		assert.Equal(t, change.Booking, b, "%s: booking", what)
		charge := rental.Charge{Booking: 42, State: rental.Pending, Currency: "EUR", NextAttempt: now, Created: now}
		paid, held := charge, charge
		paid.Kind, paid.Amount = rental.StartCharge, 13_200
		held.Kind, held.Amount, held.Goal = rental.DepositCharge, 20_000, rental.Hold
		if len(change.Charges) != 2 || change.Charges[0] != paid || change.Charges[1] != held || len(change.Amended) > 0 {
			t.Errorf("%s: charges %+v, want the rental and the deposit", what, change.Charges)
		}
	}
}

func TestBegin_ZeroChargeIsPaidWithoutTheProcessor(t *testing.T) {
	d := upcoming()
	d.Price = rental.Price{Tariff: rental.Tariff{Currency: "EUR"}, Hours: 800}
	change := do(t)(d.Begin(start))
	if len(change.Charges) != 1 {
		t.Fatalf("charges %+v, want the start's alone: a deposit of 0 makes no charge", change.Charges)
	}
	c := change.Charges[0]
	if c.Kind != rental.StartCharge || c.State != rental.Paid || c.PaidAt != start || !c.NextAttempt.IsZero() || c.Amount != 0 ||
		c.Settled != 0 {
		t.Errorf("charge %+v, want it paid at the start", c)
	}
	if p := after(d, change).Payment(); p.Status != rental.PaymentPaid || p.PaidAt != start {
		t.Errorf("payment %+v, want it paid at the start", p)
	}
}

func TestBegin_RefusedByStateTimeVehicleOrCard(t *testing.T) {
	for what, c := range map[string]struct {
		now  time.Time
		with func(*rental.BookingDetails)
		code telematics.Code
		says string
	}{
		"active": {start, func(d *rental.BookingDetails) {
			d.State = rental.Active
		}, rental.BookingStateConflict, "The booking is active; only an upcoming one can be started."},
		"completed": {start, func(d *rental.BookingDetails) {
			d.State = rental.Completed
		}, rental.BookingStateConflict, "The booking is completed; only an upcoming one can be started."},
		"cancelled": {start, func(d *rental.BookingDetails) {
			d.State = rental.Cancelled
		}, rental.BookingStateConflict, "The booking is cancelled; only an upcoming one can be started."},
		"over": {
			start.Add(8 * time.Hour), func(*rental.BookingDetails) {}, rental.BookingStateConflict,
			"The booking's end has passed; it can no longer be started.",
		},
		"previous booking overdue": {start, func(d *rental.BookingDetails) {
			d.InOther = true
		}, rental.VehicleNotAvailable, "The vehicle is still in use by another booking."},
		"another booking comes first": {start.Add(-time.Hour), func(d *rental.BookingDetails) {
			d.Before = true
		}, rental.VehicleNotAvailable, "The vehicle has another booking before this booking's start."},
		"vehicle in maintenance": {start, func(d *rental.BookingDetails) {
			d.Vehicle.Status = telematics.Maintenance
		}, rental.VehicleNotAvailable, "The vehicle is out of service (maintenance)."},
		"vehicle inactive": {start, func(d *rental.BookingDetails) {
			d.Vehicle.Status = telematics.Inactive
		}, rental.VehicleNotAvailable, "The vehicle is out of service (inactive)."},
		"vehicle of another agency": {start, func(d *rental.BookingDetails) {
			d.Vehicle.AgencyID = 2
		}, rental.VehicleNotAvailable, "The vehicle belongs to another agency by now."},
		"no card": {start, func(d *rental.BookingDetails) {
			d.Card = nil
		}, rental.MethodRequired, "The client has no payment method; at least one is required for bookings."},
	} {
		d := upcoming()
		c.with(&d)
		refused(t, what, c.code, c.says)(d.Begin(c.now))
	}
}

func TestExtend_PossibleByStateTimeNextBookingAndPayment(t *testing.T) {
	type details = rental.BookingDetails
	charged := func(kind rental.ChargeKind, state rental.ChargeState, goal rental.Goal) func(*details) {
		return func(d *details) { d.Charges = append(d.Charges, rental.Charge{Kind: kind, State: state, Goal: goal}) }
	}
	const owed = "A payment of the booking failed; set another default payment method first."
	const waits = "The payment of the last extension waits for your confirmation, or is tried again."
	const soon = "The vehicle is booked again too soon after the booking's end."
	end := start.Add(8 * time.Hour)
	nextAfter := func(pause time.Duration) func(*details) { return func(d *details) { d.Next = end.Add(pause) } }
	for what, c := range map[string]struct {
		now  time.Time
		with func(*details)
		why  string
	}{
		"upcoming": {start.Add(-time.Hour), func(*details) {}, ""},
		"active":   {start, func(d *details) { d.State = rental.Active }, ""},
		"upcoming, moved": {
			start.Add(-time.Hour), func(d *details) { d.Vehicle.AgencyID = 2 }, "The vehicle belongs to another agency by now.",
		},
		"active, moved": {
			start, func(d *details) { d.State, d.Vehicle.AgencyID = rental.Active, 2 }, "The vehicle belongs to another agency by now.",
		},
		"completed": {start, func(d *details) {
			d.State = rental.Completed
		}, "The booking is completed; only an upcoming or active one can be extended."},
		"cancelled": {start, func(d *details) {
			d.State = rental.Cancelled
		}, "The booking is cancelled; only an upcoming or active one can be extended."},
		"just before its end": {end.Add(-1), func(d *details) { d.State = rental.Active }, ""},
		"at its end": {
			end, func(d *details) { d.State = rental.Active }, "The booking's end has passed; it can no longer be extended.",
		},
		"overdue": {
			end.Add(time.Hour), func(d *details) { d.State = rental.Active }, "The booking's end has passed; it can no longer be extended.",
		},
		"extended twice":       {start, func(d *details) { d.Extensions = 2 }, ""},
		"extended three times": {start, func(d *details) { d.Extensions = 3 }, "The booking was extended 3 times already."},
		// An extension takes at least half an hour, and the buffer follows it.
		"next in 45 min":                  {start, nextAfter(45 * time.Minute), ""},
		"next in under 45 min":            {start, nextAfter(45*time.Minute - 1), soon},
		"next immediately":                {start, nextAfter(0), soon},
		"no buffer, next in 30 min":       {start, func(d *details) { d.Terms.Buffer = 0; d.Next = end.Add(30 * time.Minute) }, ""},
		"no buffer, next in under 30 min": {start, func(d *details) { d.Terms.Buffer = 0; d.Next = end.Add(30*time.Minute - 1) }, soon},
		"rental paid":                     {start, charged(rental.StartCharge, rental.Paid, ""), ""},
		"rental pending":                  {start, charged(rental.StartCharge, rental.Pending, ""), ""},
		"rental unknown":                  {start, charged(rental.StartCharge, rental.Unknown, ""), ""},
		"owner must confirm":              {start, charged(rental.StartCharge, rental.RequiresAction, ""), ""},
		"rental declined":                 {start, charged(rental.StartCharge, rental.Declined, ""), owed},
		"rental failed":                   {start, charged(rental.StartCharge, rental.Failed, ""), owed},
		"deposit declined":                {start, charged(rental.DepositCharge, rental.Declined, rental.Hold), owed},
		"extension failed":                {start, charged(rental.ExtensionCharge, rental.Failed, ""), owed},
		"extension's owner must confirm": {start, func(d *details) {
			charged(rental.ExtensionCharge, rental.RequiresAction, "")(d)
			d.Charges[0].Added = time.Hour
		}, waits},
		"extension declined, tried again": {start, func(d *details) {
			charged(rental.ExtensionCharge, rental.Unknown, "")(d)
			d.Charges[0].Added, d.Charges[0].DeclineCode = time.Hour, "insufficient_funds"
		}, waits},
		"fee declined":           {start, charged(rental.FeeCharge, rental.Declined, ""), owed},
		"refund failed":          {start, charged(rental.RefundCharge, rental.Failed, ""), ""},
		"deposit given up":       {start, charged(rental.DepositCharge, rental.Declined, rental.Release), ""},
		"failed, and paid since": {start, charged(rental.StartCharge, rental.Paid, ""), ""},
	} {
		d := upcoming()
		c.with(&d)
		assert.Equal(t, d.CanExtend(c.now), (c.why == ""), "%s: can be extended", what)
		if c.why != "" {
			refused(t, what, rental.BookingNotExtendable, c.why)(d.Extend(c.now, end.Add(time.Hour), telematics.Client))
			continue
		}
		// Where an extension is possible at all, half an hour is.
		if change := do(t)(d.Extend(c.now, end.Add(30*time.Minute), telematics.Client)); change.Booking.End != end.Add(30*time.Minute) ||
			change.Booking.Extensions != d.Extensions+1 || d.State == rental.Upcoming && len(change.Charges) > 0 {
			t.Errorf("%s: change %+v, want the end half an hour later, and an upcoming one not charged", what, change)
		}
	}
}

func TestExtend_AnActiveBookingIsChargedImmediately(t *testing.T) {
	d := active(t)
	now, end := start.Add(time.Hour), start.Add(10*time.Hour)
	change := do(t)(d.Extend(now, end, telematics.Client))
	if len(change.Charges) != 1 || len(change.Amended) > 0 {
		t.Fatalf("change %+v, want one new charge", change)
	}
	want := rental.Charge{
		Booking: 42, Kind: rental.ExtensionCharge, State: rental.Pending, Currency: "EUR", Amount: 3300,
		Added: 2 * time.Hour, NextAttempt: now, Created: now,
	}
	if got := change.Charges[0]; got != want { // 165 - 132
		t.Errorf("charge %+v, want %+v", got, want)
	}
	b := change.Booking
	if b.End != end || b.Extensions != 1 || b.Price.Hours != 1000 || b.Price.Rental() != 16_500 || b.Price.Deposit != 20_000 ||
		b.State != rental.Active {
		t.Errorf("booking %+v, want 10 hours at the extended price", b)
	}
	if change.Details["end_date"] != "2026-01-02T20:00:00Z" {
		t.Errorf("the audit details are %v, want the new end", change.Details)
	}
}

func TestExtend_StaffLate_TheClientKeepsTheVehicle(t *testing.T) {
	d := active(t)
	now := d.End.Add(2 * time.Hour)
	d.Next = now.Add(2 * time.Hour)
	change := do(t)(d.Extend(now, now.Add(time.Hour), telematics.Admin))
	if change.Booking.End != now.Add(time.Hour) || len(change.Charges) != 1 || change.Charges[0].Amount != 3*1650 ||
		change.Charges[0].Added != 3*time.Hour {
		t.Errorf("change %+v, want three hours more, which are charged", change)
	}
	refused(t, "to the past", rental.BookingNotExtendable, "end_date must be in the future.")(d.Extend(now, now, telematics.Admin))
	refused(t, "into the next booking", rental.VehicleNotAvailable, "The vehicle has another booking before that end.")(
		d.Extend(now, d.Next, telematics.Admin),
	)
	d.Next = d.End.Add(time.Hour) // its client waits
	refused(t, "past one that waits", rental.VehicleNotAvailable, "The vehicle has another booking before that end.")(
		d.Extend(now, now.Add(time.Hour), telematics.Admin),
	)
	up := upcoming()
	refused(t, "never started", rental.BookingNotExtendable, "The booking's end has passed; it can no longer be extended.")(
		up.Extend(now, now.Add(time.Hour), telematics.Admin),
	)
}

// Extensions that are each too short to cost anything add up to a drive that costs nothing.
func TestExtend_ByLessThanWhatIsChargedIsRefused(t *testing.T) {
	d := active(t)
	_, err := d.Extend(start, d.End.Add(time.Second), telematics.Client)
	if refused := new(telematics.Error); !errors.As(err, &refused) || refused.Code != rental.BookingNotExtendable {
		t.Fatalf("an extension by a second: %v, want it refused", err)
	}
	change := do(t)(d.Extend(start, d.End.Add(rental.MinLength), telematics.Client))
	if len(change.Charges) != 1 || change.Charges[0].Amount == 0 {
		t.Errorf("an extension by %v: charges %+v, want one that costs something", rental.MinLength, change.Charges)
	}
}

// The agency's rules have changed since a start that was taken back.
func TestExtend_IsNotChargedIfOnlyAnEarlierStartWas(t *testing.T) {
	d := active(t)
	d.Plan = &rental.Plan{Hour: 1_500}
	d.Charges[0].Goal = rental.Release
	if c := do(t)(d.Extend(start, d.End.Add(time.Hour), telematics.Client)); len(c.Charges) != 0 {
		t.Errorf("charged %+v, want nothing until the end", c.Charges)
	}
}

func TestTakeBack_RestoresEndAndPrice(t *testing.T) {
	d := active(t)
	before := d.Booking
	d = after(d, do(t)(d.Extend(start, d.End.Add(time.Hour), telematics.Client)))
	once := d.Booking
	first := d.Charges[len(d.Charges)-1]
	d = after(d, do(t)(d.Extend(start, d.End.Add(2*time.Hour), telematics.Client)))
	second := d.Charges[len(d.Charges)-1]
	if c, err := d.TakeBack(first.ID); err != nil || c.Booking != d.Booking {
		t.Errorf("the first of two extensions: %+v, %v; want no change", c, err)
	}
	for range 3 { // numbers count each kind
		d = after(d, do(t)(d.Fine(start, rental.Fee{Kind: "cleaning", Amount: 100, Reason: "sand"})))
	}
	c, err := d.TakeBack(second.ID)
	b := c.Booking
	if err != nil || b != once {
		t.Fatalf("%+v, %v; want the booking before", b, err)
	}
	d.Booking, d.Charges[3].State = b, rental.Released
	c, err = d.TakeBack(first.ID)
	if b = c.Booking; err != nil || b != before {
		t.Errorf("%+v, %v; want the booking as agreed at first", b, err)
	}
}

func TestExtend_ToThePresentEndChangesNothing(t *testing.T) {
	for _, state := range rental.BookingStates {
		d := upcoming()
		d.State, d.Extensions = state, rental.MaxExtensions // even where no extension is left
		if !state.IsLive() {
			refused(
				t, string(state), rental.BookingNotExtendable,
				"The booking is "+string(state)+"; only an upcoming or active one can be extended.",
			)(d.Extend(start, d.End, telematics.Client))
			continue
		}
		// The caller's time is in another zone and has more digits than are stored.
		same := d.End.In(time.FixedZone("", 3600)).Add(time.Millisecond - 1)
		c := do(t)(d.Extend(start, same, telematics.Client))
		if c.Booking != d.Booking || len(c.Charges)+len(c.Amended) > 0 || c.Details != nil {
			t.Errorf("%s: change %+v, want none", state, c)
		}
	}
}

func TestExtend_UpToTheNextBookingAndTheLimits(t *testing.T) {
	d := upcoming()
	d.Next = d.End.Add(3 * time.Hour)
	refused(
		t, "shorter", rental.BookingNotExtendable,
		"end_date must be after the current one; bookings cannot be shortened.",
	)(d.Extend(start, d.End.Add(-time.Millisecond), telematics.Client))
	refused(t, "into the buffer", rental.VehicleNotAvailable, "The vehicle has another booking before that end.")(
		d.Extend(start, d.Next.Add(-15*time.Minute+time.Millisecond), telematics.Client),
	)
	if c := do(t)(d.Extend(start, d.Next.Add(-15*time.Minute), telematics.Client)); c.Booking.End != d.Next.Add(-15*time.Minute) {
		t.Errorf("up to the buffer: booking %+v, want that end", c.Booking)
	}
	d.Next = time.Time{}
	refused(t, "longer than 366 days", rental.BookingNotExtendable, "A booking lasts at most 366 days.")(
		d.Extend(start, start.Add(rental.MaxLength+time.Millisecond), telematics.Client),
	)
	refused(t, "until the year 9999", rental.BookingNotExtendable, "A booking lasts at most 366 days.")(
		d.Extend(start, time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), telematics.Client),
	)
	if c := do(t)(d.Extend(start, start.Add(rental.MaxLength), telematics.Client)); c.Booking.Price.Hours != 878_400 {
		t.Errorf("to the longest time: booking %+v, want 878400 hundredths of an hour", c.Booking)
	}
	d.Price.HourlyRate = rental.MaxAmount / 10
	refused(t, "too expensive", rental.BookingNotExtendable, "The booking would cost more than can be charged.")(
		d.Extend(start, start.Add(12*time.Hour), telematics.Client),
	)
}

// After the end no deposit stays held or becomes held, whatever its state.
func TestFinish_ReleasesTheDepositUnlessFinal(t *testing.T) {
	for state, release := range map[rental.ChargeState]bool{
		rental.Pending: true, rental.Unknown: true, rental.RequiresAction: true, rental.Declined: true, rental.Failed: true,
		rental.Authorized: true,
		rental.Released:   false, rental.Captured: false, // final already
	} {
		d := active(t)
		d.Charges[1].State = state
		if c := do(t)(d.Finish(start.Add(time.Hour))); (len(c.Amended) == 1) != release {
			t.Errorf("deposit %s: amended %+v", state, c.Amended)
		}
		// It stays for a payment without a result, if it can pay.
		d.Charges = append(d.Charges, rental.Charge{ID: rental.ChargeID{1}, Kind: rental.ExtensionCharge, State: rental.Unknown})
		stays := state == rental.Pending || state == rental.Unknown || state == rental.Authorized
		if c := do(t)(d.Finish(start.Add(time.Hour))); (len(c.Amended) == 1) != (release && !stays) {
			t.Errorf("deposit %s, and an extension without a result: amended %+v", state, c.Amended)
		}
	}
	d := active(t)
	d = after(d, do(t)(d.CaptureDeposit(start, 5_000, "scratch")))
	if c := do(t)(d.Finish(start.Add(time.Hour))); len(c.Amended) > 0 {
		t.Errorf("a capture is pending: amended %+v, want none", c.Amended)
	}
	d.Charges = nil
	if c := do(t)(d.Finish(start.Add(time.Hour))); len(c.Amended) > 0 {
		t.Errorf("without a deposit: amended %+v, want none", c.Amended)
	}
}

// A client who has reserved a vehicle for now, and does not want it after all, gives it back: no
// agency's cutoff forbids that, since the start is over already.
func TestCancel_OfAReservationThatWasNotStarted(t *testing.T) {
	d := upcoming()
	d.Terms.CancelCutoff = time.Hour
	d.ReservedUntil = d.Start.Add(15 * time.Minute)
	now := d.Start.Add(time.Minute)
	d.Created = d.Start.Add(-24 * time.Hour)
	if d.CanCancel(now) {
		t.Error("one that was made a day before can be cancelled after the cutoff")
	}
	d.Created = d.Start
	if !d.CanCancel(now) {
		t.Error("a reservation cannot be cancelled")
	}
	kept := d // by staff
	if kept.ReservedUntil = (time.Time{}); kept.CanCancel(now) {
		t.Error("one that does not lapse can be cancelled after the cutoff")
	}
	assert.Equal(t, do(t)(d.Cancel(now, telematics.Client)).Booking.State, rental.Cancelled, "the booking")
	if d.State = rental.Active; d.CanCancel(now) {
		t.Error("an active booking can be cancelled")
	}
}

func TestCancel_UntilTheCutoff(t *testing.T) {
	const late = "The booking starts in less than 1 h; it can no longer be cancelled."
	const over = "The booking should have started; it can no longer be cancelled."
	for _, c := range []struct {
		state  rental.BookingState
		cutoff time.Duration
		now    time.Time
		why    string // empty: it can be cancelled
	}{
		{rental.Upcoming, time.Hour, start.Add(-48 * time.Hour), ""},
		{rental.Upcoming, time.Hour, start.Add(-time.Hour - 1), ""},
		{rental.Upcoming, time.Hour, start.Add(-time.Hour), late},
		{rental.Upcoming, time.Hour, start.Add(-1), late},
		{rental.Upcoming, time.Hour, start, over},
		{rental.Upcoming, 0, start.Add(-1), ""},
		{rental.Upcoming, 0, start, over},
		{rental.Upcoming, 0, start.Add(100 * time.Hour), over},
		{rental.Active, 0, start.Add(-time.Hour), "The booking is active; only an upcoming one can be cancelled."},
		{rental.Completed, 0, start.Add(-time.Hour), "The booking is completed; only an upcoming one can be cancelled."},
		{rental.Cancelled, 0, start.Add(-time.Hour), "The booking is cancelled; only an upcoming one can be cancelled."},
	} {
		d := upcoming()
		d.State, d.Terms.CancelCutoff = c.state, c.cutoff
		what := string(c.state) + " at " + c.now.Sub(start).String()
		assert.Equal(t, d.CanCancel(c.now), (c.why == ""), "%s: can be cancelled", what)
		if _, err := d.Cancel(c.now, telematics.Admin); (err == nil) != (c.state == rental.Upcoming) {
			t.Errorf("%s: staff cancel it, after the cutoff, too: %v", what, err)
		}
		if c.why != "" {
			refused(t, what, rental.BookingNotCancellable, c.why)(d.Cancel(c.now, telematics.Client))
			continue
		}
		change := do(t)(d.Cancel(c.now, telematics.Client))
		want := d.Booking
		want.State = rental.Cancelled
		if change.Booking != want || len(change.Charges)+len(change.Amended) > 0 {
			t.Errorf("%s: change %+v, want the booking cancelled and no charge", what, change)
		}
	}
}

func TestMove_ToAFreeVehicleOfTheAgency(t *testing.T) {
	to := func(change func(*rental.BookingDetails)) rental.BookingDetails {
		d := upcoming()
		d.MoveTo = rental.Facts{
			Vehicle: telematics.Vehicle{ID: 6, AgencyID: 1, Status: telematics.Available}, Rate: &rental.Rate{Hourly: 9_900},
		}
		change(&d)
		return d
	}
	d := to(func(d *rental.BookingDetails) { d.ReservedUntil = d.Start.Add(time.Hour) })
	want := d.Booking
	want.VehicleID, want.ReservedUntil = 6, time.Time{} // its client may have waited for vehicle 5
	if change := do(t)(rental.Move(d)); change.Booking != want || change.Details["from_vehicle_id"] != int64(5) {
		t.Errorf("%+v, want vehicle 6 and the same price", change)
	}
	d.Created = d.Start // it is kept for its client for a time, whatever the vehicle
	assert.Equal(t, do(t)(rental.Move(d)).Booking.ReservedUntil, d.ReservedUntil, "of one for now, reserved until")
	d = to(func(d *rental.BookingDetails) { d.MoveTo.Vehicle.ID, d.MoveTo.Taken = 5, true })
	if change := do(t)(rental.Move(d)); change.Booking != d.Booking {
		t.Errorf("to its own vehicle: %+v", change)
	}
	for says, c := range map[string]struct {
		code   telematics.Code
		change func(*rental.BookingDetails)
	}{
		"The booking is active; only an upcoming one can move to another vehicle.": {
			rental.BookingStateConflict, func(d *rental.BookingDetails) { d.State = rental.Active },
		},
		"A payment of the booking was tried: cancel it, and make another one.": {
			rental.BookingStateConflict, func(d *rental.BookingDetails) { d.Charges = []rental.Charge{{State: rental.Released}} },
		},
		"The vehicle is out of service (inactive).": {
			rental.VehicleNotAvailable, func(d *rental.BookingDetails) { d.MoveTo.Vehicle.Status = telematics.Inactive },
		},
		rental.Taken().Message: {rental.VehicleNotAvailable, func(d *rental.BookingDetails) { d.MoveTo.Taken = true }},
		"Clients can neither open nor return the vehicle without staff; choose another one.": {
			rental.VehicleNotAvailable, func(d *rental.BookingDetails) { d.MoveTo.Lacking = true },
		},
		"There is no vehicle 6.": {
			telematics.VehicleNotFound, func(d *rental.BookingDetails) { d.MoveTo.Vehicle.AgencyID = 2 },
		},
	} {
		refused(t, says, c.code, says)(rental.Move(to(c.change)))
	}
}
