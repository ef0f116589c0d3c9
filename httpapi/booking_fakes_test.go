package httpapi_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/httpapi"
	"motorpool/rental"
	"motorpool/telematics"
)

// bookings has bookings in memory, and decides about them as the store does. If err is set, all
// calls return it.
type bookings struct {
	mu           sync.Mutex
	byID         map[rental.BookingID]rental.BookingDetails
	keys         map[string]telematics.IdempotencyKey
	about        map[string]rental.BookingID
	err          error
	asked        rental.BookingQuery
	askedCharges rental.ChargeQuery
	cardsOf      string // client
	draft        rental.Draft
	lines        []telematics.Activity
	offers       []rental.Offer
	next         rental.OfferMark
	wanted       rental.OfferQuery
	free         []rental.Span
	quoted       rental.QuoteRequest
}

// FindOffers implements httpapi.Offers.
func (b *bookings) FindOffers(_ context.Context, q rental.OfferQuery) ([]rental.Offer, rental.OfferMark, error) {
	b.wanted = q
	return b.offers[:min(q.Limit, len(b.offers))], b.next, b.err
}

// Quote implements httpapi.Offers.
func (b *bookings) Quote(_ context.Context, r rental.QuoteRequest) (rental.Quote, error) {
	b.quoted = r
	d := details(func(*rental.BookingDetails) {})
	d.Start, d.End = r.Start, r.End
	return rental.Quote{ID: uuid.NameSpaceURL, Booking: d.Booking, Created: now, Expires: now.Add(rental.QuoteFor)}, b.err
}

// FreeTimes implements httpapi.Offers.
func (b *bookings) FreeTimes(
	_ context.Context, _ telematics.AgencyID, id telematics.VehicleID, within rental.Span, now time.Time,
) ([]rental.Span, error) {
	b.wanted = rental.OfferQuery{From: within.From, To: within.To, Now: now}
	if id != 42 {
		return nil, telematics.NoSuchVehicle(id)
	}
	return b.free, b.err
}

func (b *bookings) BookingDetails(_ context.Context, id rental.BookingID) (rental.BookingDetails, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d, ok := b.byID[id]; ok || b.err != nil {
		return d, b.err
	}
	return rental.BookingDetails{}, rental.NoSuchBooking(id)
}

func (b *bookings) FindBookings(_ context.Context, q rental.BookingQuery) ([]rental.BookingDetails, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = q
	return pageOf(slices.Collect(maps.Values(b.byID)), q.Before, q.Limit, func(d rental.BookingDetails) (int64, bool) {
		return int64(d.ID), of(q.Agency, d.Agency) && (q.Client == "" || q.Client == d.Subject) &&
			(q.States == nil || slices.Contains(q.States, d.State))
	}), b.err
}

// Utilisation implements httpapi.Bookings: agency 1 has one vehicle that was rented for 42 hours.
func (b *bookings) Utilisation(_ context.Context, agency telematics.AgencyID, from, to time.Time) ([]rental.Use, error) {
	if !of(agency, 1) {
		return nil, b.err
	}
	return []rental.Use{{Vehicle: 42, Rented: to.Sub(from) / 4}}, b.err
}

// FindFree implements httpapi.Bookings: one of agency 1 is free.
func (b *bookings) FindFree(_ context.Context, agency telematics.AgencyID, at rental.Span, now time.Time) ([]rental.Booking, error) {
	b.wanted = rental.OfferQuery{Agency: agency, From: at.From, To: at.To, Now: now}
	if !of(agency, 1) {
		return nil, b.err
	}
	return []rental.Booking{details(func(*rental.BookingDetails) {}).Booking}, b.err
}

// FindClients implements httpapi.Bookings: agency 1 has a client.
func (b *bookings) FindClients(_ context.Context, agency telematics.AgencyID, text string, limit int) ([]rental.Client, error) {
	if !of(agency, 1) || !strings.Contains("client-1", text) || limit < 1 {
		return nil, b.err
	}
	return []rental.Client{{ID: 7, Agency: 1, Subject: "client-1"}}, b.err
}

// ClientMethods implements httpapi.Bookings: each client of agency 1 has one card.
func (b *bookings) ClientMethods(_ context.Context, agency telematics.AgencyID, client string) ([]rental.Method, error) {
	b.cardsOf = client
	if agency != 1 {
		return nil, b.err
	}
	return []rental.Method{{
		ID: 7, Default: true, Created: now,
		Card: rental.Card{Token: "pm_secret", Brand: "visa", LastFour: "4242", ExpMonth: 12, ExpYear: 2030},
	}}, b.err
}

