package service_test

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/internal/app"
	"motorpool/internal/assert"
	"motorpool/rental"
	"motorpool/simulator/sandbox"
	"motorpool/store/agencykeys"
	"motorpool/telematics"
)

// rentals is the commercial side of an installation: the prices of vehicles, the processor of cards
// and payments, and the key of an agency's app. Vehicles with an odd number belong to agency 1,
// which has the stations 1 and 2; station 3 belongs to agency 2.
type rentals struct {
	*stack
	processor *sandbox.Server
	sealing   string           // the key that seals the secrets of agencies' keys
	app       rental.AgencyKey // of agency 1
	db        *sqlx.DB
	names     *atomic.Int64 // numbers the names of clients
}

// rent starts the commercial side.
func (s *stack) rent() *rentals {
	s.Helper()
	processor, err := sandbox.Start(sandbox.Config{})
	s.must(err)
	s.Cleanup(func() { _ = processor.Close() })
	secret := sha256.Sum256([]byte(s.dir))
	r := &rentals{
		stack: s, processor: processor, sealing: hex.EncodeToString(secret[:]), db: s.owner.Pool, names: new(atomic.Int64),
	}
	s.priceFleet()
	s.record()
	sealer, err := agencykeys.NewSealer(r.sealing)
	s.must(err)
	var added bool
	r.app, added, err = agencykeys.New(s.owner, sealer).Add(s.Context(), 1, telematics.OperatorAt("eva"))
	s.must(err)
	assert.Equal(s, added, true, "a key was added")
	r.app.AgencyCode = s.fleet.Agencies[0].Code
	return r
}

// priceFleet gives the agencies stations and terms, and the vehicles what a booking needs: 15.00 an
// hour, 10 % tax, and a deposit of 200.00.
func (s *stack) priceFleet() {
	s.fleet.Stations = []telematics.Station{
		{ID: 1, AgencyID: 1, Name: "Hauptbahnhof", Address: "Bahnhofplatz 1, 80335 München", Latitude: 48.1402, Longitude: 11.56},
		{ID: 2, AgencyID: 1, Name: "Ostbahnhof", Address: "Orleansplatz 10, 81667 München", Latitude: 48.1275, Longitude: 11.605},
		{ID: 3, AgencyID: 2, Name: "Alexanderplatz", Address: "Alexanderplatz 1, 10178 Berlin", Latitude: 52.52, Longitude: 13.41},
	}
	terms := rental.Terms{Currency: "EUR", Tax: rental.FullTax / 10}
	s.fleet.Terms = map[telematics.AgencyID]rental.Terms{1: terms, 2: terms}
	s.fleet.Rates = map[telematics.VehicleID]rental.Rate{}
	for i := range s.fleet.Vehicles {
		v := &s.fleet.Vehicles[i]
		v.Brand, v.Model, v.Year, v.Color, v.Category = "Volkswagen", "Golf", 2024, "blue", "compact"
		v.Image, v.Features = "https://img.example/golf.png", []string{"bluetooth", "isofix"}
		s.fleet.Rates[v.ID] = rental.Rate{Hourly: 1500, Deposit: 20000}
	}
}

// paid returns the settings of an instance with bookings and payments.
func (r *rentals) paid(c *app.Config) {
	c.AgencySecretsKey = app.Secret(r.sealing)
	c.StripeKey, c.StripeURL = app.Secret(r.processor.Key()), r.processor.URL()
	c.StripeWebhookSecret = app.Secret(r.processor.WebhookSecret())
}

// open starts an instance, to which the processor sends its notices from then on.
func (r *rentals) open(change ...func(*app.Config)) *instance {
	r.Helper()
	i := r.serve(append([]func(*app.Config){r.paid}, change...)...)
	r.processor.SetWebhook(i.base + "/webhooks/stripe")
	return i
}

// customer is a client of an agency, with the app of the agency.
type customer struct {
	*rentals
	actor telematics.Actor
	token string
}

// newCustomer returns a new client of agency 1.
func (r *rentals) newCustomer() customer {
	r.Helper()
	actor := telematics.Actor{Subject: fmt.Sprintf("client-%d", r.names.Add(1)), Role: telematics.Client, Agency: 1}
	return customer{rentals: r, actor: actor, token: r.token(actor)}
}

// signature is that of a request of an app; a test may change it before it is sent.
type signature struct {
	at    time.Time
	nonce string
	as    string // replaces the header; empty: the correct one
}

