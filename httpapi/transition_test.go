package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

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
		r := a.asClient(http.MethodPost, ownBooking+"/"+string(kind)).wants(200, "")
		r.has("id", 42.0, "transition.kind", string(kind), "transition.state", "done", "transition.step", nil).meta("agency_id", 1.0)
		same(t, a.rentals.asked.Kind, kind, "kind")
		same(t, a.rentals.asked.Position, nil, "position")
	}
	a.asClient(http.MethodPost, ownBooking+"/start", withJSON(`{"latitude":48.1,"longitude":11.5}`)).wants(200, "")
	same(t, *a.rentals.asked.Position, telematics.Position{Latitude: 48.1, Longitude: 11.5}, "position")
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
	want := logged{Action: "rental.start", Code: telematics.IdempotencyReplayed, Booking: 42, Agency: 1, Vehicle: 42}
	like(t, a.lastEntry(), want, "entry")
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
}

func TestTransition_CancelCanBeRepeated(t *testing.T) {
	a := newBookingAPI(t)
	open := withHeader("Prefer", "respond-async")
	a.rentals.step = rental.StepPay
	place := a.asClient(http.MethodPost, ownBooking+"/start", open).wants(202, "").header.Get("Location")
	a.rentals.slow = true
	a.asClient(http.MethodPost, place+"/cancel").wants(202, "").heads("Location", place).has("state", "open")
	admin := strings.Replace(place, "client", "admin", 1)
	a.post(admin+"/cancel").wants(202, "").heads("Location", admin)
	a.rentals.result = failsWith(rental.StartCancelled())
	for i := range 3 {
		r := a.asClient(http.MethodPost, place+"/cancel", keyed("k")).wants(200, "").
			has("state", "failed", "error.code", "transition_cancelled")
		same(t, r.header.Get("Idempotency-Replayed") == "true", i > 0, "a repetition")
	}
	a.asClient(http.MethodPost, ownBooking+"/end", keyed("k")).wants(422, "idempotency_mismatch")
	same(t, a.lastEntry().Code, telematics.IdempotencyMismatch, "entry")
	a.rentals.result = done
	a.asClient(http.MethodPost, ownBooking+"/end").wants(200, "")
	a.asClient(http.MethodPost, ownBooking+"/transitions/"+a.rentals.last.String()+"/cancel").wants(409, "booking_state_conflict")
	a.asClient(http.MethodPost, ownBooking+"/transitions/"+rental.TransitionID{1}.String()+"/cancel").wants(404, "transition_not_found")
	theirs := strings.Replace(place, ownBooking, "/api/v1/client/bookings/44", 1)
	a.asClient(http.MethodPost, theirs+"/cancel").wants(404, "booking_not_found")
}

// Staff's words, and the unit's, are not for the client.
func TestTransition_AClientSeesNoneOfStaff(t *testing.T) {
	a := newBookingAPI(t)
	command := uuid.New()
	ended := func(s telematics.State, reason, detail string) *telematics.Error {
		return (&telematics.Command{ID: command, Action: telematics.Lock, State: s, Reason: reason, Detail: detail}).Err()
	}
	for _, e := range []*telematics.Error{
		ended(telematics.Expired, telematics.ByHalt, "the recall of unit X"), ended(telematics.Rejected, "clock_unset", "rtc lost"),
		ended(telematics.Rejected, telematics.StateConflict, "ecu 0x7e0 asleep"), ended(telematics.Failed, "", "locked_only"),
	} {
		a.rentals.result = func(_ rental.BookingDetails, is *rental.Transition) {
			is.Override, is.Command = "drunk, towed", command
			failsWith(e)(rental.BookingDetails{}, is)
		}
		hidden := []string{"towed", "recall", "clock_unset", "rtc", "0x7e0", "locked_only", command.String(), "admin-7"}
		admin := a.post("/api/v1/admin/bookings/42/rental/pause")
		a.get("/api/v1/admin/bookings/42/transitions/"+a.rentals.last.String()).wants(200, "").
			has("override", "drunk, towed", "command_id", command.String(), "error.message", e.Message,
				"requested_by", a.rentals.asked.Actor.Subject)
		a.get("/api/v1/admin/bookings/42").wants(200, "").has("transition.override", "drunk, towed")
		same(t, admin.body.Error.Detail, &e.Detail, "detail")
		for _, r := range []*response{
			a.asClient(http.MethodGet, ownBooking+"/transitions/"+a.rentals.last.String()).wants(200, "").
				has("override", nil, "command_id", nil, "requested_by", nil, "error.code", string(e.Code)),
			a.asClient(http.MethodGet, ownBooking).wants(200, "").
				has("transition.override", nil, "transition.command_id", nil, "transition.requested_by", nil),
			a.asClient(http.MethodGet, "/api/v1/client/bookings").wants(200, ""),
			a.asClient(http.MethodPost, ownBooking+"/pause"),
		} {
			for _, text := range hidden {
				r.hides(text)
			}
		}
	}
}

