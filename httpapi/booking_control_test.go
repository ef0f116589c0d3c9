package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/httpapi"
	"motorpool/httpapi/request"
	"motorpool/internal/assert"
	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestClientControl_LocksAndUnlocksTheVehicleOfAnActiveBooking(t *testing.T) {
	a := newBookingAPI(t)
	for _, action := range []telematics.Action{telematics.Lock, telematics.Unlock} {
		r := a.asClient(http.MethodPost, ownBooking+"/control/"+string(action), withHeader("Prefer", "respond-async, wait=20"),
			keyed("k-"+string(action))).wants(200, "")
		r.has("action", string(action), "state", "succeeded", "vehicle_id", 42.0, "booking_id", 42.0).meta("agency_id", 1.0)
		same(t, r.header.Get("Preference-Applied"), "wait=20", "Preference-Applied")
		order := a.controller.last()
		like(t, order, delivery.Order{
			Vehicle: 42, Action: action, Actor: telematics.Actor{Subject: "client-1", Role: telematics.Client, Agency: 1},
			Budget: 20 * time.Second, RequestID: uuid.MustParse(r.body.RequestID), Booking: 42,
		}, "order")
		same(t, order.Idempotency.Key, "k-"+string(action), "key")
	}
	a.wantsEntries()
}

func TestClientControl_NeedsAnActiveBookingOfTheClient(t *testing.T) {
	a := newBookingAPI(t)
	for id, after := range []string{43: "30", 46: "3600"} {
		if after == "" {
			continue
		}
		r := a.asClient(http.MethodPost, fmt.Sprintf("/api/v1/client/bookings/%d/control/unlock", id)).wants(409, "booking_not_active").
			wantsRetryAfter(after)
		if r.body.Error.Outcome == nil || *r.body.Error.Outcome != "not_executed" {
			t.Error(r.text)
		}
	}
	a.asClient(http.MethodPost, "/api/v1/client/bookings/44/control/unlock").wants(404, "booking_not_found")
	same(t, len(a.controller.orders), 0, "orders %+v, want none", a.controller.orders)
	lines := a.history.all()
	if len(lines) != 3 {
		t.Fatalf("audit log entries %+v, want 3", lines)
	}
	for i, want := range []struct {
		booking int64
		vehicle telematics.VehicleID
		code    telematics.Code
	}{{43, 42, rental.BookingNotActive}, {46, 42, rental.BookingNotActive}, {44, 0, rental.BookingNotFound}} {
		line := lines[i]
		like(t, line, logged{Action: "command.unlock", Outcome: telematics.NotExecuted, Booking: want.booking,
			Vehicle: want.vehicle, Code: want.code, Agency: 1, Actor: telematics.Actor{Role: telematics.Client}}, "entry")
	}
}

func TestClientControl_ReasonOfAHaltIsForAdministrators(t *testing.T) {
	a := newBookingAPI(t)
	for _, halted := range []error{telematics.Halted(telematics.Halt{Why: "incident 7"}),
		(&telematics.Command{ID: uuid.New(), State: telematics.Expired, Reason: telematics.ByHalt, Detail: "incident 7"}).Err()} {
		a.controller.fails(halted)
		a.asClient(http.MethodPost, ownBooking+"/control/unlock").wants(503, "commands_halted").hides("incident 7")
		a.post(vehicles42+"/control/unlock").wants(503, "commands_halted").mentions("incident 7")
	}
}

func TestClientControl_FailsLikeAnAdministratorsCommand(t *testing.T) {
	a := newBookingAPI(t)
	a.controller.ends(telematics.Unknown)
	r := a.asClient(http.MethodPost, ownBooking+"/control/lock").wants(504, "command_timeout").wantsRetryAfter("10")
	if *r.body.Error.Outcome != "unknown" || r.body.Error.CommandID == nil {
		t.Error(r.text)
	}
	a.controller.fails(telematics.Conflict(telematics.Lock, telematics.DoorOpen))
	a.asClient(http.MethodPost, ownBooking+"/control/lock").wants(409, "vehicle_state_conflict").wantsRetryAfter("30")
	a.bookings.err = gone{}
	away := a.asClient(http.MethodPost, ownBooking+"/control/lock").wants(503, "telematics_unavailable").wantsRetryAfter("5")
	same(t, *away.body.Error.Outcome, "not_executed", "*away.body.Error.Outcome")
	a.wantsEntries(logged{Code: telematics.TelematicsUnavailable, Outcome: telematics.NotExecuted})
}

