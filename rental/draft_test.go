package rental_test

import (
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/rental"
	"motorpool/telematics"
)

func draft() (rental.Draft, rental.Facts) {
	return rental.Draft{
			Agency: 1, Client: "client-7", Vehicle: 5, Start: start, End: start.Add(8 * time.Hour), Pickup: 1,
			Dropoff: 2, Method: 3,
		},
		rental.Facts{
			Terms: rental.Terms{Currency: "EUR", Tax: 100_000}, Rate: &rental.Rate{Hourly: 1500, Deposit: 20_000},
			Vehicle: telematics.Vehicle{ID: 5, AgencyID: 1, Status: telematics.Available},
			Pickup:  &telematics.Station{ID: 1, AgencyID: 1}, Dropoff: &telematics.Station{ID: 2, AgencyID: 1},
			Client: 7, Methods: []rental.MethodID{3, 2},
		}
}

func TestBook_AtThePresentPrice(t *testing.T) {
	now := start.Add(-24 * time.Hour)
	d, f := draft()
	// The times have more digits than are stored.
	d.Start, d.End = start.In(time.FixedZone("", 7200)), d.End.Add(time.Millisecond-1)
	b, err := d.Book(now, f)
	want := rental.Booking{
		State: rental.Upcoming, Agency: 1, Client: 7, VehicleID: 5, PickupID: 1, DropoffID: 2, Start: start,
		End: start.Add(8 * time.Hour), Price: upcoming().Price, Method: 3, Created: now,
	}
	if err != nil || b != want {
		t.Errorf("booking %+v, %v; want %+v", b, err, want)
	}
}

func TestBook_Accepts(t *testing.T) {
	for what, with := range map[string]func(*rental.Draft, *rental.Facts){
		"unchanged":                       func(*rental.Draft, *rental.Facts) {},
		"start 5 minutes ago":             func(d *rental.Draft, _ *rental.Facts) { d.Start = start.Add(-rental.MaxLate) },
		"longest time":                    func(d *rental.Draft, _ *rental.Facts) { d.End = d.Start.Add(rental.MaxLength) },
		"one millisecond":                 func(d *rental.Draft, _ *rental.Facts) { d.End = d.Start.Add(time.Millisecond) },
		"return to the pickup station":    func(d *rental.Draft, f *rental.Facts) { d.Dropoff, f.Dropoff = 1, f.Pickup },
		"default card":                    func(d *rental.Draft, _ *rental.Facts) { d.Method = 0 },
		"rate of 0":                       func(_ *rental.Draft, f *rental.Facts) { f.Rate = &rental.Rate{} },
		"vehicle booked for another time": func(_ *rental.Draft, f *rental.Facts) { f.Vehicle.Status = telematics.Booked },
		"vehicle in use now":              func(_ *rental.Draft, f *rental.Facts) { f.Vehicle.Status = telematics.InUse },
		"currency without decimals":       func(_ *rental.Draft, f *rental.Facts) { f.Terms.Currency = "JPY" },
	} {
		d, f := draft()
		with(&d, &f)
		if b, err := d.Book(start, f); err != nil || b.State != rental.Upcoming || b.Price.Currency != f.Terms.Currency {
			t.Errorf("%s: booking %+v, %v; want it upcoming", what, b, err)
		}
	}
}

