package httpapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/rental"
	"motorpool/telematics"
)

const ownNewBooking = `{"vehicle_id":42,"start_date":"2026-01-02T12:00:00+01:00","end_date":"2026-01-02T18:00:00Z"}`

func TestClientBooking_IsMade(t *testing.T) {
	a := newBookingAPI(t)
	for _, replayed := range []string{"", "true"} {
		r := a.asClient(http.MethodPost, "/api/v1/client/bookings", withJSON(ownNewBooking), keyed("k")).wants(201, "")
		r.has("id", 100.0, "status", "upcoming").meta("agency_id", 1.0)
		r.heads("Location", "/api/v1/client/bookings/100", "Idempotency-Replayed", replayed)
		r.hides(`"charges"`)
	}
	start := time.Date(2026, 1, 2, 11, 0, 0, 0, time.UTC)
	want := rental.Draft{Self: true, Agency: 1, Client: "client-1", Vehicle: 42, Start: start, End: start.Add(7 * time.Hour)}
	same(t, a.bookings.draft, want, "draft")
	a.wantsEntries(logged{Code: telematics.IdempotencyReplayed, Booking: 100})
	a.asClient(http.MethodPost, "/api/v1/client/bookings", withJSON(strings.Replace(
		ownNewBooking, "{", `{"pickup_station_id":1,"dropoff_station_id":2,"payment_method_id":7,`, 1))).wants(201, "")
	want.Pickup, want.Dropoff, want.Method = 1, 2, 7
	same(t, a.bookings.draft, want, "draft")
	a.asClient(http.MethodPost, "/api/v1/client/bookings", withJSON(strings.Replace(
		ownNewBooking, "{", `{"pickup_station_id":null,"payment_method_id":null,`, 1))).wants(201, "")
	same(t, a.bookings.draft.Pickup, 0, "pickup station")
	same(t, a.nudges, 0, "nudges")
	same(t, len(a.told), 3, "bookings that were published, without the repetition")
}

func TestClientBooking_InvalidOneIsNotMade(t *testing.T) {
	a := newBookingAPI(t)
	for _, field := range []string{"vehicle_id", "start_date", "end_date"} {
		a.asClient(http.MethodPost, "/api/v1/client/bookings", withJSON(replaceField(ownNewBooking, field, "null"))).invalid(field)
	}
	// Agency and client are those of the token.
	for field, value := range map[string]string{"agency_id": `2`, "client": `"client-2"`} {
		body := strings.Replace(ownNewBooking, "{", `{"`+field+`":`+value+`,`, 1)
		a.asClient(http.MethodPost, "/api/v1/client/bookings", withJSON(body)).invalid(field)
	}
	same(t, a.bookings.draft, rental.Draft{}, "draft")
	a.post("/api/v1/client/bookings", withJSON(ownNewBooking)).wants(403, "forbidden")
	a.bookings.err = &telematics.Error{Code: rental.BookingLimit, Message: "Not so."}
	a.asClient(http.MethodPost, "/api/v1/client/bookings", withJSON(ownNewBooking)).wants(409, string(rental.BookingLimit))
	want := logged{Action: rental.BookingCreate, Code: rental.BookingLimit, Outcome: telematics.NotExecuted, Vehicle: 42, Agency: 1}
	like(t, a.lastEntry(), want, "entry")
	a.bookings.err = &rental.FieldError{Field: "end_date", Message: "must be at least 15 min after start_date"}
	a.asClient(http.MethodPost, "/api/v1/client/bookings", withJSON(ownNewBooking)).invalid("end_date")
}

func TestClientBooking_CancelsAnUpcomingOne(t *testing.T) {
	a := newBookingAPI(t)
	r := a.asClient(http.MethodPost, "/api/v1/client/bookings/43/cancel").wants(200, "")
	r.has("status", "cancelled", "can_cancel", false).meta("agency_id", 1.0)
	same(t, a.nudges, 1, "nudges")
	line := a.bookings.lines[0]
	like(t, line, logged{Action: rental.BookingCancel, Actor: telematics.Actor{Subject: "client-1"}}, "entry")
	same(t, line.RequestID.String(), r.body.RequestID, "request ID")
	again := a.asClient(http.MethodPost, "/api/v1/client/bookings/43/cancel").wants(409, "booking_not_cancellable")
	again.wantsRetryAfter("")
	same(t, again.body.Error.Retryable, false, "retryable")
	same(t, a.nudges, 1, "nudges")
	a.asClient(http.MethodPost, ownBooking+"/cancel").wants(409, "booking_not_cancellable")
	refused := logged{
		Action: rental.BookingCancel, Outcome: telematics.NotExecuted, Code: rental.BookingNotCancellable, Agency: 1, Vehicle: 42,
	}
	active := refused
	refused.Booking, active.Booking = 43, 42
	a.wantsEntries(refused, active)
}

