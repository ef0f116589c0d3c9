package rentals

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

// quote requests the price of a vehicle for anna, from an hour after noon to another.
func (w *rentalWorld) quote(vehicle telematics.VehicleID, from, to float64, change ...func(*rental.QuoteRequest)) (rental.Quote, error) {
	w.t.Helper()
	d := draft(vehicle, from, to)
	r := rental.QuoteRequest{Agency: 1, Client: "anna", Vehicle: vehicle, Start: d.Start, End: d.End, Now: noon}
	for _, c := range change {
		c(&r)
	}
	return w.here.Quote(w.t.Context(), r)
}

// byQuote is a booking with a quote alone.
func byQuote(q rental.Quote) rental.Draft {
	return rental.Draft{Self: true, Agency: 1, Client: "anna", QuoteID: q.ID}
}

func TestQuote_IsThePriceOfItsBooking(t *testing.T) {
	w := newRentalWorld(t)
	w.exec(`insert into tariffs (agency_id, category, version, tariff, currency)
		values (1, 'compact', 1, '{"category": "compact", "version": 1, "minute": 30, "kilometre": 20, "deposit": 5000}', 'EUR')`)
	q, err := w.quote(1, 0, 2)
	if err != nil || q.Booking.Price.Subtotal != 120*30 || q.Expires != noon.Add(10*time.Minute) || q.Booking.VehicleID != 1 {
		t.Fatalf("quote %+v, %v", q, err)
	}
	rated, err := w.quote(2, 0, 2, func(r *rental.QuoteRequest) { r.Vehicle = 2 })
	require.NoError(t, err)
	// The tariff is changed, and the start is more than 5 minutes past.
	w.exec(`insert into tariffs (agency_id, category, version, tariff, currency)
		values (1, 'compact', 2, '{"version": 2, "minute": 90}', 'EUR')`)
	w.exec(`update agencies set tax_ppm = 0`)
	made, err := w.reserve(byQuote(q), noon.Add(9*time.Minute))
	require.NoError(t, err)
	if made.Price != q.Booking.Price || *made.Plan != *q.Booking.Plan || made.VehicleID != 1 || made.Start != q.Booking.Start ||
		made.End != q.Booking.End || made.Created != noon.Add(9*time.Minute) || made.ReservedUntil != noon.Add(24*time.Minute) {
		t.Errorf("booking %+v of quote %+v", made.Booking, q)
	}
	if _, err := w.reserve(byQuote(rated), noon.Add(10*time.Minute)); codeOf(err) != rental.QuoteExpired {
		t.Errorf("after 10 minutes: %v, want %s", err, rental.QuoteExpired)
	}
}

func TestQuote_IsOfItsClientVehicleAndTime(t *testing.T) {
	w := newRentalWorld(t)
	q, err := w.quote(1, 0, 2)
	require.NoError(t, err)
	for field, change := range map[string]func(*rental.Draft){
		"quote_id":   func(d *rental.Draft) { d.Client = "ben" },
		"vehicle_id": func(d *rental.Draft) { d.Vehicle = 2 },
		"start_date": func(d *rental.Draft) { d.Start = noon.Add(time.Minute) },
		"end_date":   func(d *rental.Draft) { d.End = noon.Add(time.Hour) },
	} {
		d := byQuote(q)
		change(&d)
		_, err := w.reserve(d, noon)
		var wrong *rental.FieldError
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%v, want an error of %s", err, field)
		}
	}
	_, err = w.reserve(byQuote(rental.Quote{ID: uuid.New()}), noon)
	var wrong *rental.FieldError
	if !errors.As(err, &wrong) || wrong.Field != "quote_id" {
		t.Errorf("an unknown quote: %v, want an error of quote_id", err)
	}
	d := byQuote(q)
	// The times have more digits than are stored.
	d.Vehicle, d.Start, d.End = 1, noon.Add(time.Microsecond).In(time.FixedZone("", 3600)), noon.Add(2*time.Hour+time.Microsecond)
	if _, err := w.reserve(d, noon); err != nil {
		t.Errorf("with the same fields: %v", err)
	}
}