func TestBook_NamesTheInvalidField(t *testing.T) {
	for what, c := range map[string]struct {
		with           func(*rental.Draft, *rental.Facts)
		field, message string
	}{
		"start in the past": {func(d *rental.Draft, _ *rental.Facts) {
			d.Start = start.Add(-rental.MaxLate - time.Millisecond)
		}, "start_date", "must not be in the past"},
		"end at the start": {func(d *rental.Draft, _ *rental.Facts) { d.End = d.Start }, "end_date", "must be after start_date"},
		"shorter than a millisecond": {
			func(d *rental.Draft, _ *rental.Facts) { d.End = d.Start.Add(time.Millisecond - 1) }, "end_date", "must be after start_date",
		},
		"end before the start": {
			func(d *rental.Draft, _ *rental.Facts) { d.End = d.Start.Add(-time.Hour) }, "end_date", "must be after start_date",
		},
		"longer than 366 days": {func(d *rental.Draft, _ *rental.Facts) {
			d.End = d.Start.Add(rental.MaxLength + time.Millisecond)
		}, "end_date", "must be at most 366 days after start_date"},
		"end in the past": {func(d *rental.Draft, _ *rental.Facts) {
			d.Start, d.End = start.Add(-2*time.Minute), start
		}, "end_date", "must not be in the past"},
		"by its client, in which nothing is charged": {func(d *rental.Draft, _ *rental.Facts) {
			d.Self, d.End = true, d.Start.Add(time.Second)
		}, "end_date", "must be at least 36 s after start_date"},
		"until the year 9999": {func(d *rental.Draft, _ *rental.Facts) {
			d.End = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
		}, "end_date", "must be at most 366 days after start_date"},
		"too expensive": {func(_ *rental.Draft, f *rental.Facts) {
			f.Rate.Hourly = rental.MaxAmount
		}, "end_date", "makes the booking cost more than can be charged"},
		"unknown pickup": {
			func(_ *rental.Draft, f *rental.Facts) { f.Pickup = nil }, "pickup_station_id", "must be a station of the agency",
		},
		"pickup at another agency": {
			func(_ *rental.Draft, f *rental.Facts) { f.Pickup.AgencyID = 2 }, "pickup_station_id", "must be a station of the agency",
		},
		"unknown drop-off": {
			func(_ *rental.Draft, f *rental.Facts) { f.Dropoff = nil }, "dropoff_station_id", "must be a station of the agency",
		},
		"drop-off at another agency": {
			func(_ *rental.Draft, f *rental.Facts) { f.Dropoff.AgencyID = 2 }, "dropoff_station_id", "must be a station of the agency",
		},
	} {
		d, f := draft()
		c.with(&d, &f)
		b, err := d.Book(start, f)
		assert.Equal(t, b, (rental.Booking{}), "%s: refused with a booking", what)
		fieldIsWrong(t, err, c.field, c.message)
	}
}

func TestBook_RefusedByVehicleOrCard(t *testing.T) {
	const unknown = "There is no vehicle 5."
	for what, c := range map[string]struct {
		with func(*rental.Draft, *rental.Facts)
		code telematics.Code
		says string
	}{
		"unknown vehicle": {
			func(_ *rental.Draft, f *rental.Facts) { f.Vehicle = telematics.Vehicle{} }, telematics.VehicleNotFound, unknown,
		},
		"another agency's vehicle": {
			func(_ *rental.Draft, f *rental.Facts) { f.Vehicle.AgencyID = 2 }, telematics.VehicleNotFound, unknown,
		},
		"vehicle in maintenance": {func(_ *rental.Draft, f *rental.Facts) {
			f.Vehicle.Status = telematics.Maintenance
		}, rental.VehicleNotAvailable, "The vehicle is out of service (maintenance)."},
		"vehicle inactive": {func(_ *rental.Draft, f *rental.Facts) {
			f.Vehicle.Status = telematics.Inactive
		}, rental.VehicleNotAvailable, "The vehicle is out of service (inactive)."},
		"vehicle that stays shut": {
			func(_ *rental.Draft, f *rental.Facts) { f.NotOpened = true }, rental.VehicleNotAvailable,
			"Clients cannot open the vehicle: its unit checks no expiry, and the agency does not allow that. " +
				"Set best_effort_unlock of the agency to allow if you accept late openings, or choose another vehicle.",
		},
		"vehicle without a rate": {func(_ *rental.Draft, f *rental.Facts) {
			f.Rate = nil
		}, rental.VehicleNotAvailable, "The vehicle has no rate; it is not for rent."},
		"no card": {func(d *rental.Draft, f *rental.Facts) {
			d.Method, f.Methods = 0, nil
		}, rental.MethodRequired, "The client has no payment method; at least one is required for bookings."},
		"another client's card": {
			func(d *rental.Draft, _ *rental.Facts) { d.Method = 4 }, rental.MethodInvalid, "The client has no payment method 4.",
		},
	} {
		d, f := draft()
		c.with(&d, &f)
		b, err := d.Book(start, f)
		refused(t, what, c.code, c.says)(rental.Change{Booking: b}, err)
	}
}

