package httpapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

const newBooking = `{"agency_id":1,"client":"client-1","vehicle_id":42,"start_date":"2026-01-02T12:00:00+01:00",` +
	`"end_date":"2026-01-02T18:00:00.5Z","pickup_station_id":1,"dropoff_station_id":2.0}`

func TestAdminBooking_IsMade(t *testing.T) {
	a := newBookingAPI(t)
	r := a.post("/api/v1/admin/bookings", withJSON(newBooking)).wants(201, "")
	r.has("id", 100.0, "status", "upcoming", "client", "client-1").heads("Location", "/api/v1/admin/bookings/100")
	start := time.Date(2026, 1, 2, 11, 0, 0, 0, time.UTC)
	want := rental.Draft{
		Agency: 1, Client: "client-1", Vehicle: 42, Start: start, End: start.Add(7*time.Hour + 500*time.Millisecond),
		Pickup: 1, Dropoff: 2,
	}
	same(t, a.bookings.draft, want, "draft")
	a.post("/api/v1/admin/bookings", withJSON(strings.Replace(newBooking, "{", `{"payment_method_id":7,`, 1)), ofAgency(1)).wants(201, "")
	same(t, a.bookings.draft.Method, 7, "draft %+v, want payment method 7", a.bookings.draft)
	a.post("/api/v1/admin/bookings", withJSON(strings.Replace(newBooking, "{", `{"payment_method_id":null,`, 1))).wants(201, "")
	same(t, a.bookings.draft.Method, 0, "method")
	same(t, a.nudges, 0, "nudges")
}

func TestAdminBooking_IsMadeOncePerKey(t *testing.T) {
	a := newBookingAPI(t)
	for _, replayed := range []string{"", "true"} {
		r := a.post("/api/v1/admin/bookings", withJSON(newBooking), keyed("k")).wants(201, "")
		r.heads("Idempotency-Replayed", replayed, "Location", "/api/v1/admin/bookings/100")
	}
	a.wantsEntries(logged{Code: telematics.IdempotencyReplayed, Booking: 100})
}

func TestAdminBooking_InvalidOneIsRefused(t *testing.T) {
	a := newBookingAPI(t)
	for _, field := range []string{"agency_id", "client", "vehicle_id", "start_date", "end_date", "pickup_station_id",
		"dropoff_station_id"} {
		for _, value := range []string{"null", "true", `""`, "{}"} {
			body := replaceField(newBooking, field, value)
			a.post("/api/v1/admin/bookings", withJSON(body)).invalid(field)
		}
	}
	for body, field := range map[string]string{
		replaceField(newBooking, "client", `"a\u0000b"`):                            "client",
		replaceField(newBooking, "client", `"  "`):                                  "client",
		replaceField(newBooking, "client", `"`+strings.Repeat("x", 256)+`"`):        "client",
		replaceField(newBooking, "vehicle_id", `1.5`):                               "vehicle_id",
		replaceField(newBooking, "vehicle_id", `0`):                                 "vehicle_id",
		replaceField(newBooking, "vehicle_id", `9007199254740993`):                  "vehicle_id",
		replaceField(newBooking, "start_date", `"2026-13-02T12:00:00Z"`):            "start_date",
		strings.Replace(newBooking, "{", `{"payment_method_id":"pm_card_visa",`, 1): "payment_method_id",
	} {
		a.post("/api/v1/admin/bookings", withJSON(body)).invalid(field)
	}
	a.bookings.err = fmt.Errorf("make booking: %w", &telematics.Error{Code: rental.MethodRequired, Message: "Not so."})
	a.post("/api/v1/admin/bookings", withJSON(newBooking)).wants(422, "payment_method_required")
	want := logged{Action: rental.BookingCreate, Code: rental.MethodRequired, Outcome: telematics.NotExecuted, Vehicle: 42, Agency: 1}
	like(t, a.lastEntry(), want, "entry")
	a.bookings.err = fmt.Errorf("make booking: %w", &rental.FieldError{Field: "start_date", Message: "must not be in the past"})
	r := a.post("/api/v1/admin/bookings", withJSON(newBooking)).wants(422, "validation_failed")
	same(t, r.body.Errors["start_date"], []string{"must not be in the past"}, "errors")
}

