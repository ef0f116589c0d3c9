package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

func done(_ rental.BookingDetails, t *rental.Transition) { t.Succeed(now) }

func failsWith(e *telematics.Error) func(rental.BookingDetails, *rental.Transition) {
	return func(_ rental.BookingDetails, t *rental.Transition) {
		t.GiveUp(now, e)
	}
}

func TestTransition_IsAnsweredOnceItHasEnded(t *testing.T) {
	a := newBookingAPI(t)
	a.rentals.result = done
	for _, kind := range rental.TransitionKinds {
		r := a.asClient(http.MethodPost, ownBooking+"/"+string(kind), withJSON(`{"latitude":48.1,"longitude":11.5}`)).wants(200, "")
		r.has("id", 42.0, "transition.kind", string(kind), "transition.state", "done", "transition.step", nil).meta("agency_id", 1.0)
		same(t, *a.rentals.asked.Position, telematics.Position{Latitude: 48.1, Longitude: 11.5}, "position")
		same(t, a.rentals.asked.Kind, kind, "kind")
	}
	a.asClient(http.MethodPost, ownBooking+"/pause").wants(200, "")
	same(t, a.rentals.asked.Position, nil, "position")
	a.asClient(http.MethodPost, "/api/v1/client/bookings/44/start").wants(404, "booking_not_found")
	a.asClient(http.MethodPost, ownBooking+"/start", withJSON(`{"latitude":48.1}`)).invalid("latitude")
	a.asClient(http.MethodPost, ownBooking+"/start", withJSON(`{"latitude":148.1,"longitude":1}`)).invalid("latitude")
}

func TestTransition_IsReadWhileItIsOpen(t *testing.T) {
	a := newBookingAPI(t)
	r := a.asClient(http.MethodPost, ownBooking+"/start", withHeader("Prefer", "respond-async"), keyed("k")).wants(202, "")
	r.has("kind", "start", "state", "open", "step", "command", "next", []any{"wait"}, "error", nil)
	same(t, a.rentals.wait, 0, "wait")
	place := r.header.Get("Location")
	if !strings.HasPrefix(place, ownBooking+"/transitions/") {
		t.Fatalf("Location %q", place)
	}
	a.asClient(http.MethodGet, place).wants(200, "").has("state", "open")
	a.asClient(http.MethodPost, ownBooking+"/start", withHeader("Prefer", "wait=20"), keyed("k")).wants(202, "").
		heads("Idempotency-Replayed", "true", "Preference-Applied", "wait=20")
	same(t, a.rentals.wait, 20*time.Second, "wait")
	a.asClient(http.MethodPost, ownBooking+"/end", keyed("k")).wants(422, "idempotency_mismatch")
	a.get(strings.Replace(place, "client", "admin", 1)).wants(200, "").has("state", "open")
	a.get("/api/v1/admin/bookings/42/transitions").wants(200, "")
	for _, path := range []string{"/api/v1/client/bookings/43", "/api/v1/client/bookings/44"} {
		other := strings.Replace(place, ownBooking, path, 1)
		if code := a.asClient(http.MethodGet, other).body.Error.Code; code != "transition_not_found" && code != "booking_not_found" {
			t.Errorf("%s: %s", other, code)
		}
	}
	a.asClient(http.MethodGet, ownBooking+"/transitions/1").invalid("transition")
	a.asClient(http.MethodPost, place+"/cancel").wants(200, "").has("state", "failed", "error.code", "transition_cancelled")
}

func TestTransition_FailureIsAnError(t *testing.T) {
	a := newBookingAPI(t)
	a.rentals.result = failsWith(&telematics.Error{
		Code: telematics.CommandTimeout, Message: "No answer.", Outcome: telematics.MayHave, RetryAfter: 10 * time.Second,
	})
	a.asClient(http.MethodPost, ownBooking+"/pause").wants(504, "command_timeout")
	a.rentals.result = failsWith(&telematics.Error{Code: rental.PaymentRequired, Message: "Declined.", Reason: "insufficient_funds"})
	a.asClient(http.MethodPost, ownBooking+"/start").wants(409, "payment_required")

	a.rentals.refuse = &rental.ReturnRefusal{Checks: []rental.Check{
		{Name: rental.CheckFresh, OK: true, Expected: "a report", Reported: "2 seconds ago"},
		{Name: rental.CheckDoors, Expected: "closed", Reported: "front left open"},
	}}
	r := a.asClient(http.MethodPost, ownBooking+"/end").wants(409, "return_not_possible")
	if !strings.Contains(r.text, `"checks":[{"name":"fresh","ok":true,`) || !strings.Contains(r.text, "front left open") {
		t.Errorf("answer %s, want the checks", r.text)
	}
	want := logged{Action: "rental.end", Code: rental.ReturnNotPossible, Outcome: telematics.NotExecuted, Booking: 42}
	like(t, a.lastEntry(), want, "entry")
	a.rentals.refuse = &rental.FieldError{Field: "latitude", Message: "is required"}
	a.asClient(http.MethodPost, ownBooking+"/start").invalid("latitude")
}

func TestTransition_StaffOverrideTheReturnCheckWithAReason(t *testing.T) {
	a := newBookingAPI(t)
	a.rentals.result = done
	path := "/api/v1/admin/bookings/42/rental/end"
	a.post(path, withJSON(`{"override":true}`)).invalid("reason")
	a.post(path, withJSON(`{"override":true,"reason":" "}`)).invalid("reason")
	a.post(path).wants(200, "")
	same(t, a.rentals.asked.Override, "", "override")
	a.post(path, withJSON(`{"override":true,"reason":"towed"}`)).wants(200, "").has("transition.override", "towed", "client", "client-1")
	same(t, a.rentals.asked.Override, "towed", "override")
	a.asClient(http.MethodPost, ownBooking+"/end", withJSON(`{"override":true,"reason":"towed"}`)).invalid("override")
}
