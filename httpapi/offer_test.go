package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/httpapi"
	"motorpool/rental"
	"motorpool/telematics"
)

const vehiclesNear = "/api/v1/client/vehicles?latitude=48.1&longitude=11.5"

// anOffer is vehicle 42 in 120 m, at its station.
func anOffer(change ...func(*rental.Offer)) rental.Offer {
	d := details(func(*rental.BookingDetails) {})
	o := rental.Offer{
		Candidate: rental.Candidate{
			Facts: rental.Facts{Vehicle: d.Vehicle}, Energy: new(81), Position: telematics.Position{Latitude: 48.14, Longitude: 11.56},
			Metres: 120,
		},
		Station: &d.Pickup, Booking: rental.Booking{Price: d.Price, Start: d.Start, End: d.End},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

// areasAt finds one area anywhere.
type areasAt struct {
	kind rental.AreaKind
	err  error
}

func (a areasAt) At(context.Context, telematics.AgencyID, telematics.Position) ([]rental.Area, rental.AreaKind, error) {
	return []rental.Area{{Name: "centre", Kind: a.kind}}, rental.AreaOperating, a.err
}

func TestOffers_HaveWhatARenterNeeds(t *testing.T) {
	a := newBookingAPI(t)
	a.bookings.offers = []rental.Offer{anOffer(), anOffer(func(o *rental.Offer) { o.Energy, o.Station = nil, nil })}
	r := a.asClient(http.MethodGet, vehiclesNear).wants(200, "").says("2 vehicles.").meta("agency_id", 1.0)
	r.hides("M-MP 42") // the plate
	first := r.body.Data.([]any)[0].(map[string]any)
	for field, want := range map[string]any{"id": 42.0, "distance_m": 120.0, "model": "Golf", "energy_percent": 81.0, "range_km": nil} {
		same(t, first[field], want, "%s", field)
	}
	same(t, first["location"].(map[string]any)["station"].(map[string]any)["name"], any("Hauptbahnhof"), "station")
	same(t, first["pricing"].(map[string]any)["subtotal"], any(120.0), "subtotal")
	want := rental.OfferQuery{
		Agency: 1, Near: telematics.Position{Latitude: 48.1, Longitude: 11.5}, HasNear: true, Radius: 2000, Limit: 51, Now: now,
	}
	same(t, a.bookings.wanted, want, "query")
	a.asClient(http.MethodGet, "/api/v1/client/vehicles?station_id=7&radius_m=300.5&category=van&feature=isofix,navigation"+
		"&min_energy_percent=30&min_range_km=100&limit=2&from=2026-01-03T10:00:00Z&to=2026-01-03T12:00:00Z").wants(200, "")
	entry := a.lastEntry()
	same(t, entry.Action, telematics.VehiclesRead, "action")
	same(t, entry.Actor.Subject, "client-1", "actor")
	same(t, entry.Details, map[string]any{"vehicles": 2, "filter": map[string]any{
		"agency_id": int64(1), "station_id": "7", "category": "van", "feature": "isofix,navigation", "min_energy_percent": "30",
		"min_range_km": "100", "from": "2026-01-03T10:00:00Z", "to": "2026-01-03T12:00:00Z",
	}}, "details, without the place")
	start := time.Date(2026, 1, 3, 10, 0, 0, 0, time.UTC)
	want = rental.OfferQuery{
		Agency: 1, Station: 7, Radius: 301, Category: "van", Features: []string{"isofix", "navigation"}, MinEnergyPercent: 30,
		MinRangeKm: 100, Limit: 3, From: start, To: start.Add(2 * time.Hour), Now: now,
	}
	same(t, a.bookings.wanted, want, "query")
	a.asClient(http.MethodGet, vehiclesNear+"&category=Ko%CC%88nig&feature=Ku%CC%88hlbox").wants(200, "")
	same(t, a.bookings.wanted.Category+" "+a.bookings.wanted.Features[0], "K\u00f6nig K\u00fchlbox", "as they are stored")
}

func TestOffers_NameTheArea(t *testing.T) {
	for in, want := range map[areasAt]any{
		{kind: rental.AreaOperating}: "centre", {kind: rental.AreaNoParking}: nil,
		{kind: rental.AreaOperating, err: context.DeadlineExceeded}: nil,
	} {
		a := newBookingAPI(t, func(c *httpapi.Config) { c.AreasAt = in })
		a.bookings.offers = []rental.Offer{anOffer()}
		r := a.asClient(http.MethodGet, vehiclesNear).wants(200, "")
		same(t, r.body.Data.([]any)[0].(map[string]any)["location"].(map[string]any)["area"], want, "area")
	}
}

func TestOffers_ArePagedByDistance(t *testing.T) {
	a := newBookingAPI(t)
	a.bookings.offers = []rental.Offer{anOffer(), anOffer(func(o *rental.Offer) { o.Vehicle.ID, o.Metres = 43, 125 })}
	cursor := func(r *response) string {
		next, _ := r.body.Meta["next_cursor"].(string)
		return next
	}
	first := a.asClient(http.MethodGet, vehiclesNear+"&limit=1").wants(200, "")
	same(t, len(first.body.Data.([]any)), 1, "vehicles")
	a.asClient(http.MethodGet, vehiclesNear+"&limit=2&cursor="+cursor(first)).wants(200, "").meta("next_cursor", nil)
	same(t, a.bookings.wanted.After, rental.OfferMark{Metres: 120, Vehicle: 42}, "mark")
	// The store has looked at many vehicles that are not free.
	a.bookings.offers, a.bookings.next = nil, rental.OfferMark{Metres: 0, Vehicle: 9}
	empty := a.asClient(http.MethodGet, vehiclesNear).wants(200, "")
	a.asClient(http.MethodGet, vehiclesNear+"&cursor="+cursor(empty)).wants(200, "")
	same(t, a.bookings.wanted.After, a.bookings.next, "mark")
	a.asClient(http.MethodGet, vehiclesNear+"&cursor=YWN0aXZpdHk6LTE").invalid("cursor")
}

func TestOffers_AreNotSentAgain(t *testing.T) {
	a := newBookingAPI(t)
	a.bookings.offers = []rental.Offer{anOffer()}
	r := a.asClient(http.MethodGet, vehiclesNear).wants(200, "").heads("Cache-Control", "no-cache, private")
	has := func(h *http.Request) { h.Header.Set("If-None-Match", r.header.Get("ETag")) }
	again := a.asClient(http.MethodGet, vehiclesNear, has).answers(304)
	same(t, again.text, "", "body")
	a.bookings.offers[0].Metres++
	a.asClient(http.MethodGet, vehiclesNear, has).wants(200, "")
}

func TestOffers_InvalidQueryIsRefused(t *testing.T) {
	a := newBookingAPI(t)
	for query, field := range map[string]string{
		"": "latitude", "?latitude=48": "longitude", "?longitude=11": "latitude", "?latitude=91&longitude=11": "latitude",
		"?latitude=NaN&longitude=11": "latitude", "?latitude=48&longitude=181": "longitude", "?latitude=48&longitude=x": "longitude",
		"?station_id=1&radius_m=50001": "radius_m", "?station_id=1&radius_m=0": "radius_m", "?station_id=x": "station_id",
		"?station_id=1&from=today": "from", "?station_id=1&min_energy_percent=101": "min_energy_percent",
	} {
		a.asClient(http.MethodGet, "/api/v1/client/vehicles"+query).invalid(field)
	}
	a.asClient(http.MethodGet, "/api/v1/client/vehicles?latitude=north&longitude=11").wants(422, "validation_failed").
		says("The request is not valid: latitude must be a number from -90 to 90.")
	a.bookings.err = &rental.FieldError{Field: "station_id", Message: "must be a station of the agency"}
	a.asClient(http.MethodGet, "/api/v1/client/vehicles?station_id=9").invalid("station_id")
}

func TestAvailability_HasTheFreeTimes(t *testing.T) {
	a := newBookingAPI(t)
	a.bookings.free = []rental.Span{{From: now.Add(-time.Second), To: now}, {From: now, To: now.Add(time.Hour)}}
	const path = "/api/v1/client/vehicles/42/availability"
	r := a.asClient(http.MethodGet, path).wants(200, "").says("1 free time.")
	same(t, r.data(), `[{"from":"2026-01-02T10:00:00.250Z","to":"2026-01-02T11:00:00.250Z"}]`, "data")
	minute := now.Truncate(time.Minute)
	same(t, a.bookings.wanted, rental.OfferQuery{From: minute, To: minute.Add(31 * 24 * time.Hour), Now: minute}, "times")
	a.asClient(http.MethodGet, path+"?from=2026-01-01T00:00:00Z&to=2026-01-03T00:00:00Z").wants(200, "")
	same(t, a.bookings.wanted.From, minute, "from in the past")
	has := func(h *http.Request) { h.Header.Set("If-None-Match", r.header.Get("ETag")) }
	a.asClient(http.MethodGet, path, has).answers(304)
	a.bookings.free = []rental.Span{}
	same(t, a.asClient(http.MethodGet, path+"?to=2026-01-02T12:00:00Z", has).wants(200, "").data(), `[]`, "data")
	a.asClient(http.MethodGet, path+"?to=2026-01-02T10:00:00Z").invalid("to")
	a.asClient(http.MethodGet, path+"?to=2027-01-04T10:00:00Z").invalid("to")
	a.asClient(http.MethodGet, path+"?from=9999-12-31T00:00:00Z").invalid("to") // the year 10000
	a.asClient(http.MethodGet, strings.Replace(path, "42", "43", 1)).wants(404, "vehicle_not_found")
}

const quotesPath = "/api/v1/client/quotes"

func TestQuote_HasThePriceOfAVehicle(t *testing.T) {
	a := newBookingAPI(t)
	r := a.asClient(http.MethodPost, quotesPath, withJSON(ownNewBooking)).wants(201, "")
	r.has("id", "6ba7b811-9dad-11d1-80b4-00c04fd430c8", "vehicle_id", 42.0, "expires_at", "2026-01-02T10:10:00.250Z",
		"start_date", "2026-01-02T11:00:00.000Z", "end_date", "2026-01-02T18:00:00.000Z").meta("agency_id", 1.0)
	same(t, r.at("pricing", "subtotal"), any(120.0), "subtotal")
	start := time.Date(2026, 1, 2, 11, 0, 0, 0, time.UTC)
	want := rental.QuoteRequest{Agency: 1, Client: "client-1", Vehicle: 42, Start: start, End: start.Add(7 * time.Hour), Now: now}
	same(t, a.bookings.quoted, want, "request")
	byCategory := strings.Replace(ownNewBooking, `"vehicle_id":42`, `"category":"van","station_id":3`, 1)
	a.asClient(http.MethodPost, quotesPath, withJSON(byCategory)).wants(201, "")
	want.Vehicle, want.Category, want.Station = 0, "van", 3
	same(t, a.bookings.quoted, want, "request")
	for body, field := range map[string]string{
		strings.Replace(ownNewBooking, "{", `{"category":"van",`, 1):            "category",
		strings.Replace(ownNewBooking, "{", `{"station_id":1,`, 1):              "station_id",
		strings.Replace(ownNewBooking, `"vehicle_id":42,`, "", 1):               "vehicle_id",
		strings.Replace(ownNewBooking, `"vehicle_id":42`, `"station_id":3`, 1):  "vehicle_id",
		strings.Replace(ownNewBooking, `"vehicle_id":42`, `"category":"v"`, 1):  "station_id",
		replaceField(ownNewBooking, "end_date", `"soon"`):                       "end_date",
		strings.Replace(ownNewBooking, "{", `{"payment_method_id":1,`, 1):       "payment_method_id",
		strings.Replace(ownNewBooking, `"vehicle_id":42`, `"vehicle_id":""`, 1): "vehicle_id",
	} {
		a.asClient(http.MethodPost, quotesPath, withJSON(body)).invalid(field)
	}
	a.bookings.err = rental.NotAvailable("The vehicle has another booking in that time.")
	a.asClient(http.MethodPost, quotesPath, withJSON(ownNewBooking)).wants(409, "vehicle_not_available")
	like(t, a.lastEntry(), logged{
		Action: rental.QuoteCreate, Code: rental.VehicleNotAvailable, Outcome: telematics.NotExecuted, Vehicle: 42, Agency: 1,
		Actor: telematics.Actor{Subject: "client-1"},
	}, "entry")
}

func TestQuote_IsBooked(t *testing.T) {
	a := newBookingAPI(t)
	const id = "6ba7b811-9dad-11d1-80b4-00c04fd430c8"
	a.asClient(http.MethodPost, "/api/v1/client/bookings", withJSON(`{"quote_id":"`+id+`"}`)).wants(201, "")
	same(t, a.bookings.draft, rental.Draft{Self: true, Agency: 1, Client: "client-1", QuoteID: uuid.MustParse(id)}, "draft")
	a.asClient(http.MethodPost, "/api/v1/client/bookings", withJSON(`{"quote_id":"7"}`)).invalid("quote_id")
	for _, field := range []string{"vehicle_id", "start_date", "end_date"} {
		a.asClient(http.MethodPost, "/api/v1/client/bookings", withJSON(`{}`)).invalid(field)
	}
	a.bookings.err = &telematics.Error{Code: rental.QuoteExpired, Message: "The quote has expired; ask for another one."}
	a.asClient(http.MethodPost, "/api/v1/client/bookings", withJSON(`{"quote_id":"`+id+`"}`)).wants(409, "quote_expired")
}