// Each time in an answer must be valid as a time of the interface: a year of four digits, in UTC.
func TestBooking_TimesCanBeAnswered(t *testing.T) {
	a := newBookingAPI(t)
	for _, text := range []string{
		"9999-12-31T23:00:00-10:00", "0000-01-01T00:00:00+10:00", "2026-12-01T10:00:00+25:00",
		"2016-12-31T23:59:60Z", "2026-02-30T00:00:00Z", "10000-01-01T00:00:00Z", "2026-12-01T10:00:00", "2026-12-01 10:00:00Z",
		"2026-12-01T10:00:00,5Z", "2026-12-01T9:00:00Z",
	} {
		a.post("/api/v1/admin/bookings", withJSON(replaceField(newBooking, "end_date", `"`+text+`"`))).invalid("end_date")
		same(t, a.bookings.draft, rental.Draft{}, "%s: draft", text)
		if strings.ContainsAny(text, " +") {
			continue
		}
		a.get("/api/v1/admin/activity?from="+text).wants(422, "validation_failed")
	}
	a.post("/api/v1/admin/bookings", withJSON(replaceField(newBooking, "end_date", `"9999-12-31T23:59:59.999Z"`))).wants(201, "")
	if end := a.bookings.draft.End; end.Year() != 9999 || end.Nanosecond() != 999_000_000 {
		t.Errorf("end %v, want the last millisecond of 9999", end)
	}
}

// replaceField replaces the value of a member in a flat JSON object.
func replaceField(body, field, value string) string {
	before, rest, _ := strings.Cut(body, `"`+field+`":`)
	end := strings.IndexAny(rest, ",}")
	return before + `"` + field + `":` + value + rest[end:]
}

func TestAdminBooking_OfAnotherAgencyIsForbidden(t *testing.T) {
	a := newBookingAPI(t)
	r := a.post("/api/v1/admin/bookings", withJSON(newBooking), ofAgency(2)).wants(403, "forbidden")
	r.mentions("agency 2")
	same(t, a.bookings.draft.Agency, 0, "agency")
	a.wantsEntries(logged{Action: rental.BookingCreate, Code: "forbidden"})
}

func TestAdminBooking_StartsAndEnds(t *testing.T) {
	a := newBookingAPI(t)
	started := a.post("/api/v1/admin/bookings/43/start").wants(200, "")
	started.has("status", "active", "actual_start", "2026-01-02T10:00:00.250Z")
	same(t, len(started.at("charges").([]any)), 2, "charges")
	same(t, a.nudges, 1, "nudges")
	a.post("/api/v1/admin/bookings/43/start").wants(409, "booking_state_conflict")
	ended := a.post("/api/v1/admin/bookings/43/end", ofAgency(1)).wants(200, "")
	ended.has("status", "completed", "actual_end", "2026-01-02T10:00:00.250Z")
	a.post("/api/v1/admin/bookings/43/end").wants(409, "booking_not_active")
}

// money has the changes that move money, with their body without the amount.
var money = map[string]string{
	"/fees":            `"kind":"cleaning","reason":"Dog hair"`,
	"/refund":          `"reason":"The heating was broken"`,
	"/deposit/capture": `"reason":"Scratch"`,
}

func TestBooking_ChangesOfMoneyNeedAnIdempotencyKey(t *testing.T) {
	a := newBookingAPI(t)
	for path, body := range money {
		a.post(adminBooking+path, withJSON(`{"amount":1,`+body+`}`)).wants(400, "idempotency_key_required")
		a.post(adminBooking+path, withJSON(`{"amount":1,`+body+`}`), keyed("")).wants(422, "validation_failed")
		if line := a.history.all()[len(a.history.all())-2]; line.Code != "idempotency_key_required" || line.Booking != 42 {
			t.Errorf("audit log entries %+v", line)
		}
		for _, replayed := range []string{"", "true"} {
			r := a.post(adminBooking+path, withJSON(`{"amount":1,`+body+`}`), keyed("k"+path)).wants(200, "")
			r.heads("Idempotency-Replayed", replayed)
		}
	}
	if d := a.bookings.byID[42]; len(d.Charges) != 4 || a.nudges != 3 {
		t.Errorf("%d charges, %d nudges; want 4 and 3", len(d.Charges), a.nudges)
	}
}

func TestAmount_MustBeAPositiveNumber(t *testing.T) {
	a := newBookingAPI(t)
	a.set(42, func(d *rental.BookingDetails) { d.Price.Currency = "JPY" })
	for path, body := range money {
		for _, amount := range []string{"12.5", "0", "0.00", "-1", "-0", "0e5", `"12"`, "true", "[1]"} {
			a.post(adminBooking+path, withJSON(`{"amount":`+amount+`,`+body+`}`), keyed("k")).invalid("amount")
		}
		for _, none := range []string{"{", `{"amount":null,`} {
			a.post(adminBooking+path, withJSON(none+body+`}`), keyed("k")).invalid("amount")
		}
	}
	same(t, len(a.bookings.byID[42].Charges), 2, "an invalid amount was charged")
}