func TestClientControl_CountsAgainstTheVehiclesLimit(t *testing.T) {
	l := &limiter{}
	a := newBookingAPI(t, limitedBy(l, request.Rates{Vehicle: 4, Admin: 9, Client: 9}))
	lockBooked := func(change ...func(*http.Request)) *response {
		return a.asClient(http.MethodPost, ownBooking+"/control/lock", change...)
	}
	lockBooked().wants(200, "").wantsQuota("2", "1", "6")
	lockBooked().wants(200, "")
	r := lockBooked().wants(429, "rate_limited").wantsQuota("2", "0", "3").wantsRetryAfter("3")
	same(t, *r.body.Error.Outcome, "not_executed", "outcome")
	same(t, a.controller.count(), 2, "orders")
	a.wantsEntries(logged{Code: "rate_limited", Vehicle: 42, Booking: 42})
	for _, want := range []int{200, 200, 429} { // the other half is for staff
		a.post(lock).answers(want)
	}
	// A read does not count against the vehicle's limit.
	a.asClient(http.MethodGet, ownBooking).wants(200, "")
	same(t, l.taken["vehicle:42"], 4, "counted %v, want 4 for the vehicle", l.taken)
}

// made finds each key, with the same command.
type made struct {
	*bulks
	command telematics.Command
	key     *telematics.IdempotencyKey // of the first lookup
}

func (m *made) FindByKey(_ context.Context, k telematics.IdempotencyKey) (delivery.KeyResult, bool, error) {
	if m.key == nil {
		m.key = &k
	}
	return delivery.KeyResult{Fingerprint: m.key.Fingerprint, Command: m.command}, true, nil
}

func TestBookingCommand_RepeatedAfterTheEndReturnsItsResult(t *testing.T) {
	for state, want := range map[telematics.State]struct {
		status int
		code   string
	}{telematics.Succeeded: {200, ""}, telematics.Unknown: {504, "command_timeout"}, telematics.Sent: {409, "idempotency_in_progress"}} {
		m := &made{command: settled(delivery.Order{Vehicle: 42, Action: telematics.Lock}, state)}
		a := newBookingAPI(t, func(c *httpapi.Config) { c.Bulks = m })
		lockIt := func() *response {
			return a.asClient(http.MethodPost, "/api/v1/client/bookings/46/control/lock", keyed("k"))
		}
		lockIt().wants(want.status, want.code).heads("Idempotency-Replayed", "true")
		a.wantsEntries(logged{Code: telematics.IdempotencyReplayed, Command: m.command.ID})
		// The same key with another command is refused as for any other booking.
		a.asClient(http.MethodPost, "/api/v1/client/bookings/46/control/unlock", keyed("k")).wants(409, "booking_not_active")
		same(t, a.controller.count(), 0, "%s: the controller got an order", state)
	}
}

// An instance whose clock is wrong would date bookings wrongly.
func TestBooking_NotChangedByAWrongClock(t *testing.T) {
	var wrong error
	a := newBookingAPI(t, func(c *httpapi.Config) {
		c.CompareClock = func(context.Context) error { return wrong }
	})
	key := keyed("k")
	for _, err := range []error{telematics.Unavailable("the exact time", errors.New("three hours behind")),
		errors.New("postgres does not reply")} {
		wrong = err
		a.post("/api/v1/admin/bookings/43/start").wants(503, "service_unavailable")
		a.post("/api/v1/admin/bookings/42/end").wants(503, "service_unavailable")
		a.post("/api/v1/admin/bookings", withJSON(newBooking)).wants(503, "service_unavailable")
		a.post("/api/v1/admin/bookings/42/fees", withJSON(`{"kind":"cleaning","amount":10,"reason":"sand"}`), key).
			wants(503, "service_unavailable")
		a.asClient(http.MethodPost, ownBooking+"/extend", withJSON(fmt.Sprintf(`{"end_date":%q}`, now.Add(20*time.Hour).
			Format(time.RFC3339)))).wants(503, "service_unavailable")
	}
	wrong = gone{}
	a.post("/api/v1/admin/bookings/43/start").wants(503, "service_unavailable").
		says("A server that this request needs is not available; try again.")
	wrong = nil
	a.post("/api/v1/admin/bookings/43/start").wants(200, "")
}

func TestClientControl_IsCheckedAgainOnceItHasTheLane(t *testing.T) {
	a := newBookingAPI(t)
	var asked *delivery.Order
	a.controller.send = func(_ context.Context, o delivery.Order) (telematics.Command, error) {
		asked = &o
		return settled(o, telematics.Succeeded), nil
	}
	a.asClient(http.MethodPost, ownBooking+"/control/unlock").wants(200, "")
	assert.NoError(t, asked.Allowed(t.Context()), "while the booking is active")
	a.set(42, func(d *rental.BookingDetails) {
		d.Transition = &rental.Transition{Kind: rental.EndRental, State: rental.TransitionOpen, Step: rental.StepCommand}
	})
	if err := asked.Allowed(t.Context()); err == nil || !strings.Contains(err.Error(), "transition_open") {
		t.Errorf("while the rental is being ended: %v", err)
	}
	a.asClient(http.MethodPost, ownBooking+"/control/unlock").wants(409, "transition_open")
	a.asClient(http.MethodPost, ownBooking+"/control/lock").wants(200, "")
	if asked.Allowed != nil {
		t.Error("a lock is checked again: it is always allowed")
	}
}