func TestClientBooking_IsExtended(t *testing.T) {
	a := newBookingAPI(t)
	extend := func(end string) *response {
		return a.asClient(http.MethodPost, ownBooking+"/extend", withJSON(`{"end_date":"`+end+`"}`))
	}
	// The present end, given to the millisecond.
	unchanged := extend("2026-01-02T17:00:00.0004+01:00").wants(200, "")
	unchanged.has("end_date", "2026-01-02T16:00:00.000Z")
	same(t, len(a.bookings.byID[42].Charges), 2, "number of charges")
	ask := func(end string) *response { return a.asClient(http.MethodGet, ownBooking+"/extend?end_date="+end) }
	ask("2026-01-02T18:30:00.123Z").wants(200, "").has("end_date", "2026-01-02T18:30:00.123Z", "pricing.duration_hours", 10.5)
	ask("2026-01-02T12:00:00Z").wants(409, "booking_not_extendable")
	ask("tomorrow").invalid("end_date")
	a.asClient(http.MethodGet, ownBooking).has("end_date", "2026-01-02T16:00:00.000Z")
	r := extend("2026-01-02T18:30:00.123Z").wants(200, "")
	if r.at("end_date") != "2026-01-02T18:30:00.123Z" || !strings.Contains(r.data(), `"duration_hours":10.5,`) {
		t.Error(r.text)
	}
	if charge := a.bookings.byID[42].Charges[2]; charge.Kind != rental.ExtensionCharge || charge.Amount != 4_125 {
		t.Errorf("charge %+v", charge)
	}
	extend("2026-01-02T18:00:00Z").wants(409, "booking_not_extendable")
	for _, body := range []string{``, `{}`, `{"end_date":null}`, `{"end_date":7}`} {
		a.asClient(http.MethodPost, ownBooking+"/extend", withJSON(body)).invalid("end_date")
	}
}

func TestClientBooking_RepeatedChangeReturnsThePresentState(t *testing.T) {
	a := newBookingAPI(t)
	cancel := func() *response {
		return a.asClient(http.MethodPost, "/api/v1/client/bookings/43/cancel", keyed("k-1"))
	}
	first, second := cancel().wants(200, ""), cancel().wants(200, "")
	first.heads("Idempotency-Replayed", "")
	second.heads("Idempotency-Replayed", "true")
	same(t, first.data(), second.data(), "data")
	if first.body.RequestID == second.body.RequestID || a.nudges != 1 || len(a.bookings.lines) != 1 {
		t.Error("the repeated cancellation was made again")
	}
	lines := a.history.all()
	if len(lines) != 1 || lines[0].Code != telematics.IdempotencyReplayed || lines[0].Outcome != "" || lines[0].Booking != 43 {
		t.Errorf("audit log entries %+v", lines)
	}
	a.asClient(http.MethodPost, ownBooking+"/cancel", keyed("k-1")).wants(422, "idempotency_mismatch")
	a.asClient(http.MethodPost, ownBooking+"/cancel", keyed("a b")).wants(422, "validation_failed")
}