func TestBooking_ChangesOfMoneyNeedAReason(t *testing.T) {
	a := newBookingAPI(t)
	for path := range money {
		kind := map[bool]string{true: `,"kind":"other"`}[path == "/fees"]
		for _, reason := range []string{"", `,"reason":null`, `,"reason":""`, `,"reason":"  "`,
			`,"reason":"\u200b\u202e"`, `,"reason":7`, `,"reason":"a\u0000b"`,
			`,"reason":"` + strings.Repeat("é", 501) + `"`} {
			a.post(adminBooking+path, withJSON(`{"amount":1`+kind+reason+`}`), keyed("k")).invalid("reason")
		}
		a.post(adminBooking+path, withJSON(`{"amount":1`+kind+`,"reason":"`+strings.Repeat("é", 500)+`"}`), keyed("k"+path)).wants(200, "")
	}
	for _, kind := range []string{"", `"kind":"parking",`, `"kind":7,`} {
		a.post(adminBooking+"/fees", withJSON(`{`+kind+`"amount":1,"reason":"x"}`), keyed("k")).invalid("kind")
	}
	for _, kind := range []string{"late_return", "cleaning", "damage", "fuel", "traffic_fine", "cancellation", "other"} {
		a.post(adminBooking+"/fees", withJSON(`{"kind":"`+kind+`","amount":1,"reason":"x"}`), keyed(kind)).wants(200, "")
	}
}

func TestRefund_NeedsAnAmountOrFull(t *testing.T) {
	a := newBookingAPI(t)
	refund := func(body string) *response {
		return a.post(adminBooking+"/refund", withJSON(body), keyed("k"))
	}
	for body, field := range map[string]string{
		`{"reason":"x"}`: "amount",
		`{"amount":null,"full":null,"reason":"x"}`:  "amount",
		`{"amuont":10.00,"reason":"x"}`:             "amount",
		`{"full":false,"reason":"x"}`:               "full",
		`{"full":"true","reason":"x"}`:              "full",
		`{"full":true,"amount":10,"reason":"x"}`:    "full",
		`{"full":false,"amount":10,"reason":"x"}`:   "full",
		`{"full":true,"amount":10,"amount":5}`:      "reason",
		`{"full":true,"reason":"x","reason":"y"}`:   "reason",
		`{"full":true,"reason":"x","currency":"€"}`: "currency",
	} {
		refund(body).invalid(field)
	}
	if len(a.bookings.byID[42].Charges) != 2 {
		t.Fatal("an invalid refund was made")
	}
	refund(`{"full":true,"amount":null,"reason":"x"}`).wants(200, "")
}

func TestRefund_OfOneCharge(t *testing.T) {
	a := newBookingAPI(t)
	refund := func(body, key string) *response {
		return a.post(adminBooking+"/refund", withJSON(body), keyed(key))
	}
	const rent, deposit = `"charge_id":"01941f29-7c00-7aa0-8000-000000000001"`, `"charge_id":"01941f29-7c00-7aa0-8000-000000000002"`
	for _, body := range []string{`{"amount":1,"reason":"x","charge_id":"5"}`,
		`{"amount":1,"reason":"x","charge_id":"01941f29-7c00-7aa0-8000-00000000000f"}`} {
		refund(body, "a").invalid("charge_id")
	}
	refund(`{"amount":"1","reason":"x"}`, "a").wants(422, "validation_failed").
		says("The request is not valid: amount must be a number, not in quotes.")
	refund(`{"full":true,"reason":"x",`+deposit+`}`, "b").wants(422, "refund_exceeds_paid")
	like(t, a.lastEntry(), logged{Action: rental.BookingRefund, Code: rental.RefundExceedsPaid, Booking: 42}, "entry")
	// No binary fraction is 1.15.
	r := refund(`{"amount":1.15,"reason":"x",`+rent+`}`, "c").wants(200, "")
	if !strings.Contains(r.data(), `"amount":1.15`) || !strings.Contains(r.data(), `"refund_of":"01941f29-7c00-7aa0-8000-000000000001"`) {
		t.Error(r.data())
	}
	refund(`{"amount":1,"reason":"x","charge_id":null}`, "d").wants(200, "")
}

