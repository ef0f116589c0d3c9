package httpapi_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"motorpool/rental"
)

const charges = "/api/v1/admin/charges"

func TestCharges_HaveTheirBookingAndVehicle(t *testing.T) {
	a := newBookingAPI(t)
	a.bookings.byID = map[rental.BookingID]rental.BookingDetails{42: a.bookings.byID[42]}
	a.set(42, func(d *rental.BookingDetails) {
		d.Charges[1].By, d.Charges[1].Reason = "zoe", "Scratch"
	})
	r := a.get(charges+"?limit=1").wants(200, "")
	r.lists(1).says("1 charge.")
	r.body.Data = r.at("0")
	r.has("id", "01941f29-7c00-7aa0-8000-000000000002", "kind", "deposit", "requested_by", "zoe", "reason", "Scratch", "booking_id", 42.0,
		"booking_reference", "BK-2026-00042", "agency_id", 1.0, "client", "client-1", "vehicle.plate_number", "M-MP 42", "vehicle.id", 42.0)
	cursor, _ := r.body.Meta["next_cursor"].(string)
	next := a.get(charges+"?limit=1&cursor="+cursor).wants(200, "")
	next.has("0.id", "01941f29-7c00-7aa0-8000-000000000001", "0.requested_by", nil).meta("next_cursor", nil)
	a.wantsEntries()
}

func TestCharges_AreFiltered(t *testing.T) {
	a := newBookingAPI(t)
	a.get(charges+"?state=declined,failed&booking_id=42&client=client-1&agency_id=1"+
		"&from=2026-01-02T09:00:00Z&to=2026-01-03T00:00:00Z&by=paid_at&limit=7").wants(200, "")
	want := rental.ChargeQuery{
		Agency: 1, Booking: 42, Client: "client-1", States: []rental.ChargeState{rental.Declined, rental.Failed}, Limit: 8, ByPaid: true,
		From: time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC), To: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC),
	}
	same(t, a.bookings.askedCharges, want, "query")
	for query, field := range map[string]string{"state=gone": "state", "booking_id=0": "booking_id", "from=yesterday": "from",
		"cursor=x": "cursor", "state=": "state", "by=id": "by"} {
		a.get(charges + "?" + query).invalid(field)
	}
}

func TestCharges_OfAnotherAgencyAreNotListed(t *testing.T) {
	a := newBookingAPI(t)
	for query, want := range map[string]int{"": 2, "?agency_id=2": 2, "?agency_id=1": 0} {
		r := a.get(charges+query, ofAgency(2)).wants(200, "")
		list := r.body.Data.([]any)
		for _, one := range list {
			same[any](t, one.(map[string]any)["agency_id"], 2.0, "%q: a charge of agency", query)
		}
		same(t, len(list), want, "%q", query)
	}
	a.bookings.err = gone{}
	a.get(charges).wants(503, "service_unavailable")
}

func TestClients_AreFoundByAPartOfTheirName(t *testing.T) {
	a := newBookingAPI(t)
	const clients = "/api/v1/admin/clients?q="
	a.get(clients+"ent-", ofAgency(1)).wants(200, "").lists(1).has("0.agency_id", 1.0, "0.client", "client-1").says("1 client.")
	a.get(clients+"zoe").wants(200, "").lists(0)
	a.get(clients+"ent&agency_id=1", ofAgency(2)).wants(200, "").lists(0)
	a.get(clients).wants(422, "validation_failed")
	a.bookings.err = gone{}
	a.get(clients+"e").wants(503, "service_unavailable")
}

func TestClientMethods_AreThoseOfTheAgencysClient(t *testing.T) {
	a := newBookingAPI(t)
	client := "https://login.example.com/" + strings.Repeat("/ü", 70)
	cards := "/api/v1/admin/agencies/1/clients/" + url.PathEscape(client) + "/payment-methods"
	a.get(cards, ofAgency(1)).wants(200, "").says("1 payment method.").lists(1).has("0.last_four", "4242", "0.is_default", true).
		hides("pm_secret")
	same(t, a.bookings.cardsOf, client, "client")
	a.get(cards, ofAgency(2)).wants(404, "agency_not_found")
	a.get("/api/v1/admin/agencies/2/clients/anna/payment-methods").wants(200, "").lists(0)
	a.bookings.err = gone{}
	a.get(cards).wants(503, "service_unavailable")
}
