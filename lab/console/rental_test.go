package console_test

import (
	"fmt"
	"testing"
	"time"

	"motorpool/lab/consoletest"
)

// book makes a booking of a vehicle that begins now, and returns the address of its page.
func book(p *consoletest.Page, vehicle int) string {
	p.Helper()
	now := time.Now().UTC()
	id := consoletest.Value[int64](p, fmt.Sprintf(
		`fetch('../api/v1/admin/bookings', { method: 'POST',
			headers: { 'Content-Type': 'application/json', 'Idempotency-Key': crypto.randomUUID() },
			body: JSON.stringify({ agency_id: 1, vehicle_id: %d, client: 'client-1', pickup_station_id: 1, dropoff_station_id: 1,
				start_date: '%s', end_date: '%s' }) })
		.then((r) => r.json()).then((r) => r.data?.id ?? 0)`,
		vehicle, now.Format(time.RFC3339), now.Add(2*time.Hour).Format(time.RFC3339),
	))
	if id == 0 {
		p.Fatalf("vehicle %d cannot be booked", vehicle)
	}
	return fmt.Sprintf("#/bookings/%d", id)
}

// move orders a start, pause, resumption or end, and waits until it is done.
func move(p *consoletest.Page, action, kind string) {
	p.Helper()
	p.Click(`[data-action="` + action + `"]`)
	p.Click(`dialog[open] [data-send="` + action + `"]`)
	p.Gone("dialog[open]")
	p.See(fmt.Sprintf(`section[data-transition][data-kind="%s"][data-state="done"] [data-step="book"][data-state="done"]`, kind))
}

// Car 4 is in no other test. Another person's page follows by events.
func (d *desk) rentsForAClient(t *testing.T) {
	p, theirs := d.page(t, d.operator), d.page(t, d.viewer)
	p.NeedAxe()
	p.Expect("status of 409")
	p.Open("#/")
	booking := book(p, 4)
	p.Open(booking)
	theirs.Open(booking)
	theirs.See(`[data-action="rental/start"][aria-disabled="true"]`)
	p.See(`[data-line="tax"]`)
	p.Gone(`[data-action="rental/end"]`)
	p.Click(`[data-action="start"]`)
	p.See("dialog[open]", "No command is sent")
	p.Press("Escape")
	move(p, "rental/start", "start")
	p.See(`[data-status="active"]`)
	theirs.See(`[data-status="active"] section[data-kind="start"][data-state="done"]`)
	move(p, "rental/pause", "pause")
	p.See(".bar strong", "paused")
	theirs.See(`section[data-kind="pause"][data-state="done"]`)

	// Where the return is not possible, the dialog has its conditions. Which ones is the vehicle's.
	p.Answer("POST", booking[len("#/"):]+"/rental/end", 409, `{"success":false,"message":"No.","error":{"code":"return_not_possible",
		"retryable":true,"outcome":"not_executed","reason":null,"detail":null,"checks":[
			{"name":"ignition","ok":true,"expected":"off","reported":"off"},
			{"name":"doors","ok":false,"expected":"closed","reported":"front left open"}]}}`)
	p.Click(`[data-action="rental/end"]`)
	p.Click(`dialog[open] [data-send="rental/end"]`)
	p.See(`dialog[open] [data-check="doors"][data-ok="false"]`, "front left open")
	for _, theme := range []string{"light", "dark"} {
		p.Dark(theme == "dark")
		p.Audit("a return that is not possible, " + theme)
		d.picture(p, "a return that is not possible", theme, 1280)
		p.Resize(narrow, 780)
		p.Fits("a return that is not possible")
		d.picture(p, "a return that is not possible", theme, narrow)
		p.Resize(1280, 800)
	}
	p.Unanswer()
	p.Press("Escape")
	p.Gone("dialog[open]")

	p.Click(`[data-action="override"]`)
	p.Fill(`dialog[open] [name="reason"]`, "the client has left it")
	p.Click(`dialog[open] [data-send="override"]`)
	p.Gone("dialog[open]")
	p.See(`section[data-kind="end"][data-state="done"]`, "the client has left it")
	p.See(`[data-status="completed"]`)
	p.Gone(`[data-action="rental/end"]`)
	theirs.See(`[data-status="completed"] section[data-kind="end"]`)
	p.Click("[data-all] summary")
	p.See(`tr[data-transition][data-state="done"]`, "Start")
	for _, theme := range []string{"light", "dark"} {
		p.Dark(theme == "dark")
		p.Audit("a rental, " + theme)
		d.picture(p, "a rental", theme, 1280)
		p.Resize(narrow, 780)
		p.Fits("a rental")
		d.picture(p, "a rental", theme, narrow)
		p.Resize(1280, 800)
	}
}