func TestBookedVehicle_IsSeenFromTheTimeAtWhichItMayBeStarted(t *testing.T) {
	a := newBookingAPI(t)
	a.fleet.twins[42] = twin(42, 1, func(t *telematics.Twin) {
		t.Powertrain, t.Status = telematics.Electric, telematics.InUse
		t.Snapshot = reported(now, map[telematics.Field]any{
			telematics.Latitude: 48.137231, telematics.Longitude: 11.5, telematics.Battery: 81.0, telematics.IsLocked: true,
			telematics.SpeedKmh: 50.0,
		})
	})
	see := func(booking int) *response {
		return a.asClient(http.MethodGet, fmt.Sprintf("/api/v1/client/bookings/%d/vehicle", booking))
	}
	r := see(42).wants(200, "")
	r.has("location.latitude", 48.137231, "is_locked", true, "energy_percent", 81.0, "range_km", nil).meta("agency_id", 1.0)
	r.hides("speed")
	lines := a.history.all()
	if len(lines) != 1 || lines[0].Action != telematics.StatusRead || lines[0].Booking != 42 || lines[0].Vehicle != 42 {
		t.Errorf("audit log entries %+v, want one of the read", lines)
	}
	see(44).wants(404, "booking_not_found")
	see(46).wants(409, "booking_not_active")
	a.set(43, func(d *rental.BookingDetails) { d.Start = now.Add(15*time.Minute + time.Millisecond) })
	free := a.fleet.twins[42]
	free.Status = telematics.Booked
	a.fleet.twins[42] = free
	see(43).wants(409, "too_early")
	a.set(43, func(d *rental.BookingDetails) { d.Start = now.Add(15 * time.Minute) })
	see(43).wants(200, "")
	free.Status = telematics.InUse // by the client before
	a.fleet.twins[42] = free
	see(43).wants(409, "vehicle_not_available")
	free.Status = telematics.Booked
	a.fleet.twins[42] = free
	for code, change := range map[telematics.Code]func(*rental.BookingDetails){
		rental.BookingStateConflict: func(d *rental.BookingDetails) { d.Start, d.End = now.Add(-2*time.Hour), now },
		rental.VehicleNotAvailable:  func(d *rental.BookingDetails) { d.Vehicle.AgencyID = 2 },
	} { // it can no longer be started
		a.set(43, change)
		see(43).wants(409, string(code))
		a.set(43, func(d *rental.BookingDetails) { d.Start, d.End = now, now.Add(time.Hour) })
	}
	same(t, len(a.history.all()), 2, "reads in the audit log")
	a.history.err = gone{}
	see(42).wants(503, "service_unavailable")
}

func TestPaymentAction_HasTheSecretOfAPaymentToConfirm(t *testing.T) {
	a := newBookingAPI(t)
	action := func() *response { return a.asClient(http.MethodGet, ownBooking+"/payment-action") }
	if r := action().wants(409, "booking_state_conflict"); !strings.Contains(r.body.Message, "No payment of the booking waits") {
		t.Error(r.body.Message)
	}
	a.set(42, func(d *rental.BookingDetails) {
		d.Charges[0].State, d.Charges[1].State = rental.RequiresAction, rental.RequiresAction
	})
	// The payment has just been confirmed.
	a.payments.byID["pi_1"] = rental.Intent{ID: "pi_1", Status: rental.IntentSucceeded, Secret: "pi_1_secret"}
	action().wants(409, "booking_state_conflict")
	a.payments.byID["pi_2"] = rental.Intent{ID: "pi_2", Status: rental.IntentAction, Secret: "pi_2_secret_x"}
	r := action().wants(200, "")
	r.meta("agency_id", 1.0)
	same(t, r.data(), `{"client_secret":"pi_2_secret_x"}`, "data")
	// The bank refused it, and requires the client's confirmation again.
	a.payments.byID["pi_2"] = rental.Intent{ID: "pi_2", Status: rental.IntentPrepared, Secret: "pi_2_secret_x"}
	action().wants(200, "")
	if strings.Contains(a.log.String(), "secret_x") {
		t.Error("the secret is in the log")
	}
	assert.Equal(t, a.asClient(http.MethodGet, ownBooking).at("payment", "status"), "requires_action", "payment.status")
	// The deposit is no longer needed.
	a.set(42, func(d *rental.BookingDetails) { d.Charges[1].Goal = rental.Release })
	action().wants(409, "booking_state_conflict")
	a.set(42, func(d *rental.BookingDetails) { d.Charges[1].Goal = rental.Hold })
	a.payments.err = &rental.ProcessorError{Kind: rental.MayHaveHappened, Cause: errors.New("timeout of api.example.com")}
	failed := action().wants(503, "payment_processor_unavailable").wantsRetryAfter("10")
	failed.hides("example.com")
	same(t, failed.body.Error.Retryable, true, "retryable")
}