func TestAdminBooking_IsExtendedWhileItIsOverdue(t *testing.T) {
	a := newBookingAPI(t)
	a.set(42, func(d *rental.BookingDetails) { d.Start, d.End = now.Add(-9*time.Hour), now.Add(-time.Hour) })
	end := now.Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")
	later := withJSON(`{"end_date":"` + end + `"}`)
	a.asClient(http.MethodPost, ownBooking+"/extend", later).wants(409, "booking_not_extendable")
	a.get("/api/v1/admin/bookings/42/extend?end_date="+end, ofAgency(1)).wants(200, "").has("end_date", end)
	a.post("/api/v1/admin/bookings/42/extend", later, ofAgency(1)).wants(200, "").has("end_date", end)
}

func TestAdminBooking_IsExtendedMovedAndCancelled(t *testing.T) {
	a := newBookingAPI(t)
	const booking = "/api/v1/admin/bookings/43"
	// Its client could not cancel it any more.
	a.set(43, func(d *rental.BookingDetails) { d.Terms.CancelCutoff = 24 * time.Hour })
	a.post(booking+"/extend", withJSON(`{"end_date":"2026-01-02T20:00:00Z"}`), ofAgency(1)).wants(200, "").
		has("end_date", "2026-01-02T20:00:00.000Z", "client", "client-1")
	for range 2 {
		a.post(booking+"/vehicle", withJSON(`{"vehicle_id":7}`), keyed("k")).wants(200, "")
	}
	same(t, a.bookings.byID[43].VehicleID, 7, "vehicle")
	told := a.told[len(a.told)-2:]
	same(t, []telematics.VehicleID{told[0].VehicleID, told[1].VehicleID}, []telematics.VehicleID{7, 42}, "vehicles of events")
	like(t, a.lastEntry(), logged{Action: rental.BookingMove, Code: telematics.IdempotencyReplayed, Booking: 43, Vehicle: 7}, "entry")
	a.post(booking+"/vehicle", withJSON(`{"vehicle_id":99}`)).wants(404, "vehicle_not_found")
	like(t, a.lastEntry(), logged{Action: rental.BookingMove, Code: "vehicle_not_found", Booking: 43, Agency: 1}, "entry")
	a.post(booking+"/vehicle", withJSON(`{}`)).invalid("vehicle_id")
	a.post(booking+"/cancel", ofAgency(2)).wants(404, "booking_not_found")
	a.post(booking+"/cancel", ofAgency(1)).wants(200, "").has("status", "cancelled")
	a.post(booking+"/cancel").wants(409, "booking_not_cancellable")
}

const utilisation = "/api/v1/admin/fleet/utilisation"

func TestUtilisation_IsOfTheAgenciesThatOneMaySee(t *testing.T) {
	a := newBookingAPI(t)
	week := map[string]any{
		"from": "2025-12-26T10:00:00.250Z", "to": "2026-01-02T10:00:00.250Z", "vehicles": 1.0, "used_hours": 42.0, "percent": 25.0,
		"vehicle_hours": nil,
	}
	a.get(utilisation).wants(200, "").has("", any(week)).says("42 rental hours of 1 vehicle.")
	a.get(utilisation, ofAgency(1)).wants(200, "").has("", any(week))
	a.get(utilisation+"?by=vehicle").wants(200, "").has("vehicle_hours", any(map[string]any{"42": 42.0}))
	a.get(utilisation + "?by=day").invalid("by")
	a.get(utilisation+"?agency_id=1", ofAgency(2)).wants(200, "").has("vehicles", 0.0, "used_hours", 0.0, "percent", nil)
	a.get(utilisation, ofAgency(2)).wants(200, "").has("vehicles", 0.0, "percent", nil)
	a.bookings.err = gone{}
	a.get(utilisation).wants(503, "service_unavailable")
}

func TestFreeVehicles_HaveTheirPrices(t *testing.T) {
	a := newBookingAPI(t)
	const free = "/api/v1/admin/fleet/free"
	const day = "?from=2026-01-02T12:00:00Z&to=2026-01-03T12:00:00Z"
	price := map[string]any{"vehicle_id": 42.0, "rental_total": 132.0, "deposit": 200.0, "currency": "EUR"}
	a.get(free+day, ofAgency(1)).wants(200, "").has("", []any{price}).says("1 vehicle.")
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	like(t, a.bookings.wanted, rental.OfferQuery{Agency: 1, From: noon, To: noon.AddDate(0, 0, 1), Now: now}, "query")
	a.get(free+day+"&agency_id=1", ofAgency(2)).wants(200, "").has("", []any{})
	a.get(free).invalid("from", "to")
	a.get(free + "?from=2026-01-02T12:00:00Z&to=2026-01-02T12:00:00Z").invalid("to")
	a.bookings.err = gone{}
	a.get(free+day).wants(503, "service_unavailable")
}
