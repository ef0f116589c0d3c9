package service_test

import (
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"
)

// That each answer has all fields of the interface, and no other, is checked in package httpapi.
func TestInterface_ResponsesToClients(t *testing.T) {
	t.Parallel()
	r := startStack(t, 3).rent()
	i := r.open()
	c := r.newCustomer()

	added := c.post(i, "/payment-methods", `{"payment_method_id":"pm_card_visa"}`).wants(201, "").has(
		"data.type", `"card"`, "data.brand", `"visa"`, "data.last_four", `"4242"`, "data.exp_month", "12",
		"data.exp_year", "2034", "data.is_default", "true", "meta", `{"agency_code":"ONE","agency_id":1}`,
	)
	amex := c.add(i, "pm_card_amex", true)
	list := c.get(i, "/payment-methods").
		wants(200, "").
		has("data.0.is_default", "true", "data.0.brand", `"amex"`, "data.1.is_default", "false")
	if len(list.list("data")) != 2 || list.number("data.0.id") != amex {
		r.Errorf("listed as %s, want two cards", list.text)
	}
	visa := added.number("data.id")
	c.post(i, fmt.Sprintf("/payment-methods/%d/default", visa), "").wants(200, "").has(
		"data.id", strconv.FormatInt(visa, 10), "data.is_default", "true")
	c.remove(i, fmt.Sprintf("/payment-methods/%d", amex)).wants(200, "").has("data", "null", "meta.agency_code", `"ONE"`)

	soon := fromNow(time.Minute)
	booking := c.book(i, 1, soon, "")
	before := c.get(i, ownOf(booking)).wants(200, "").has(
		"data.status", `"upcoming"`, "data.actual_start", "null", "data.actual_end", "null", "data.payment.status",
		`"pending"`, "data.payment.paid_at", "null", "data.can_cancel", "true", "data.can_extend", "true",
		"data.pricing.duration_hours", "8", "data.pricing.hourly_rate", "15.00", "data.pricing.subtotal", "120.00",
		"data.pricing.tax", "12.00", "data.pricing.deposit", "200.00", "data.pricing.total", "332.00",
		"data.pricing.currency", `"EUR"`, "data.vehicle.features", `["bluetooth","isofix"]`,
		"data.vehicle.plate_number", `"M-OT 1"`, "data.pickup_station.name", `"Hauptbahnhof"`,
		"data.dropoff_station.name", `"Ostbahnhof"`, "data.pickup_station.latitude", "48.1402", "data.start_date",
		fmt.Sprintf("%q", soon.from.Format("2006-01-02T15:04:05.000Z")), "data.end_date",
		fmt.Sprintf("%q", soon.to.Format("2006-01-02T15:04:05.000Z")), "meta",
		`{"agency_code":"ONE","agency_id":1}`,
	)
	if year := time.Now().UTC().Year(); before.word("data.reference") != fmt.Sprintf("BK-%d-00001", year) {
		r.Errorf("the first booking has the reference %s", before.word("data.reference"))
	}

	i.start(booking)
	paid := c.awaitPayment(i, booking, "paid").has("data.status", `"active"`, "data.payment.method", `"Visa •••• 4242"`,
		"data.can_cancel", "false", "data.can_extend", "true", "data.actual_end", "null")
	if paid.at("data.actual_start") == nil || paid.at("data.payment.paid_at") == nil {
		r.Errorf("a paid booking: %s", paid.text)
	}
	if accepted := paid.word("data.payment.paid_at"); accepted < paid.word("data.actual_start") {
		r.Errorf("the payment is dated %s, before the start", accepted)
	}
	c.get(i, "/bookings?status=active&limit=1").wants(200, "").has("meta.next_cursor", "null", "meta.agency_id", "1")

	i.asAdmin(http.MethodPost, adminOf(booking)+"/end", "").wants(200, "")
	ended := c.get(i, ownOf(booking)).
		wants(200, "").
		has("data.status", `"completed"`, "data.can_cancel", "false", "data.can_extend", "false")
	if ended.at("data.actual_end") == nil {
		r.Errorf("an ended booking without actual_end: %s", ended.text)
	}
}
