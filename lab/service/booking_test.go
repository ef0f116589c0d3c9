package service_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/simulator"
	"motorpool/telematics"
)

// vehicleStatus returns the status of a vehicle that an administrator reads.
func (i *instance) vehicleStatus(vehicle int) string {
	i.Helper()
	return i.asAdmin(http.MethodGet, fmt.Sprintf("/api/v1/admin/vehicles/%d", vehicle), "").wants(200, "").word("data.status")
}

// story returns the audit log entries of a booking, oldest first: role, action, and the code of an
// error. Commands that were not sent on a busy machine, which callers repeat, are left out.
func (i *instance) story(booking int64) []string {
	i.Helper()
	var lines []string
	entries := i.asAdmin(http.MethodGet, fmt.Sprintf("/api/v1/admin/activity?booking_id=%d&limit=200", booking), "")
	for _, one := range entries.wants(200, "").list("data") {
		line, _ := one.(map[string]any)
		code, _ := line["code"].(string)
		if code == "telematics_unavailable" {
			continue
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%v %v %s", line["role"], line["action"], code)))
	}
	slices.Reverse(lines)
	return lines
}

// started returns the actions that the car started, by its own record.
func started(recorder *simulator.Recorder) []telematics.Action {
	var actions []telematics.Action
	for _, e := range recorder.Events() {
		if e.Kind == simulator.CommandStarted {
			actions = append(actions, e.Action)
		}
	}
	return actions
}

func TestBooking_EveryInstanceSeesItImmediately(t *testing.T) {
	t.Parallel()
	r := startStack(t, 1).rent()
	here, there := r.open(), r.serve(r.paid)
	both := []*instance{here, there}
	var recorder simulator.Recorder
	car := r.drive(&recorder, healthy).Cars()[0]
	c, other := r.newCustomer(), r.newCustomer()
	c.add(here, "pm_card_visa", true)
	seen := func(booking int64, state, vehicle string) {
		r.Helper()
		for _, i := range both {
			c.get(i, ownOf(booking)).wants(200, "").has("data.status", fmt.Sprintf("%q", state))
			assert.Equal(r, i.vehicleStatus(1), vehicle, "the vehicle of a booking that is %s", state)
		}
	}
	when := fromNow(time.Minute)
	booking := c.book(here, 1, when, "")
	seen(booking, "upcoming", "booked")
	c.post(there, ownOf(booking)+"/control/unlock", "").wants(409, "booking_not_active").has("error.outcome", `"not_executed"`)

	there.start(booking)
	seen(booking, "active", "in_use")
	c.awaitPayment(here, booking, "paid")
	for n, action := range []telematics.Action{telematics.Unlock, telematics.Lock, telematics.Unlock} {
		a := c.post(both[n%2], ownOf(booking)+"/control/"+string(action), "").wants(200, "").has(
			"data.action", fmt.Sprintf("%q", action), "data.state", `"succeeded"`, "data.outcome", `"executed"`,
			"data.requested_by", fmt.Sprintf("%q", c.actor.Subject),
		)
		if locked := car.Body().Locked; locked != (action == telematics.Lock) {
			r.Errorf("after %s the car is locked: %v, want the opposite; %s", action, locked, a.text)
		}
	}
	other.post(here, ownOf(booking)+"/control/lock", "").wants(404, "booking_not_found")
	want := []telematics.Action{telematics.Unlock, telematics.Lock, telematics.Unlock}
	assert.EqualSlices(r, started(&recorder), want, "the car executed")

	extend := func(i *instance, by time.Duration) answer {
		return c.post(i, ownOf(booking)+"/extend", fmt.Sprintf(`{"end_date":%q}`, when.to.Add(by).Format(time.RFC3339Nano)))
	}
	same := extend(here, 0).wants(200, "")
	same.has("data.pricing.total", "332.00", "data.end_date", fmt.Sprintf("%q", when.to.Format("2006-01-02T15:04:05.000Z")))
	if here.charge(booking, "extension") != nil {
		r.Errorf("extending to the present end was charged: %s", same.text)
	}
	extend(there, 2*time.Hour).wants(200, "").has(
		"data.pricing.duration_hours", "10", "data.pricing.subtotal", "150.00", "data.pricing.tax", "15.00",
		"data.pricing.total", "365.00",
	)
	c.awaitPayment(here, booking, "paid").has("data.pricing.total", "365.00", "data.can_extend", "true")
	if m := r.movements(booking); m["extension 1"].Captured != 3300 || len(m) != 3 {
		r.Errorf("the processor's ledger is %+v", m)
	}

	here.asAdmin(http.MethodPost, adminOf(booking)+"/end", "").wants(200, "")
	seen(booking, "completed", "available")
	c.post(there, ownOf(booking)+"/control/lock", "").wants(409, "booking_not_active")
	r.eventually(
		10*time.Second, "the deposit is released",
		func() bool { return there.charge(booking, "deposit")["state"] == "released" },
	)

	given := c.book(there, 1, fromNow(time.Hour), "")
	seen(given, "upcoming", "booked")
	c.post(here, ownOf(given)+"/cancel", "").wants(200, "").has("data.can_cancel", "false")
	seen(given, "cancelled", "available")

	r.hasAllEntries(here, booking)
	assert.EqualSlices(r, here.story(given), []string{"admin booking.create", "client booking.cancel"}, "the audit log")
}

// hasAllEntries checks that the audit log has an entry for everything that happened to the booking,
// in order; automatic entries may come in between.
func (r *rentals) hasAllEntries(i *instance, booking int64) {
	r.Helper()
	story := i.story(booking)
	var asked []string
	alone := map[string]int{}
	for _, line := range story {
		if strings.HasPrefix(line, "system ") {
			alone[line]++
			continue
		}
		asked = append(asked, line)
	}
	want := []string{
		"admin booking.create", "client command.unlock booking_not_active", "admin booking.start",
		"client command.unlock", "client command.lock", "client command.unlock",
		"client command.lock booking_not_found", "client booking.extend", "client booking.extend", "admin booking.end",
		"client command.lock booking_not_active",
	}
	if !slices.Equal(asked, want) {
		r.Errorf("the audit log has\n%s\nwant\n%s", strings.Join(asked, "\n"), strings.Join(want, "\n"))
	}
	if alone["system charge.start"] != 1 || alone["system charge.deposit"] != 2 || alone["system charge.extension"] != 1 ||
		len(alone) != 3 {
		r.Errorf("the audit log has the charges %v", alone)
	}
	r.Logf("the audit log of booking %d:\n%s", booking, strings.Join(story, "\n"))
}
