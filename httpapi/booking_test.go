package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

const (
	ownBooking   = "/api/v1/client/bookings/42"
	adminBooking = "/api/v1/admin/bookings/42"
)

// data returns the data as JSON text, in which numbers are as they were sent.
func (r *response) data() string {
	r.t.Helper()
	var body struct{ Data json.RawMessage }
	require.NoError(r.t, json.Unmarshal([]byte(r.text), &body))
	return string(body.Data)
}

const bookingText = `"id":42,"reference":"BK-2026-00042","status":"active","start_date":"2026-01-02T08:00:00.000Z",` +
	`"end_date":"2026-01-02T16:00:00.000Z",` +
	`"actual_start":"2026-01-02T08:00:02.100Z","actual_end":null,` +
	`"vehicle":{"id":42,"plate_number":"M-MP 42","brand":"Volkswagen","model":"Golf","year":2024,"color":"blue",` +
	`"category":"compact","image":"https://cdn.example.com/golf.png","features":["air_conditioning"]},` +
	`"pickup_station":{"id":1,"name":"Hauptbahnhof","address":"Arnulfstr. 1, Munich","latitude":48.1407,"longitude":11.5583},` +
	`"dropoff_station":{"id":2,"name":"Ostbahnhof","address":"Orleansplatz 1, Munich","latitude":48.1276,"longitude":11.6044},` +
	`"pricing":{"duration_hours":8,"hourly_rate":15.00,"subtotal":120.00,"tax":12.00,"deposit":200.00,"total":332.00,` +
	`"rental_total":132.00,"currency":"EUR",` +
	`"lines":[{"kind":"time","quantity":8,"unit":"hour","rate":15.00,"amount":120.00},` +
	`{"kind":"tax","quantity":null,"unit":null,"rate":null,"amount":12.00}],"tariff":null},` +
	`"payment":{"method":"Visa •••• 4242","status":"paid","paid_at":"2026-01-02T08:00:03.250Z","charged":132.00,"refunded":0.00,` +
	`"held":200.00,"final":false},"fees":[],` +
	`"can_cancel":false,"can_extend":true,"reserved_until":null,"paused":false,"transition":null,"created_at":"2026-01-01T09:00:00.000Z"`

// The fields are those of section 2.3 of the interface.
func TestBooking_HasAllFieldsOfTheInterface(t *testing.T) {
	r := newBookingAPI(t).asClient(http.MethodGet, ownBooking).wants(200, "")
	if got, want := r.data(), "{"+bookingText+"}"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, named := r.body.Meta["agency_code"].(string); !named || r.body.Meta["agency_id"] != 1.0 || len(r.body.Meta) != 2 {
		t.Errorf("meta %v", r.body.Meta)
	}
	r.says("The booking BK-2026-00042 is active.")

	a := newBookingAPI(t)
	a.set(42, func(d *rental.BookingDetails) {
		d.PausedSince, d.ReservedUntil = d.ActualStart.Add(time.Minute), time.Date(2026, 1, 2, 10, 15, 0, 0, time.UTC)
	})
	a.asClient(http.MethodGet, ownBooking).wants(200, "").says("The booking BK-2026-00042 is paused.").
		has("reserved_until", "2026-01-02T10:15:00.000Z")
}

