package rentals

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/store/storetest"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// noon is the time at which the bookings of these tests are made.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

var (
	anna     = telematics.Actor{Subject: "anna", Role: telematics.Client, Agency: 1}
	operator = telematics.Actor{Subject: "admin-7", Role: telematics.Admin}
)

// rentalWorld has two agencies, each with stations, vehicles for rent, and clients with a card.
type rentalWorld struct {
	t            *testing.T
	address      string
	here, there  *fixture // two instances of Motorpool
	visa, master rental.MethodID
}

func newRentalWorld(t *testing.T) *rentalWorld {
	t.Helper()
	address := storetest.NewDatabase(t)
	w := &rentalWorld{t: t, address: address, here: openPatient(t, address), there: openPatient(t, address)}
	file := vehicles.FleetFile{
		Agencies: []telematics.Agency{{ID: 1, Code: "MUC", Name: "Isar Mobility"}, {ID: 2, Code: "BER", Name: "Spree Mobility"}},
		Stations: []telematics.Station{
			{ID: 1, AgencyID: 1, Name: "Hauptbahnhof", Address: "Arnulfstr. 1", Latitude: 48.14, Longitude: 11.55},
			{ID: 2, AgencyID: 1, Name: "Ostbahnhof", Address: "Orleansplatz 1", Latitude: 48.12, Longitude: 11.6},
			{ID: 3, AgencyID: 2, Name: "Alexanderplatz", Address: "Alexanderplatz 1", Latitude: 52.52, Longitude: 13.4},
		},
	}
	for id := telematics.VehicleID(1); id <= 4; id++ {
		file.Vehicles = append(file.Vehicles, telematics.Vehicle{
			ID: id, AgencyID: 1, Unit: telematics.Unit(fmt.Sprintf("unit-%d", id)), Status: telematics.Available,
			Powertrain: telematics.Electric, Plate: fmt.Sprintf("M-IM %d", id), Brand: "Renault", Model: "Zoe",
			Year: 2024, Color: "white", Category: "compact", Image: "https://cdn.example.com/zoe.png",
			Features: []string{"isofix", "navigation"}, Actions: telematics.ControlActions,
		})
	}
	_, err := w.here.Import(t.Context(), file)
	require.NoError(t, err)
	w.exec(`update agencies set tax_ppm = 100000, cancel_cutoff = '2 hours', buffer = '15 minutes'`)
	w.exec(`update vehicles set hourly_rate = 1500, deposit = 20000`)
	w.visa = w.addCard("anna", "visa", "4242")
	w.master = w.addCard("anna", "mastercard", "4444")
	w.addCard("ben", "visa", "0001")
	return w
}

func (w *rentalWorld) exec(query string, args ...any) {
	w.t.Helper()
	storetest.Exec(w.t, w.here.Pool, query, args...)
}

// count returns the result of a counting query.
func (w *rentalWorld) count(query string, args ...any) (n int) {
	w.t.Helper()
	require.NoError(w.t, w.here.Pool.Get(&n, query, args...))
	return n
}

// addCard stores a card of a client of agency 1; the first card is the default.
func (w *rentalWorld) addCard(subject, brand, lastFour string) (id rental.MethodID) {
	w.t.Helper()
	w.exec(`insert into clients (agency_id, subject) values (1, $1) on conflict do nothing`, subject)
	err := w.here.Pool.Get(&id, `
		with card as (
			insert into payment_methods (client_id, token, brand, last_four, exp_month, exp_year, fingerprint, created_at)
			select id, 'pm_' || $1 || $3, $2, $3, 12, 2030, $1 || $3, $4 from clients where agency_id = 1 and subject = $1
			returning id, client_id
		), chosen as (
			update clients set default_payment_method_id = coalesce(default_payment_method_id, card.id) from card
			where clients.id = card.client_id
		)
		select id from card`, subject, brand, lastFour, noon)
	require.NoError(w.t, err)
	return id
}

// draft is a booking of a vehicle of agency 1 for anna, between two hours after noon.
func draft(vehicle telematics.VehicleID, from, to float64) rental.Draft {
	hours := func(n float64) time.Time { return noon.Add(time.Duration(n * float64(time.Hour))) }
	return rental.Draft{Agency: 1, Client: "anna", Vehicle: vehicle, Start: hours(from), End: hours(to), Pickup: 1, Dropoff: 2}
}

// asks returns the request of an actor at a time.
func asks(actor telematics.Actor, activity string, id rental.BookingID, now time.Time) rental.Request {
	return rental.Request{Booking: id, Actor: actor, Now: now,
		Activity: telematics.Activity{At: now, Actor: actor, Agency: actor.Agency, Action: activity, RequestID: uuid.New()}}
}

// named adds an idempotency key to a request; the text stands for the content of the request.
func named(r rental.Request, key, asked string) rental.Request {
	r.Key = &telematics.IdempotencyKey{
		Agency: r.Actor.Agency, Subject: r.Actor.Subject, Key: key, Fingerprint: sha256.Sum256([]byte(asked)),
	}
	return r
}

// book makes a booking at noon.
func (w *rentalWorld) book(d rental.Draft) rental.BookingDetails {
	w.t.Helper()
	made, replayed, err := w.here.OpenBooking(w.t.Context(), d, asks(operator, rental.BookingCreate, 0, noon))
	if err != nil || replayed {
		w.t.Fatalf("book: replayed %v, %v", replayed, err)
	}
	return made
}

// amend changes a booking at a time.
func (w *rentalWorld) amend(activity string, id rental.BookingID, now time.Time, decide rental.Decision) rental.BookingDetails {
	w.t.Helper()
	after, replayed, err := w.here.Amend(w.t.Context(), asks(operator, activity, id, now), decide)
	if err != nil || replayed {
		w.t.Fatalf("%s: replayed %v, %v", activity, replayed, err)
	}
	return after
}

func beginAt(now time.Time) rental.Decision {
	return func(d rental.BookingDetails) (rental.Change, error) { return d.Begin(now) }
}

func finishAt(now time.Time) rental.Decision {
	return func(d rental.BookingDetails) (rental.Change, error) { return d.Finish(now) }
}

func cancelAt(now time.Time) rental.Decision {
	return func(d rental.BookingDetails) (rental.Change, error) { return d.Cancel(now, telematics.Client) }
}

func fineOf(amount rental.Minor) rental.Decision {
	return func(d rental.BookingDetails) (rental.Change, error) {
		return d.Fine(noon, rental.Fee{Kind: "cleaning", Amount: amount, Reason: "dog hair"})
	}
}

// status returns the platform status of a vehicle.
func (w *rentalWorld) status(id telematics.VehicleID) telematics.VehicleStatus {
	w.t.Helper()
	twin, err := w.here.Twin(w.t.Context(), id)
	require.NoError(w.t, err)
	return twin.Status
}

// lines returns the audit log entries of a booking, oldest first.
func (w *rentalWorld) lines(id rental.BookingID) []telematics.Activity {
	w.t.Helper()
	lines, err := w.here.Activities(context.Background(), telematics.ActivityQuery{Booking: int64(id)})
	require.NoError(w.t, err)
	for i, j := 0, len(lines)-1; i < j; i, j = i+1, j-1 {
		lines[i], lines[j] = lines[j], lines[i]
	}
	return lines
}

// codeOf returns the code of an error; empty: none.
func codeOf(err error) telematics.Code {
	var known *telematics.Error
	if !errors.As(err, &known) {
		return ""
	}
	return known.Code
}
