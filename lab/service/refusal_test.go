package service_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"motorpool/broker"
	"motorpool/internal/app"
	"motorpool/internal/assert"
	"motorpool/simulator"
	"motorpool/simulator/sandbox"
	"motorpool/store/commands"
	"motorpool/telematics"
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

// tenCards are ten different cards.
var tenCards = []string{
	"pm_card_visa", "pm_card_visa_debit", "pm_card_mastercard", "pm_card_mastercard_debit", "pm_card_mastercard_prepaid",
	"pm_card_amex", "pm_card_discover", "pm_card_diners", "pm_card_jcb", "pm_card_unionpay",
}

func TestRefusals_OfClientsMatchTheTable(t *testing.T) {
	t.Parallel()
	r := startStack(t, 1).rent()
	i := r.open()
	c := r.newCustomer()
	visa := c.add(i, "pm_card_visa", true)
	keyed := withHeader("Idempotency-Key", "k")
	add := func(body string, change ...func(*signedRequest)) answer {
		return c.post(i, "/payment-methods", body, change...)
	}
	named := add(`{"payment_method_id":"pm_card_amex"}`, keyed).wants(201, "")

	rows := []refusal{
		{"an unknown booking", c.get(i, "/bookings/4711"), 404, "booking_not_found", false, ""},
		{"an unknown card is removed", c.remove(i, "/payment-methods/4711"), 404, "payment_method_not_found", false, ""},
		{
			"an unknown card becomes the default", c.post(i, "/payment-methods/4711/default", ""), 404,
			"payment_method_not_found", false, "",
		},
		{"the default is removed", c.remove(i, fmt.Sprintf("/payment-methods/%d", visa)), 400, "default_payment_method", false, ""},
		{"the bank refuses the card", add(`{"payment_method_id":"pm_card_visa_chargeDeclined"}`), 422, "card_declined", false, ""},
		{"the processor does not know the card", add(`{"payment_method_id":"pm_4711"}`), 422, "payment_method_invalid", false, ""},
		{
			"another request with the same key", add(`{"payment_method_id":"pm_card_visa"}`, keyed), 422,
			"idempotency_mismatch", false, "",
		},
	}
	rows = append(rows, r.refusedBookings(i, c)...)
	rows = append(rows, r.refusedElsewhere(i, c)...)
	checkAll(r.T, rows)

	if again := add(`{"payment_method_id":"pm_card_amex"}`, keyed).wants(201, ""); again.header.Get("Idempotency-Replayed") != "true" ||
		again.number("data.id") != named.number("data.id") {
		r.Errorf("the repeated request: header %v: %s", again.header, again.text)
	}
	message := c.remove(i, fmt.Sprintf("/payment-methods/%d", visa)).word("message")
	if !strings.Contains(message, "default payment method cannot be removed") {
		r.Errorf("the removal of the default has the message %s", message)
	}
	removals := `select count(*) from activity
			where actor_subject = $1 and action = 'payment_method.remove' and code = 'default_payment_method'`
	assert.Equal(r, c.rows(removals, c.actor.Subject), 2, "audit entries of refused removals")
}