func TestTransition_BodiesAreAsTheContractSays(t *testing.T) {
	a := newBookingAPI(t)
	a.rentals.result = done
	client := func(kind, body string) *response {
		return a.asClient(http.MethodPost, ownBooking+"/"+kind, withJSON(body))
	}
	admin := func(kind, body string) *response {
		return a.post("/api/v1/admin/bookings/42/rental/"+kind, withJSON(body))
	}
	const place, override = `{"latitude":48.1,"longitude":11.5}`, `{"override":true,"reason":"towed"}`
	for _, kind := range []string{"pause", "resume", "end"} {
		client(kind, place).invalid("latitude", "longitude")
		client(kind, override).invalid("override", "reason")
		client(kind, `{}`).wants(200, "")
		client(kind, `[]`).wants(422, "validation_failed")
	}
	for _, kind := range []string{"pause", "resume"} {
		admin(kind, override).invalid("override", "reason")
	}
	for _, kind := range []string{"start", "end"} {
		admin(kind, override).wants(200, "").has("transition.override", "towed", "client", "client-1")
		same(t, a.rentals.asked.Override, "towed", "override")
		admin(kind, place).invalid("latitude", "longitude")
		admin(kind, `{"reason":"towed"}`).invalid("reason")
		admin(kind, `{"override":false,"reason":"towed"}`).invalid("reason")
		admin(kind, `{"override":true}`).invalid("reason")
		admin(kind, `{"override":true,"reason":" "}`).invalid("reason")
		admin(kind, `{}`).wants(200, "")
		same(t, a.rentals.asked.Override, "", "override")
		admin(kind, `[{"override":true}]`).invalid("body")
	}
	client("start", override).invalid("override", "reason")
	client("start", `{"latitude":1e999,"longitude":1}`).invalid("latitude")
	client("start", `{"latitude":"48","longitude":1}`).invalid("latitude")
	client("start", `{"latitude":null,"longitude":null}`).wants(200, "")
}

func TestTransition_FailureIsAnError(t *testing.T) {
	a := newBookingAPI(t)
	a.rentals.result = failsWith(&telematics.Error{
		Code: telematics.CommandTimeout, Message: "No answer.", Outcome: telematics.MayHave, RetryAfter: 10 * time.Second,
	})
	a.asClient(http.MethodPost, ownBooking+"/pause").wants(504, "command_timeout")
	a.rentals.result = failsWith(&telematics.Error{Code: rental.PaymentRequired, Message: "Declined.", Reason: "insufficient_funds"})
	a.asClient(http.MethodPost, ownBooking+"/start").wants(409, "payment_required").shows("insufficient_funds")
	// Who has a stolen card must not learn that it was reported.
	a.rentals.result = failsWith(&telematics.Error{Code: rental.PaymentRequired, Message: "Declined.", Reason: "stolen_card"})
	a.asClient(http.MethodPost, ownBooking+"/start").wants(409, "payment_required").shows("generic_decline").hides("stolen")
	a.asClient(http.MethodGet, ownBooking).wants(200, "").shows("generic_decline").hides("stolen")
	a.get("/api/v1/admin/bookings/42").wants(200, "").shows("stolen_card")

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