func TestBooking_ByATariffHasItsLines(t *testing.T) {
	a := newBookingAPI(t)
	a.set(43, func(d *rental.BookingDetails) {
		plan := rental.Plan{Version: 2, Minute: 30, Hour: 1200, Day: 7900, Kilometre: 25, IncludedKm: 100, Deposit: 5000}
		price, _, err := plan.Price("EUR", 100_000, rental.Usage{Time: d.End.Sub(d.Start)})
		require.NoError(t, err)
		d.Plan, d.Price = &plan, price
	})
	const want = `"pricing":{"duration_hours":8,"hourly_rate":12.00,"subtotal":79.00,"tax":7.90,"deposit":50.00,"total":136.90,` +
		`"rental_total":86.90,"currency":"EUR","lines":[{"kind":"time","quantity":1,"unit":"day","rate":79.00,"amount":79.00},` +
		`{"kind":"tax","quantity":null,"unit":null,"rate":null,"amount":7.90}],` +
		`"tariff":{"category":"default","version":2,"currency":"EUR","per_minute":0.30,"per_hour":12.00,"per_day":79.00,` +
		`"per_km":0.25,"included_km":100,"per_pause_minute":null,"per_reservation_minute":null,"free_reservation_minutes":0,` +
		`"minimum":null,"deposit":50.00,"plugged_in":false,"description":"0.30 EUR a minute, at most 12.00 EUR an hour and ` +
		`79.00 EUR a day, 100 km a day included, then 0.25 EUR a km, a deposit of 50.00 EUR"}}`
	if got := a.asClient(http.MethodGet, "/api/v1/client/bookings/43").wants(200, "").data(); !strings.Contains(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestBooking_UnknownValuesAreNull(t *testing.T) {
	a := newBookingAPI(t)
	a.set(43, func(d *rental.BookingDetails) {
		d.Card, d.Vehicle.Year, d.Vehicle.Color, d.Vehicle.Category, d.Vehicle.Image, d.Vehicle.Features = nil, 0, "", "", "", nil
	})
	r := a.asClient(http.MethodGet, "/api/v1/client/bookings/43").wants(200, "")
	for _, path := range [][]string{{"actual_start"}, {"actual_end"}, {"vehicle", "year"}, {"vehicle", "color"}, {"vehicle", "category"},
		{"vehicle", "image"}, {"payment", "method"}, {"payment", "paid_at"}} {
		same[any](t, r.at(path...), nil, "%v", path)
	}
	if features, ok := r.at("vehicle", "features").([]any); !ok || len(features) != 0 {
		t.Errorf("features %v", features)
	}
	r.has("payment.status", "pending", "can_cancel", true)
}

func TestBooking_AmountsHaveTheDecimalsOfTheirCurrency(t *testing.T) {
	a := newBookingAPI(t)
	a.set(43, func(d *rental.BookingDetails) { d.Price.Currency, d.Price.Deposit = "BHD", 90_071_992_547 })
	a.asClient(http.MethodGet, "/api/v1/client/bookings/43").shows(`"hourly_rate":1.500,"subtotal":12.000,"tax":1.200,` +
		`"deposit":90071992.547,"total":90072005.747,"rental_total":13.200,"currency":"BHD"`)
	for hundredths, want := range map[rental.Hundredths]string{1: "0.01", 10: "0.1", 25: "0.25", 750: "7.5", 800: "8", 100_005: "1000.05"} {
		a.set(43, func(d *rental.BookingDetails) { d.Price.Hours = hundredths })
		if got := a.asClient(http.MethodGet, "/api/v1/client/bookings/43").data(); !strings.Contains(got, `"duration_hours":`+want+`,`) {
			t.Errorf("%d hundredths of an hour: %s", hundredths, got)
		}
	}
}

func TestAdminBooking_HasCharges(t *testing.T) {
	a := newBookingAPI(t)
	a.set(42, func(d *rental.BookingDetails) {
		d.Extensions = 1
		d.Charges = append(d.Charges[:1], rental.Charge{
			ID: d.Charges[1].ID, Kind: rental.FeeCharge, Number: 2, State: rental.Declined, Currency: "EUR",
			Amount: 4_550, Fee: "cleaning", Reason: "Dog hair", Brand: "amex", LastFour: "0005",
			DeclineCode: "insufficient_funds", Attempts: 2, NextAttempt: now.Add(time.Hour), Created: now,
		}, rental.Charge{ID: d.Charges[0].ID, Kind: rental.RefundCharge, Number: 1, State: rental.Pending, Currency: "EUR", Amount: 100,
			Refunds: d.Charges[0].ID, Created: now})
	})
	r := a.get(adminBooking).wants(200, "")
	for _, want := range []string{
		`"agency_id":1,"client":"client-1","extensions":1,"limits":{"refund":131.00,"capture":0.00,"fee":1700.00},"charges":[`,
		`{"id":"01941f29-7c00-7aa0-8000-000000000001","payment_id":"01941f29-7c00-7aa0-8000-000000000001","kind":"start",` +
			`"number":1,"state":"paid","amount":132.00,"settled":132.00,"currency":"EUR","goal":null,"capture_amount":null,` +
			`"fee":null,"reason":null,` +
			`"card":"Visa •••• 4242","decline_code":null,"attempts":1,"next_attempt_at":null,"paid_at":"2026-01-02T08:00:03.250Z",` +
			`"created_at":"2026-01-02T08:00:02.100Z","refund_of":null,"requested_by":null}`,
		`{"id":"01941f29-7c00-7aa0-8000-000000000002","payment_id":"01941f29-7c00-7aa0-8000-000000000002","kind":"fee","number":2,` +
			`"state":"declined","amount":45.50,"settled":0.00,"currency":"EUR","goal":null,"capture_amount":null,"fee":"cleaning",` +
			`"reason":"Dog hair",` +
			`"card":"American Express •••• 0005","decline_code":"insufficient_funds","attempts":2,` +
			`"next_attempt_at":"2026-01-02T11:00:00.250Z","paid_at":null,"created_at":"2026-01-02T10:00:00.250Z",` +
			`"refund_of":null,"requested_by":null}`,
		`"card":null,"decline_code":null,"attempts":0,"next_attempt_at":null,"paid_at":null,` +
			`"created_at":"2026-01-02T10:00:00.250Z","refund_of":"01941f29-7c00-7aa0-8000-000000000001","requested_by":null}`,
	} {
		if !strings.Contains(r.data(), want) {
			t.Errorf("%s\nwant it to contain %s", r.data(), want)
		}
	}
	if fees := `"fees":[{"kind":"cleaning","amount":45.50,"state":"declined","at":"2026-01-02T10:00:00.250Z"}]`; !strings.Contains(
		a.asClient(http.MethodGet, ownBooking).data(), fees,
	) {
		t.Errorf("the client's booking does not have %s", fees)
	}
	r.has("payment.status", "failed")
}

// bare is the answer without its request ID and time.
func (r *response) bare() string {
	return regexp.MustCompile(`"(request_id|timestamp)":"[^"]*"|\b4[0-9]\b|\b9[0-9]{2}\b`).ReplaceAllString(r.text, "-")
}

func TestBooking_OfAnotherReadsLikeAMissingOne(t *testing.T) {
	a := newBookingAPI(t)
	a.asClient(http.MethodGet, "/api/v1/client/bookings/1.5").invalid("booking")
	a.get("/api/v1/admin/bookings/99999999999999999999").invalid("booking")
	for _, c := range []struct{ method, path, body string }{
		{http.MethodGet, "", ""}, {http.MethodPost, "/cancel", ""}, {http.MethodPost, "/extend", `{"end_date":"2026-01-02T20:00:00Z"}`},
		{http.MethodGet, "/payment-action", ""}, {http.MethodPost, "/control/lock", ""}, {http.MethodPost, "/control/unlock", ""},
	} {
		ask := func(id int) string {
			return a.asClient(c.method, fmt.Sprintf("/api/v1/client/bookings/%d%s", id, c.path), withJSON(c.body)).
				wants(404, "booking_not_found").bare()
		}
		missing := ask(999)
		for _, id := range []int{44, 45, 998} {
			same(t, ask(id), missing, "%s %d", c.path, id)
		}
	}
	for _, c := range []struct{ method, path, body string }{
		{http.MethodGet, "", ""}, {http.MethodPost, "/start", ""}, {http.MethodPost, "/end", ""},
		{http.MethodPost, "/fees", `{"kind":"other","amount":1,"reason":"x"}`},
		{http.MethodPost, "/refund", `{"full":true,"reason":"x"}`}, {http.MethodPost, "/deposit/capture", `{"amount":1,"reason":"x"}`},
	} {
		ask := func(id int) string {
			return a.do(c.method, fmt.Sprintf("/api/v1/admin/bookings/%d%s", id, c.path), withJSON(c.body), keyed("k"),
				ofAgency(2)).wants(404, "booking_not_found").bare()
		}
		missing := ask(999)
		for _, id := range []int{42, 43, 998} {
			same(t, ask(id), missing, "%s %d", c.path, id)
		}
	}
	same(t, len(a.controller.orders), 0, "the controller got an order")
}

func TestBookings_OfAClientAreListed(t *testing.T) {
	a := newBookingAPI(t)
	var seen []string
	target := "/api/v1/client/bookings?limit=2"
	for target != "" {
		r := a.asClient(http.MethodGet, target).wants(200, "")
		for _, item := range r.body.Data.([]any) {
			seen = append(seen, fmt.Sprint(item.(map[string]any)["id"]))
		}
		r.meta("agency_id", 1.0)
		target = ""
		if next, ok := r.body.Meta["next_cursor"].(string); ok {
			target = "/api/v1/client/bookings?limit=2&cursor=" + next
		}
	}
	same(t, seen, []string{"46", "43", "42"}, "bookings")
	if q := a.bookings.asked; q.Agency != 1 || q.Client != "client-1" {
		t.Errorf("query %+v, want client-1 of agency 1", q)
	}
	r := a.asClient(http.MethodGet, "/api/v1/client/bookings?status=upcoming").wants(200, "")
	r.lists(1)
	a.asClient(http.MethodGet, "/api/v1/client/bookings?status=lost").wants(422, "validation_failed")
	a.asClient(http.MethodGet, "/api/v1/client/bookings?cursor=x").wants(422, "validation_failed")
	none := a.asClient(http.MethodGet, "/api/v1/client/bookings", clientOf(1, "client-9")).wants(200, "")
	none.lists(0)
}

func TestAdminBooking_HasTheGoalOfTheDeposit(t *testing.T) {
	a := newBookingAPI(t)
	a.get(adminBooking).wants(200, "").shows(`"goal":"hold","capture_amount":null`, `"capture":200.00`)
	a.set(42, func(d *rental.BookingDetails) { d.Charges[1].Goal, d.Charges[1].CaptureAmount = rental.Capture, 5_000 })
	a.get(adminBooking).wants(200, "").shows(`"goal":"capture","capture_amount":50.00`, `"capture":0.00`)
}

func TestAdminBookings_AreListedAndFiltered(t *testing.T) {
	a := newBookingAPI(t)
	r := a.get("/api/v1/admin/bookings?client=client-1&status=active,cancelled&vehicle_id=42&agency_id=1&reference=bk-2026-00042&limit=3"+
		"&from=2026-01-02T00:00:00%2B01:00&to=2026-01-03T00:00:00%2B01:00").
		wants(200, "")
	r.lists(1).has("0.client", "client-1")
	q, from := a.bookings.asked, time.Date(2026, 1, 1, 23, 0, 0, 0, time.UTC)
	like(t, q, rental.BookingQuery{Agency: 1, Client: "client-1", Vehicle: 42,
		States:    []rental.BookingState{rental.Active, rental.Cancelled},
		Reference: "BK-2026-00042", From: from, To: from.AddDate(0, 0, 1)}, "query")
	same(t, q.Limit, 4, "limit")
	a.get("/api/v1/admin/bookings", ofAgency(2)).wants(200, "").lists(1)
	a.get("/api/v1/admin/bookings?agency_id=1", ofAgency(2)).wants(200, "").lists(0)
	for _, wrong := range []string{"agency_id=x", "vehicle_id=0", "status=active,gone", "from=2026-01-02", "to=today"} {
		a.get("/api/v1/admin/bookings?"+wrong).wants(422, "validation_failed")
	}
}

func TestBookings_AreUnavailableWithoutPostgres(t *testing.T) {
	a := newBookingAPI(t)
	a.bookings.err = fmt.Errorf("read booking: %w", gone{})
	for _, target := range []string{"", "/42", "/42/payment-action"} {
		a.asClient(http.MethodGet, "/api/v1/client/bookings"+target).wants(503, "service_unavailable").wantsRetryAfter("10")
	}
	a.get(adminBooking).wants(503, "service_unavailable")
	a.asClient(http.MethodPost, ownBooking+"/cancel").wants(503, "service_unavailable")
	a.wantsEntries(logged{Action: "booking.cancel", Outcome: telematics.MayHave, Booking: 42})
	a.bookings.err = errors.New("secret detail")
	if r := a.get(adminBooking).wants(500, "internal"); strings.Contains(r.text, "secret") {
		t.Error(r.text)
	}
}
