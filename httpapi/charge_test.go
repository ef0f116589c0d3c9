package httpapi_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

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
	list, _ := r.body.Data.([]any)
	if len(list) != 1 || r.body.Message != "1 charge." {
		t.Fatal(r.text)
	}
	got := list[0].(map[string]any)
	for name, want := range map[string]any{
		"id": "01941f29-7c00-7aa0-8000-000000000002", "kind": "deposit", "state": "authorized", "amount": 200.0, "currency": "EUR", "card": "Visa •••• 4242",
		"requested_by": "zoe", "reason": "Scratch", "booking_id": 42.0, "booking_reference": "BK-2026-00042", "agency_id": 1.0, "client": "client-1",
	} {
		same(t, got[name], want, "%s", name)
	}
	if vehicle := got["vehicle"].(map[string]any); vehicle["plate_number"] != "M-MP 42" || vehicle["id"] != 42.0 {
		t.Errorf("vehicle %v", vehicle)
	}
	cursor, _ := r.body.Meta["next_cursor"].(string)
	next := a.get(charges+"?limit=1&cursor="+cursor).wants(200, "")
	if second := next.body.Data.([]any)[0].(map[string]any); second["id"] != "01941f29-7c00-7aa0-8000-000000000001" ||
		second["requested_by"] != nil ||
		next.body.Meta["next_cursor"] != nil {
		t.Errorf("second page %s", next.text)
	}
	a.wantsEntries()
}

func TestCharges_AreFiltered(t *testing.T) {
	a := newBookingAPI(t)
	a.get(charges+"?state=declined,failed&booking_id=42&agency_id=1&from=2026-01-02T09:00:00Z&to=2026-01-03T00:00:00Z&limit=7").wants(200, "")
	want := rental.ChargeQuery{
		Agency: 1, Booking: 42, States: []rental.ChargeState{rental.Declined, rental.Failed}, Limit: 8,
		From: time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC), To: time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC),
	}
	same(t, a.bookings.askedCharges, want, "query")
	for query, field := range map[string]string{"state=gone": "state", "booking_id=0": "booking_id", "from=yesterday": "from", "cursor=x": "cursor", "state=": "state"} {
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
	if q := a.bookings.askedCharges; q.Agency != 2 || q.Before != uuid.Nil {
		t.Errorf("query %+v", q)
	}
	a.bookings.err = gone{}
	a.get(charges).wants(503, "service_unavailable")
}
