package service_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"motorpool/internal/app"
)

// refusal is a row of the table of errors.
type refusal struct {
	name      string
	answer    answer
	status    int
	code      string
	retryable bool
	after     string // error.retry_after; empty: none; *: any
}

// check compares the response with the row, and returns the row as text.
func (f refusal) check(t *testing.T) string {
	t.Helper()
	after := "" // ask has compared the header with it
	if n, ok := f.answer.at("error.retry_after").(json.Number); ok {
		after = n.String()
	}
	f.answer.wants(f.status, f.code)
	retryable, _ := f.answer.at("error.retryable").(bool)
	if retryable != f.retryable || after != f.after && (f.after != "*" || after == "") {
		t.Errorf("%s: retryable %v with retry_after %q, want %v with %q", f.name, retryable, after, f.retryable, f.after)
	}
	return fmt.Sprintf(
		"\n  %-44s %d %-30s %-5v %-4s %s", f.name, f.answer.status, f.answer.code(), retryable, after,
		f.answer.word("message"),
	)
}

func checkAll(t *testing.T, rows []refusal) {
	t.Helper()
	var table strings.Builder
	for _, row := range rows {
		table.WriteString(row.check(t))
	}
	t.Log(table.String())
}

// What Postgres, Redis and the processor decide; package httpapi has the rest of the table.
func TestRefusals_OfClientsMatchTheTable(t *testing.T) {
	t.Parallel()
	r := startStack(t, 1).rent()
	i := r.open()
	c, other, poor, foreign := r.newCustomer(), r.newCustomer(), r.newCustomer(), r.newCustomerOf(2)
	c.add(i, "pm_card_visa", true)
	other.add(i, "pm_card_visa", true)
	card := c.add(i, "pm_card_jcb", false)
	ofCard := fmt.Sprintf("/payment-methods/%d", card)
	with := fmt.Sprintf(`,"payment_method_id":%d`, card)
	now := fromNow(time.Minute)
	active := c.book(i, 1, now, with)
	upcoming := c.book(i, 1, fromNow(100*time.Hour), "")
	i.start(active)
	c.awaitPayment(i, active, "paid")
	open := func(by customer, when hours, more string) answer {
		return i.asAdmin(http.MethodPost, "/api/v1/admin/bookings", by.draft(1, when, more))
	}
	later := fmt.Sprintf(`{"end_date":%q}`, now.to.Add(200*time.Hour).Format(time.RFC3339Nano))
	theirs, unknown := other.get(i, ownOf(active)), other.get(i, ownOf(4711))
	if strings.ReplaceAll(theirs.word("message"), fmt.Sprint(active), "4711") != unknown.word("message") || theirs.text == "" {
		r.Errorf("the response for another client's booking is %s, for an unknown booking %s; want the same", theirs.text, unknown.text)
	}
	const notFound = "booking_not_found"
	checkAll(r.T, []refusal{
		{"another client's booking", theirs, 404, notFound, false, ""},
		{"another agency's booking", foreign.get(i, ownOf(active)), 404, notFound, false, ""},
		{"another client's booking is cancelled", other.post(i, ownOf(upcoming)+"/cancel", ""), 404, notFound, false, ""},
		{"another client's booking is extended", other.post(i, ownOf(active)+"/extend", later), 404, notFound, false, ""},
		{"another client's vehicle is unlocked", other.post(i, ownOf(active)+"/control/unlock", ""), 404, notFound, false, ""},
		{"another client's vehicle", other.get(i, ownOf(active)+"/vehicle"), 404, notFound, false, ""},
		{"another client's payment", other.get(i, ownOf(active)+"/payment-action"), 404, notFound, false, ""},
		{"another client's card is removed", other.remove(i, ofCard), 404, "payment_method_not_found", false, ""},
		{"another client's card is the default", other.post(i, ofCard+"/default", ""), 404, "payment_method_not_found", false, ""},
		{"another client's card", open(other, fromNow(50*time.Hour), with), 422, "payment_method_invalid", false, ""},
		{"no card", open(poor, fromNow(50*time.Hour), ""), 422, "payment_method_required", false, ""},
		{"the vehicle is booked for that time", open(other, now, ""), 409, "vehicle_not_available", false, ""},
		{"into the next booking", c.post(i, ownOf(active)+"/extend", later), 409, "vehicle_not_available", false, ""},
		{"started twice", i.asAdmin(http.MethodPost, adminOf(active)+"/start", ""), 409, "booking_state_conflict", false, ""},
		{"the card of an active booking is removed", c.remove(i, ofCard), 400, "payment_method_in_use", false, ""},
		{
			"the bank refuses the card", c.post(i, "/payment-methods", `{"payment_method_id":"pm_card_visa_chargeDeclined"}`),
			422, "card_declined", false, "",
		},
	})
	checkAll(r.T, r.refusedForAWhile(i, c))
}

// refusedForAWhile returns rows about limits and the processor.
func (r *rentals) refusedForAWhile(i *instance, c customer) []refusal {
	limited := r.serve(r.paid, func(c *app.Config) { c.ClientRate, c.CardRate = 3, 1 })
	hasty, careful := r.newCustomer(), r.newCustomer()
	for left := range 3 {
		first := hasty.get(limited, "/bookings").wants(200, "")
		if h := first.header; h.Get("RateLimit-Limit") != "3" || h.Get("RateLimit-Remaining") != fmt.Sprint(2-left) ||
			h.Get("RateLimit-Reset") == "" {
			r.Errorf("request %d: limit headers %v", left+1, h)
		}
	}
	tooMany := overLimit(func() answer { return hasty.get(limited, "/bookings") })
	careful.add(limited, "pm_card_visa", true)
	tooManyCards := overLimit(func() answer {
		return careful.post(limited, "/payment-methods", `{"payment_method_id":"pm_card_amex"}`)
	})
	for _, a := range []answer{tooMany, tooManyCards} {
		if a.header.Get("RateLimit-Remaining") != "0" || a.header.Get("RateLimit-Reset") != a.header.Get("Retry-After") {
			r.Errorf("over the limit: %v", a.header)
		}
	}

	r.must(r.processor.Kill())
	away := c.post(i, "/payment-methods", `{"payment_method_id":"pm_card_discover"}`)
	r.must(r.processor.Restart())
	c.post(i, "/payment-methods", `{"payment_method_id":"pm_card_discover"}`).wants(201, "")
	return []refusal{
		{"too many requests", tooMany, 429, "rate_limited", true, "*"},
		{"too many cards", tooManyCards, 429, "rate_limited", true, "*"},
		{"the payment processor is unavailable", away, 503, "payment_processor_unavailable", true, "10"},
	}
}

// overLimit repeats a request until it is refused: on a busy machine Redis may not count for a
// moment, and then no request is refused for its rate.
func overLimit(call func() answer) answer {
	a := call()
	for end := time.Now().Add(30 * time.Second); a.status != http.StatusTooManyRequests && time.Now().Before(end); a = call() {
		time.Sleep(100 * time.Millisecond)
	}
	return a
}