func newNonce() string {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// at sends a request of the client to an instance, through the app of its agency.
func (c customer) at(i *instance, method, target, body string, change ...func(*signature)) answer {
	i.Helper()
	request, err := http.NewRequest(method, i.base+target, strings.NewReader(body))
	i.must(err)
	path, query := rental.SplitTarget(target)
	signed := rental.SignedRequest{Method: method, Path: path, Query: query, Body: []byte(body), Token: c.token}
	s := signature{at: time.Now(), nonce: newNonce()}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Accept", "application/json")
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(&s)
	}
	header := cmp.Or(s.as, signed.Sign(c.app.ID, c.app.Secret, s.at, s.nonce).String())
	request.Header.Set(rental.SignatureHeader, header)
	return i.ask(request)
}

// get sends a GET request as the client.
func (c customer) get(i *instance, target string, change ...func(*signature)) answer {
	i.Helper()
	return c.at(i, http.MethodGet, "/api/v1/client"+target, "", change...)
}

func (c customer) post(i *instance, target, body string, change ...func(*signature)) answer {
	i.Helper()
	return c.at(i, http.MethodPost, "/api/v1/client"+target, body, change...)
}

// add adds a card, and returns its id.
func (c customer) add(i *instance, token string, setDefault bool) int64 {
	i.Helper()
	return c.post(i, "/payment-methods", fmt.Sprintf(`{"payment_method_id":%q,"set_default":%t}`, token, setDefault)).
		wants(201, "").
		number("data.id")
}

// hours is a time of a booking.
type hours struct{ from, to time.Time }

// fromNow returns 8 hours that begin after a given time.
func fromNow(in time.Duration) hours {
	start := time.Now().Add(in).UTC().Truncate(time.Millisecond)
	return hours{start, start.Add(8 * time.Hour)}
}

// draft returns the body of a request for a booking.
func (c customer) draft(vehicle int, when hours) string {
	return fmt.Sprintf(
		`{"agency_id":1,"client":%q,"vehicle_id":%d,"start_date":%q,"end_date":%q,"pickup_station_id":1,"dropoff_station_id":2}`,
		c.actor.Subject, vehicle, when.from.Format(time.RFC3339Nano), when.to.Format(time.RFC3339Nano),
	)
}

// book creates a booking of the client, and returns its id.
func (c customer) book(i *instance, vehicle int, when hours) int64 {
	i.Helper()
	return i.asAdmin(http.MethodPost, "/api/v1/admin/bookings", c.draft(vehicle, when)).wants(201, "").number("data.id")
}

// adminOf returns the path of a booking for administrators.
func adminOf(booking int64) string { return fmt.Sprintf("/api/v1/admin/bookings/%d", booking) }

// ownOf returns the path of a booking for its client, below /api/v1/client.
func ownOf(booking int64) string { return fmt.Sprintf("/bookings/%d", booking) }

// start starts a booking.
func (i *instance) start(booking int64) answer {
	i.Helper()
	return i.asAdmin(http.MethodPost, adminOf(booking)+"/start", "").wants(200, "")
}

// awaitPayment waits until the client reads a payment status, and returns the response.
func (c customer) awaitPayment(i *instance, booking int64, status string) answer {
	i.Helper()
	var a answer
	i.eventually(20*time.Second, fmt.Sprintf("the payment of booking %d is %s", booking, status), func() bool {
		a = c.get(i, ownOf(booking)).wants(200, "")
		return a.word("data.payment.status") == status
	})
	return a
}

// charge returns the newest charge of a kind of a booking, as administrators read it; nil: none.
func (i *instance) charge(booking int64, kind string) map[string]any {
	i.Helper()
	var newest map[string]any
	for _, one := range i.asAdmin(http.MethodGet, adminOf(booking), "").wants(200, "").list("data.charges") {
		if charge, _ := one.(map[string]any); charge["kind"] == kind {
			newest = charge
		}
	}
	return newest
}

// movements returns the payments of a booking in the processor's ledger, by kind and number: start
// 1, fee 2 ….
func (r *rentals) movements(booking int64) map[string]sandbox.Movement {
	r.Helper()
	rows, err := r.db.QueryContext(
		r.Context(), `select coalesce(payment_key, id), kind || ' ' || number from charges where booking_id = $1`,
		booking,
	)
	r.must(err)
	defer rows.Close()
	names := map[string]string{}
	for rows.Next() {
		var id, name string
		r.must(rows.Scan(&id, &name))
		names[id] = name
	}
	r.must(rows.Err())
	moved := map[string]sandbox.Movement{}
	for _, m := range r.processor.Ledger() {
		if name, ours := names[m.Charge]; ours {
			if _, twice := moved[name]; twice {
				r.Errorf("the processor has two payments for the charge %s of booking %d", name, booking)
			}
			moved[name] = m
		}
	}
	return moved
}

// rows returns the number that a query counts.
func (r *rentals) rows(query string, args ...any) int {
	r.Helper()
	var n int
	r.must(r.db.QueryRowContext(r.Context(), query, args...).Scan(&n))
	return n
}
