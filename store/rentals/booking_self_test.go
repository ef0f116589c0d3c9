package rentals

import (
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

// ownDraft is a booking that anna makes herself, of a vehicle and without stations.
func ownDraft(vehicle telematics.VehicleID, from, to float64) rental.Draft {
	d := draft(vehicle, from, to)
	d.Self, d.Pickup, d.Dropoff = true, 0, 0
	return d
}

// reserve makes a booking as its client, at a time.
func (w *rentalWorld) reserve(d rental.Draft, now time.Time) (rental.BookingDetails, error) {
	w.t.Helper()
	client := telematics.Actor{Subject: d.Client, Role: telematics.Client, Agency: d.Agency}
	made, _, err := w.here.OpenBooking(w.t.Context(), d, asks(client, rental.BookingCreate, 0, now))
	return made, err
}

// places stores the position of a vehicle.
func (w *rentalWorld) places(id telematics.VehicleID, latitude, longitude float64) {
	w.t.Helper()
	w.exec(`
		insert into snapshots (vehicle_id, fields) values ($1, jsonb_build_object(
			'location.latitude', jsonb_build_object('v', $2::float8), 'location.longitude', jsonb_build_object('v', $3::float8)))
		on conflict (vehicle_id) do update set fields = excluded.fields`, id, latitude, longitude)
}

func TestReserve_StationsDefaultToTheNearestOne(t *testing.T) {
	w := newRentalWorld(t)
	w.exec(`insert into stations (id, agency_id, name, address, latitude, longitude)
		values (4, 1, 'Suva', 'Suva', -18.1, 179.9), (5, 2, 'Next door', 'Next door', 48.12, 11.6)`)
	w.places(1, 48.13, 11.59)  // nearest to the second, and another agency's is nearer
	w.places(2, -18.1, -179.9) // across the 180th meridian
	w.exec(`
		insert into snapshots (vehicle_id, fields)
		values (3, '{"location.latitude": {"v": "north"}, "location.longitude": {"v": 1}}')`)
	// The fourth vehicle has no position at all.
	for vehicle, want := range map[telematics.VehicleID]telematics.StationID{1: 2, 2: 4, 3: 1, 4: 1} {
		made, err := w.reserve(ownDraft(vehicle, 1, 2), noon)
		if err != nil || made.Pickup.ID != want || made.Dropoff.ID != want || made.State != rental.Upcoming {
			t.Errorf("vehicle %d: %s from station %d to %d, %v; want station %d",
				vehicle, made.State, made.Pickup.ID, made.Dropoff.ID, err, want)
		}
	}
	d := ownDraft(1, 3, 4)
	d.Pickup = 1
	if made, err := w.reserve(d, noon); err != nil || made.Pickup.ID != 1 || made.Dropoff.ID != 2 {
		t.Errorf("from station 1: from %d to %d, %v; want 1 and 2", made.Pickup.ID, made.Dropoff.ID, err)
	}
}

func TestReserve_CountsWhatItsClientHasOpen(t *testing.T) {
	w := newRentalWorld(t)
	w.exec(`insert into rental_rules (agency_id, rules) values (1, '{"max_open_bookings": 2, "max_unpaid": 1}')`)
	past := w.book(draft(1, 1, 2)) // was never picked up
	now := noon.Add(150 * time.Minute)
	ended := w.book(draft(2, 1, 2))
	w.amend(rental.BookingStart, ended.ID, noon, beginAt(noon))
	w.amend(rental.BookingEnd, ended.ID, noon.Add(2*time.Hour), finishAt(noon.Add(2*time.Hour)))
	first, err := w.reserve(ownDraft(1, 4, 5), now)
	require.NoError(t, err, "after booking %d, which is over", past.ID)
	if _, err := w.reserve(ownDraft(1, 5, 6), now); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reserve(ownDraft(1, 6, 7), now); codeOf(err) != rental.BookingLimit {
		t.Errorf("a third booking: %v, want %s", err, rental.BookingLimit)
	}
	w.amend(rental.BookingCancel, first.ID, noon, cancelAt(noon)) // staff do: its client did not
	for i := range rental.MaxGivenUp + 1 {
		made, err := w.reserve(ownDraft(1, 6, 7), now)
		if i == rental.MaxGivenUp {
			if codeOf(err) != rental.BookingLimit {
				t.Errorf("a vehicle that was given up %d times: %v, want %s", i, err, rental.BookingLimit)
			}
			made, err = w.reserve(ownDraft(1, 28, 29), noon.Add(27*time.Hour))
		}
		require.NoError(t, err)
		_, _, err = w.here.Amend(t.Context(), asks(anna, rental.BookingCancel, made.ID, noon), cancelAt(noon))
		require.NoError(t, err)
	}
	for _, c := range []struct {
		set  string
		want telematics.Code
	}{
		{`state = 'declined', decline_code = 'insufficient_funds'`, rental.UnpaidLimit},
		{`state = 'requires_action', decline_code = ''`, rental.UnpaidLimit},
		{`state = 'failed', decline_code = 'no_card'`, rental.UnpaidLimit},
		{`state = 'failed', decline_code = 'refused'`, ""}, // the operator mends it
		{`state = 'paid', decline_code = ''`, ""},
	} {
		w.exec(`update charges set `+c.set+` where booking_id = $1 and kind = 'start'`, ended.ID)
		made, err := w.reserve(ownDraft(3, 6, 7), now)
		if codeOf(err) != c.want || c.want == "" && err != nil {
			t.Errorf("a charge with %s: %v, want %q", c.set, err, c.want)
		}
		if err == nil {
			w.amend(rental.BookingCancel, made.ID, noon, cancelAt(noon))
		}
	}
}