// refusedBookings returns rows about bookings. They leave the vehicle available.
func (r *rentals) refusedBookings(i *instance, c customer) []refusal {
	other, poor := r.newCustomer(), r.newCustomer()
	other.add(i, "pm_card_visa", true)
	card := c.add(i, "pm_card_jcb", false)
	now := fromNow(time.Minute)
	active := c.book(i, 1, now, fmt.Sprintf(`,"payment_method_id":%d`, card))
	upcoming := c.book(i, 1, fromNow(100*time.Hour), "")
	begun := i.start(active)
	c.awaitPayment(i, active, "paid")
	admin := func(method string, booking int64, what, body string, headers ...string) answer {
		return i.asAdmin(method, adminOf(booking)+what, body, headers...)
	}
	open := func(by customer, when hours, more string) answer {
		return i.asAdmin(http.MethodPost, "/api/v1/admin/bookings", by.draft(1, when, more))
	}
	later := fmt.Sprintf(`{"end_date":%q}`, now.to.Add(200*time.Hour).Format(time.RFC3339Nano))
	earlier := fmt.Sprintf(`{"end_date":%q}`, now.to.Add(-time.Hour).Format(time.RFC3339Nano))
	theirs, unknown := other.get(i, ownOf(active)), other.get(i, ownOf(4711))
	if strings.ReplaceAll(theirs.word("message"), fmt.Sprint(active), "4711") != unknown.word("message") || theirs.text == "" {
		r.Errorf("the response for another client's booking is %s, for an unknown booking %s; want the same", theirs.text, unknown.text)
	}
	foreign := r.newCustomerOf(2)
	refused := []refusal{
		{"another client's booking", theirs, 404, "booking_not_found", false, ""},
		{"another agency's booking", foreign.get(i, ownOf(active)), 404, "booking_not_found", false, ""},
		{"another client's booking is cancelled", other.post(i, ownOf(upcoming)+"/cancel", ""), 404, "booking_not_found", false, ""},
		{"another client's booking is extended", other.post(i, ownOf(active)+"/extend", later), 404, "booking_not_found", false, ""},
		{"another client's vehicle is unlocked", other.post(i, ownOf(active)+"/control/unlock", ""), 404, "booking_not_found", false, ""},
		{"another client's vehicle", other.get(i, ownOf(active)+"/vehicle"), 404, "booking_not_found", false, ""},
		{"another client's payment", other.get(i, ownOf(active)+"/payment-action"), 404, "booking_not_found", false, ""},
		{
			"another client's card is removed", other.remove(i, fmt.Sprintf("/payment-methods/%d", card)), 404,
			"payment_method_not_found", false, "",
		},
		{
			"another client's card becomes the default",
			other.post(i, fmt.Sprintf("/payment-methods/%d/default", card), ""), 404, "payment_method_not_found", false,
			"",
		},
		{"the vehicle is booked for that time", open(other, now, ""), 409, "vehicle_not_available", false, ""},
		{"no card", open(poor, fromNow(50*time.Hour), ""), 422, "payment_method_required", false, ""},
		{
			"another client's card", open(other, fromNow(50*time.Hour), fmt.Sprintf(`,"payment_method_id":%d`, card)),
			422, "payment_method_invalid", false, "",
		},
		{"in the past", open(other, fromNow(-time.Hour), ""), 422, "validation_failed", false, ""},
		{"an active booking is cancelled", c.post(i, ownOf(active)+"/cancel", ""), 409, "booking_not_cancellable", false, ""},
		{"into the next booking", c.post(i, ownOf(active)+"/extend", later), 409, "vehicle_not_available", false, ""},
		{"to an earlier end", c.post(i, ownOf(active)+"/extend", earlier), 409, "booking_not_extendable", false, ""},
		{"no payment waits", c.get(i, ownOf(active)+"/payment-action"), 409, "booking_state_conflict", false, ""},
		{"started twice", admin("POST", active, "/start", ""), 409, "booking_state_conflict", false, ""},
		{"two active bookings", admin("POST", upcoming, "/start", ""), 409, "vehicle_not_available", false, ""},
		{"an upcoming booking is ended", admin("POST", upcoming, "/end", ""), 409, "booking_not_active", false, ""},
		{"the vehicle of an upcoming booking", c.post(i, ownOf(upcoming)+"/control/lock", ""), 409, "booking_not_active", false, "30"},
		{
			"the card of an active booking is removed", c.remove(i, fmt.Sprintf("/payment-methods/%d", card)), 400,
			"payment_method_in_use", false, "",
		},
		{
			"more than was paid",
			admin("POST", active, "/refund", `{"amount":132.01,"reason":"x"}`, "Idempotency-Key", "r1"), 422,
			"refund_exceeds_paid", false, "",
		},
		{
			"more than is held",
			admin("POST", active, "/deposit/capture", `{"amount":200.01,"reason":"x"}`, "Idempotency-Key", "c1"), 409,
			"booking_state_conflict", false, "",
		},
		{
			"a fee of an upcoming booking",
			admin("POST", upcoming, "/fees", `{"kind":"cleaning","amount":5,"reason":"x"}`, "Idempotency-Key", "f2"),
			409, "booking_state_conflict", false, "",
		},
	}
	begun.has("data.status", `"active"`)
	ended := admin("POST", active, "/end", "").wants(200, "")
	ended.has("data.status", `"completed"`)
	c.post(i, ownOf(upcoming)+"/cancel", "").wants(200, "")
	return append(refused,
		refusal{"a completed booking is extended", c.post(i, ownOf(active)+"/extend", later), 409, "booking_not_extendable", false, ""},
		refusal{
			"the vehicle of a completed booking", c.post(i, ownOf(active)+"/control/unlock", ""), 409,
			"booking_not_active", false, "3600",
		},
		refusal{"cancelled twice", c.post(i, ownOf(upcoming)+"/cancel", ""), 409, "booking_not_cancellable", false, ""},
	)
}