// What a quote has agreed does not make a booking that is not possible.
func TestQuote_OfWhatHasChangedSince(t *testing.T) {
	w := newRentalWorld(t)
	w.exec(`insert into rental_rules (agency_id, rules) values (1, '{"max_open_bookings": 0}')`)
	for i, c := range []struct {
		what    string
		vehicle telematics.VehicleID
		change  func(*rentalWorld)
		want    telematics.Code
	}{
		{"nothing", 1, func(*rentalWorld) {}, ""},
		{"the vehicle is withdrawn", 2, func(w *rentalWorld) { w.exec(`update vehicles set status = 'inactive' where id = 2`) },
			rental.VehicleNotAvailable},
		{"the vehicle has moved", 3, func(w *rentalWorld) { w.exec(`update vehicles set agency_id = 2 where id = 3`) },
			telematics.VehicleNotFound},
		{"the vehicle is booked", 4, func(w *rentalWorld) { w.book(draft(4, 9.5, 10)) }, rental.VehicleNotAvailable},
		{"another currency is in force", 1, func(w *rentalWorld) { w.exec(`update agencies set currency = 'CHF'`) }, rental.QuoteExpired},
		{"the card was removed", 1, func(w *rentalWorld) {
			w.exec(`with cleared as (update clients set default_payment_method_id = null) delete from payment_methods`)
		}, rental.MethodRequired},
	} {
		q, err := w.quote(c.vehicle, float64(3*i), float64(3*i+2))
		require.NoError(t, err, "%s", c.what)
		c.change(w)
		if _, err := w.reserve(byQuote(q), noon.Add(10*time.Minute-time.Millisecond)); codeOf(err) != c.want || c.want == "" && err != nil {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
		if _, err := w.reserve(byQuote(q), noon); c.want == "" && codeOf(err) != rental.VehicleNotAvailable {
			t.Errorf("used twice: %v, want %s", err, rental.VehicleNotAvailable)
		}
	}
}

func TestQuote_ExpiresWithItsTime(t *testing.T) {
	w := newRentalWorld(t)
	w.exec(`insert into rental_rules (agency_id, rules) values (1, '{"min_length_minutes": 1}')`)
	q, err := w.quote(1, 0, 0.1)
	if err != nil || !q.Expires.Equal(q.Booking.End) {
		t.Fatalf("quote %+v, %v; want it to expire at its end", q, err)
	}
	if _, err := w.reserve(byQuote(q), q.Booking.End); codeOf(err) != rental.QuoteExpired {
		t.Errorf("at its end: %v, want %s", err, rental.QuoteExpired)
	}
}

// newMixedWorld returns a world in which vehicle 1 is booked, 2 withdrawn, and 3 not for rent.
func newMixedWorld(t *testing.T) *rentalWorld {
	t.Helper()
	w := newRentalWorld(t)
	w.book(draft(1, 1, 2))
	w.exec(`update vehicles set status = 'inactive' where id = 2`)
	w.exec(`update vehicles set hourly_rate = null where id = 3`)
	return w
}

func TestQuote_OfAVehicleThatCanBeBooked(t *testing.T) {
	w := newMixedWorld(t)
	for what, c := range map[string]struct {
		vehicle telematics.VehicleID
		want    telematics.Code
	}{
		"booked": {1, rental.VehicleNotAvailable}, "withdrawn": {2, rental.VehicleNotAvailable},
		"not for rent": {3, rental.VehicleNotAvailable}, "unknown": {99, telematics.VehicleNotFound}, "free": {4, ""},
	} {
		if _, err := w.quote(c.vehicle, 0, 2); codeOf(err) != c.want || c.want == "" && err != nil {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
	for field, change := range map[string]func(*rental.QuoteRequest){
		"start_date": func(r *rental.QuoteRequest) { r.Start = noon.Add(-time.Hour) },
		"end_date":   func(r *rental.QuoteRequest) { r.End = noon.Add(time.Minute) },
	} {
		_, err := w.quote(4, 0, 2, change)
		var wrong *rental.FieldError
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%v, want an error of %s", err, field)
		}
	}
	assert.Equal(t, w.count(`select count(*) from quotes`), 1, "quotes are stored")
}

func TestFindFree_HasThoseThatStaffCanBook(t *testing.T) {
	w := newMixedWorld(t)
	for what, c := range map[string]struct {
		agency   telematics.AgencyID
		from, to float64
		want     string
	}{
		"while one is booked": {1, 0, 2, "[4]"}, "after that": {1, 2, 3, "[1 4]"}, "of all agencies": {0, 2, 3, "[1 4]"},
		"of another agency": {2, 2, 3, "[]"},
	} {
		d := draft(4, c.from, c.to)
		q, err := w.quote(4, c.from, c.to)
		require.NoError(t, err)
		found, err := w.here.FindFree(t.Context(), c.agency, rental.Span{From: d.Start, To: d.End}, noon)
		var ids []telematics.VehicleID
		for _, b := range found {
			if ids = append(ids, b.VehicleID); b.VehicleID == 4 && b.Price != q.Booking.Price {
				t.Errorf("%s: price %+v, want %+v", what, b.Price, q.Booking.Price)
			}
		}
		if got := fmt.Sprint(ids); err != nil || got != c.want {
			t.Errorf("%s: %s, %v, want %s", what, got, err, c.want)
		}
	}
}

func TestQuote_OfACategoryAtAStation(t *testing.T) {
	w := newOfferWorld(t)
	w.exec(`update vehicles set category = 'van' where id in (2, 3)`)
	atStation := func(r *rental.QuoteRequest) { r.Vehicle, r.Category, r.Station = 0, "van", 1 }
	for _, want := range []telematics.VehicleID{2, 3} {
		q, err := w.quote(0, 0, 2, atStation)
		if err != nil || q.Booking.VehicleID != want {
			t.Fatalf("quote %+v, %v; want one of vehicle %d", q, err, want)
		}
		_, err = w.reserve(byQuote(q), noon)
		require.NoError(t, err)
	}
	if _, err := w.quote(0, 0, 2, atStation); codeOf(err) != rental.VehicleNotAvailable {
		t.Errorf("without a free van: %v, want %s", err, rental.VehicleNotAvailable)
	}
	_, err := w.quote(0, 2, 1, atStation)
	var wrong *rental.FieldError
	if !errors.As(err, &wrong) || wrong.Field != "end_date" {
		t.Errorf("an end before the start: %v, want an error of end_date", err)
	}
}

func TestForgetQuotes_LongAfterTheyHaveExpired(t *testing.T) {
	w := newRentalWorld(t)
	for range 2 {
		_, err := w.quote(1, 0, 2)
		require.NoError(t, err)
	}
	w.exec(`update quotes set expires_at = now() - interval '23 hours'`)
	w.exec(`update quotes set expires_at = now() - interval '25 hours' where id = (select min(id::text)::uuid from quotes)`)
	if more, err := ForgetQuotes(t.Context(), w.here.DB, 10); more || err != nil {
		t.Errorf("ForgetQuotes = %v, %v; want no more", more, err)
	}
	assert.Equal(t, w.count(`select count(*) from quotes`), 1, "quotes are left")
}