func TestBook_RulesLimitWhatAClientBooksItself(t *testing.T) {
	rules := rental.Rules{MaxOpenBookings: 2, MaxUnpaid: 1, MinLength: 15}
	for what, c := range map[string]struct {
		with func(*rental.Draft, *rental.Facts)
		code telematics.Code
		says string
	}{
		"as many open bookings as allowed": {
			func(_ *rental.Draft, f *rental.Facts) { f.Open = 2 }, rental.BookingLimit,
			"There are 2 upcoming and active bookings already, the maximum; cancel or end one first.",
		},
		"a vehicle that was given up too often": {
			func(_ *rental.Draft, f *rental.Facts) { f.GivenUp = rental.MaxGivenUp }, rental.BookingLimit,
			"5 bookings of the vehicle within 24 hours were cancelled, the maximum; choose another vehicle, or try again tomorrow.",
		},
		"a payment owed": {
			func(_ *rental.Draft, f *rental.Facts) { f.Owed = 1 }, rental.UnpaidLimit,
			"A payment of another booking is owed, or waits for your confirmation. " +
				"Confirm it, or set another default payment method, then book.",
		},
		"a vehicle that clients cannot open": {
			func(_ *rental.Draft, f *rental.Facts) { f.NotOpened = true }, rental.VehicleNotAvailable,
			"Clients cannot open the vehicle; choose another one.",
		},
		"a vehicle that lacks a command of a rental": {
			func(_ *rental.Draft, f *rental.Facts) { f.Lacking = true }, rental.VehicleNotAvailable,
			"Clients can neither open nor return the vehicle without staff; choose another one.",
		},
	} {
		d, f := draft()
		d.Self, f.Terms.Rules = true, rules
		c.with(&d, &f)
		b, err := d.Book(start, f)
		refused(t, what, c.code, c.says)(rental.Change{Booking: b}, err)
	}
	d, f := draft()
	d.Self, f.Terms.Rules = true, rules
	d.End = d.Start.Add(rules.MinLength.Duration() - time.Millisecond)
	_, err := d.Book(start, f)
	fieldIsWrong(t, err, "end_date", "must be at least 15 min after start_date")
	d.End, f.Open, f.GivenUp = d.Start.Add(rules.MinLength.Duration()), 1, rental.MaxGivenUp-1
	if _, err := d.Book(start, f); err != nil {
		t.Errorf("at the limits: %v", err)
	}
	// They do not limit an administrator, and zero is no limit.
	d.End, d.Self, f.Open, f.Owed, f.GivenUp, f.Lacking = d.Start.Add(time.Minute), false, 9, 9, 9, true
	if _, err := d.Book(start, f); err != nil {
		t.Errorf("an administrator's booking: %v", err)
	}
	d.Self, f.Terms.Rules, f.Lacking = true, rental.Rules{}, false
	if _, err := d.Book(start, f); err != nil {
		t.Errorf("without rules: %v", err)
	}
}

func TestBook_KeepsABookingForATime(t *testing.T) {
	const later = rental.MaxLate + time.Millisecond
	for what, c := range map[string]struct {
		self         bool
		ahead        time.Duration
		hold, noShow rental.Minutes
		want         time.Time
	}{
		"begins now":                {true, 0, 15, 60, start.Add(15 * time.Minute)},
		"begins within 5 minutes":   {true, rental.MaxLate, 15, 60, start.Add(15 * time.Minute)},
		"ends before":               {true, 0, 600, 0, start.Add(8 * time.Hour)},
		"begins later":              {true, later, 15, 60, start.Add(later + time.Hour)},
		"later, ends before":        {true, later, 15, 600, start.Add(8 * time.Hour)},
		"later, until its end":      {true, later, 15, 0, time.Time{}},
		"the agency keeps for ever": {true, 0, 0, 60, time.Time{}},
		"an administrator's":        {false, 0, 15, 60, time.Time{}},
	} {
		d, f := draft()
		d.Self, d.Start, f.Terms.Rules.HoldFor, f.Terms.Rules.NoShow = c.self, start.Add(c.ahead), c.hold, c.noShow
		if b, err := d.Book(start, f); err != nil || !rental.KeptUntil(b).Equal(c.want) {
			t.Errorf("%s: kept until %v, %v; want %v", what, rental.KeptUntil(b), err, c.want)
		}
	}
}

func TestReference_CountsPerYear(t *testing.T) {
	for want, got := range map[string]string{
		"BK-2026-00001": rental.Reference(2026, 1), "BK-2026-99999": rental.Reference(2026, 99_999),
		"BK-2027-100000": rental.Reference(2027, 100_000),
	} {
		assert.Equal(t, got, want, "reference")
	}
}