func (b *bookings) FindCharges(_ context.Context, q rental.ChargeQuery) ([]rental.BookedCharge, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.askedCharges = q
	var all []rental.BookedCharge
	for _, d := range b.byID {
		for _, c := range d.Charges {
			all = append(all, rental.BookedCharge{Charge: c, Reference: d.Reference, Agency: d.Agency, Subject: d.Subject,
				Vehicle: d.Vehicle})
		}
	}
	return pageOf(all, positionOf(q.Before), q.Limit, func(c rental.BookedCharge) (string, bool) {
		return positionOf(c.ID), of(q.Agency, c.Agency)
	}), b.err
}

// repeated returns the booking for which a key was used.
func (b *bookings) repeated(k *telematics.IdempotencyKey) (rental.BookingID, bool, error) {
	if k == nil {
		return 0, false, nil
	}
	earlier, used := b.keys[k.Key]
	if used && earlier.Fingerprint != k.Fingerprint {
		return 0, true, telematics.KeyMismatch()
	}
	return b.about[k.Key], used, nil
}

func (b *bookings) keep(k *telematics.IdempotencyKey, id rental.BookingID, entry telematics.Activity) {
	if k != nil {
		b.keys[k.Key], b.about[k.Key] = *k, id
	}
	b.lines = append(b.lines, entry)
}

func (b *bookings) OpenBooking(_ context.Context, draft rental.Draft, r rental.Request) (rental.BookingDetails, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.draft = draft
	if id, used, err := b.repeated(r.Key); err != nil || used || b.err != nil {
		return b.byID[id], used, cmp.Or(err, b.err)
	}
	d := details(func(d *rental.BookingDetails) {
		d.ID, d.State, d.Charges, d.ActualStart = 100, rental.Upcoming, nil, time.Time{}
		d.Agency, d.Subject, d.VehicleID, d.Start, d.End = draft.Agency, draft.Client, draft.Vehicle, draft.Start, draft.End
	})
	b.byID[d.ID] = d
	b.keep(r.Key, d.ID, r.Activity)
	return d, false, nil
}

func (b *bookings) Amend(_ context.Context, r rental.Request, decide rental.Decision) (rental.BookingDetails, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, ok := b.byID[r.Booking]
	switch {
	case b.err != nil:
		return rental.BookingDetails{}, false, b.err
	case !ok || !d.VisibleTo(r.Actor):
		return rental.BookingDetails{}, false, rental.NoSuchBooking(r.Booking)
	}
	if _, used, err := b.repeated(r.Key); err != nil || used {
		return d, used, err
	}
	// Each vehicle below 50 is the agency's, and free.
	d.MoveTo = rental.Facts{Vehicle: telematics.Vehicle{ID: r.MoveTo}}
	if r.MoveTo < 50 {
		d.MoveTo.Vehicle.AgencyID, d.MoveTo.Rate = d.Agency, &rental.Rate{}
	}
	change, err := decide(d)
	if err != nil {
		return rental.BookingDetails{}, false, err
	}
	d.Booking = change.Booking
	for _, c := range change.Charges {
		c.ID, c.Number = uuid.New(), 1
		d.Charges = append(slices.Clone(d.Charges), c)
	}
	b.byID[d.ID] = d
	b.keep(r.Key, d.ID, r.Activity)
	return d, false, nil
}

// payments has payments in memory.
type payments struct {
	byID map[string]rental.Intent
	err  error
}

func (p *payments) Intent(_ context.Context, id string) (rental.Intent, error) {
	return p.byID[id], p.err
}

// bookingAPI is the handler under test with bookings: 42 is active, 43 upcoming, 46 completed, all
// of client-1; 44 is another client's, 45 another agency's.
type bookingAPI struct {
	*api
	bookings *bookings
	rentals  *rentals
	payments *payments
	nudges   int
	told     []rental.Booking // of BookingChanged
}