// refusedElsewhere returns rows about limits, the processor and its notices.
func (r *rentals) refusedElsewhere(i *instance, c customer) []refusal {
	rich := r.newCustomer()
	for _, card := range tenCards {
		rich.add(i, card, false)
	}
	eleventh := rich.post(i, "/payment-methods", `{"payment_method_id":"pm_card_authenticationRequired"}`)
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

	r.must(
		r.processor.Break(
			sandbox.Fault{Kind: sandbox.Slow, Method: http.MethodPost, Path: "/v1/payment_methods/*/attach", For: 300 * time.Millisecond},
		),
	)
	r.must(r.processor.Kill())
	away := c.post(i, "/payment-methods", `{"payment_method_id":"pm_card_discover"}`)
	r.must(r.processor.Restart())
	r.processor.Heal()
	back := c.post(i, "/payment-methods", `{"payment_method_id":"pm_card_discover"}`)
	back.wants(201, "")
	return []refusal{
		{"an eleventh card", eleventh, 422, "payment_method_limit", false, ""},
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

func TestRefusals_CommandsOfClientsMatchThoseOfAdministrators(t *testing.T) {
	t.Parallel()
	r := embeddedStack(t, 1).rent()
	i, second := r.open(), r.serve(r.paid)
	var recorder simulator.Recorder
	cars := r.drive(&recorder, func(telematics.VehicleID) simulator.Profile { return simulator.Profile{} })
	car := cars.Cars()[0]
	c := r.newCustomer()
	c.add(i, "pm_card_visa", true)
	booking := c.book(i, 1, fromNow(time.Minute), "")
	i.start(booking)
	lock := func(at *instance, change ...func(*signedRequest)) answer {
		return c.post(at, ownOf(booking)+"/control/lock", "", change...)
	}
	lock(i).wants(200, "")

	tell := func(f simulator.Faults) answer { car.SetFaults(f); return lock(i) }
	always := simulator.Rule{Every: 1}
	failed, rejected := tell(simulator.Faults{Fail: always}), tell(simulator.Faults{Refuse: always})
	car.SetFaults(simulator.Faults{})
	car.Change(func(b *simulator.Body) { b.Opened = []telematics.Field{telematics.DoorFrontLeft} })
	open := lock(i)
	car.Change(func(b *simulator.Body) { b.Opened = nil })

	car.SetFaults(simulator.Faults{Silent: true})
	wait, first := withHeader("Prefer", "wait=4"), make(chan answer, 1)
	go func() { first <- lock(i, wait, withHeader("Idempotency-Key", "night")) }()
	r.eventually(5*time.Second, "the command is in flight", func() bool {
		return r.rows(`select count(*) from commands where state = 'sent'`) == 1
	})
	inLane := lock(second)
	twin := lock(second, wait, withHeader("Idempotency-Key", "night"))
	timedOut := <-first
	car.SetFaults(simulator.Faults{})

	halt := telematics.Halt{Agency: 1, Why: "recall"}
	_, _, err := commands.HaltStore{DB: r.owner}.Halt(r.Context(), halt, telematics.OperatorAt("eva"))
	r.must(err)
	var halted answer
	r.eventually(broker.HaltWithin+time.Second, "commands are halted", func() bool {
		halted = lock(i)
		return halted.status == http.StatusServiceUnavailable
	})
	rows := []refusal{
		{"the vehicle tried and failed", failed, 502, "command_failed", false, "10"},
		{"the unit refused", rejected, 502, "command_rejected", false, "10"},
		{"a door is open", open, 409, "vehicle_state_conflict", true, "30"},
		{"an operator halted commands", halted, 503, "commands_halted", true, "60"},
		{"a command is in flight in the lane", inLane, 409, "command_in_progress", true, "*"},
		{"the first request with the key is in flight", twin, 409, "idempotency_in_progress", true, "1"},
		{"the vehicle does not answer", timedOut, 504, "command_timeout", false, "10"},
	}
	checkAll(r.T, rows)
	timedOut.has("error.outcome", `"unknown"`)
	halted.has("error.outcome", `"not_executed"`)
	if id := inLane.word("error.command_id"); id == "" || id != timedOut.word("error.command_id") {
		r.Errorf("the lane is held by the command of %s, but the refusal is %s", timedOut.text, inLane.text)
	}
	for _, want := range []string{
		"command_failed", "command_rejected", "vehicle_state_conflict", "commands_halted", "command_in_progress",
		"idempotency_in_progress", "command_timeout",
	} {
		if n := r.rows(`select count(*) from activity
				where booking_id = $1 and action = 'command.lock' and code = $2`, booking, want); n != 1 {
			r.Errorf("%d audit entries of the booking with %s, want 1", n, want)
		}
	}
}