func newBookingAPI(t *testing.T, change ...func(*httpapi.Config)) *bookingAPI {
	t.Helper()
	b := &bookingAPI{
		bookings: &bookings{
			byID: map[rental.BookingID]rental.BookingDetails{}, keys: map[string]telematics.IdempotencyKey{},
			about: map[string]rental.BookingID{},
		},
		payments: &payments{byID: map[string]rental.Intent{}},
	}
	b.rentals = &rentals{bookings: b.bookings, all: map[rental.TransitionID]rental.Transition{}}
	for id, change := range map[rental.BookingID]func(*rental.BookingDetails){
		42: func(*rental.BookingDetails) {},
		43: func(d *rental.BookingDetails) {
			d.State, d.ActualStart, d.Charges = rental.Upcoming, time.Time{}, nil
			d.Start, d.End = now.Add(time.Hour), now.Add(9*time.Hour)
		},
		44: func(d *rental.BookingDetails) { d.Subject = "client-2" },
		45: func(d *rental.BookingDetails) { d.Agency, d.AgencyCode = 2, "BER" },
		46: func(d *rental.BookingDetails) { d.State, d.ActualEnd = rental.Completed, now },
	} {
		b.bookings.byID[id] = details(func(d *rental.BookingDetails) { d.ID = id; change(d) })
	}
	b.api = newAPI(t, append([]func(*httpapi.Config){func(c *httpapi.Config) {
		c.Offers, c.Bookings, c.Rentals = b.bookings, b.bookings, b.rentals
		c.Payments, c.Nudge = b.payments, func() { b.nudges++ }
		c.BookingChanged = func(is rental.Booking) { b.told = append(b.told, is) }
	}}, change...)...)
	return b
}

// set changes a booking.
func (b *bookingAPI) set(id rental.BookingID, change func(*rental.BookingDetails)) {
	d := b.bookings.byID[id]
	d.Charges = slices.Clone(d.Charges)
	change(&d)
	b.bookings.byID[id] = d
}

// details is the booking in the example of the interface: active for two hours, paid, its deposit
// held.
func details(change func(*rental.BookingDetails)) rental.BookingDetails {
	start := now.Add(-2*time.Hour - 250*time.Millisecond)
	d := rental.BookingDetails{
		Booking: rental.Booking{
			ID: 42, Reference: "BK-2026-00042", State: rental.Active, Agency: 1, Client: 7, VehicleID: 42, PickupID: 1,
			DropoffID: 2, Start: start, End: start.Add(8 * time.Hour), ActualStart: start.Add(2100 * time.Millisecond),
			Created: start.Add(-23 * time.Hour),
			Price: rental.Price{
				Tariff: rental.Tariff{Currency: "EUR", HourlyRate: 1500, Tax: 100_000, Deposit: 20_000}, Hours: 800,
				Subtotal: 12_000, TaxDue: 1_200,
			},
		},
		AgencyCode: "MUC", Terms: rental.Terms{Currency: "EUR", Tax: 100_000, PaymentWait: rental.MaxLength}, Subject: "client-1",
		Vehicle: telematics.Vehicle{
			ID: 42, AgencyID: 1, Unit: "unit-1", Status: telematics.InUse, Powertrain: telematics.Combustion,
			Plate: "M-MP 42", Brand: "Volkswagen", Model: "Golf", Year: 2024, Color: "blue", Category: "compact",
			Image: "https://cdn.example.com/golf.png", Features: []string{"air_conditioning"},
		},
		Pickup: telematics.Station{
			ID: 1, AgencyID: 1, Name: "Hauptbahnhof", Address: "Arnulfstr. 1, Munich", Latitude: 48.1407,
			Longitude: 11.5583,
		},
		Dropoff: telematics.Station{
			ID: 2, AgencyID: 1, Name: "Ostbahnhof", Address: "Orleansplatz 1, Munich", Latitude: 48.1276,
			Longitude: 11.6044,
		},
		Card: &rental.Card{Brand: "visa", LastFour: "4242"},
		Charges: []rental.Charge{
			{
				ID: uuid.MustParse("01941f29-7c00-7aa0-8000-000000000001"), Booking: 42, Kind: rental.StartCharge,
				Number: 1, State: rental.Paid, Currency: "EUR", Amount: 13_200, Settled: 13_200, Brand: "visa",
				LastFour: "4242", Intent: "pi_1", Attempts: 1, PaidAt: start.Add(3250 * time.Millisecond),
				Created: start.Add(2100 * time.Millisecond),
			},
			{
				ID: uuid.MustParse("01941f29-7c00-7aa0-8000-000000000002"), Booking: 42, Kind: rental.DepositCharge,
				Number: 1, State: rental.Authorized, Currency: "EUR", Amount: 20_000, Settled: 20_000,
				Goal: rental.Hold, Brand: "visa", LastFour: "4242", Intent: "pi_2", Attempts: 1,
				Created: start.Add(2100 * time.Millisecond),
			},
		},
	}
	change(&d)
	return d
}
