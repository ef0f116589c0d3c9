package service_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// amount returns the text of an amount of a charge; empty: none.
func amount(charge map[string]any, name string) string {
	n, _ := charge[name].(json.Number)
	return n.String()
}

// desk has two instances of an installation, at which each subtest has separate clients and
// vehicles.
type desk struct {
	*rentals
	instances []*instance
}

// in returns the desk for a subtest.
func (r desk) in(t *testing.T) desk {
	s := *r.stack
	s.T = t
	own := *r.rentals
	own.stack = &s
	in := desk{rentals: &own}
	for _, i := range r.instances {
		i := *i
		i.stack = &s
		in.instances = append(in.instances, &i)
	}
	return in
}

func TestPayments(t *testing.T) {
	t.Parallel()
	r := embeddedStack(t, 9).rent()
	all := desk{r, []*instance{r.open(), r.serve(r.paid)}}
	t.Run("concurrently", func(t *testing.T) {
		for name, test := range map[string]func(desk){
			"a declined card is retried later, and another immediately": desk.retriesDeclinedCards,
			"a payment is paid once the owner of the card confirms":     desk.isPaidOnceTheOwnerConfirms,
			"a deposit is held, captured in part, and released":         desk.holdsDeposits,
			"a fee is charged once, and refunded once":                  desk.chargesFeesOnce,
		} {
			t.Run(name, func(t *testing.T) { t.Parallel(); test(all.in(t)) })
		}
	})
}

func (r desk) retriesDeclinedCards() {
	instances := r.instances
	i := instances[0]
	c := r.newCustomer()
	// The first card becomes the default in any case.
	bad := c.add(i, "pm_card_chargeCustomerFail", false)
	booking := c.book(i, 1, fromNow(time.Minute), "")
	// The vehicle is handed over although the payment fails.
	i.start(booking).has("data.status", `"active"`)
	c.awaitPayment(i, booking, "failed").
		has("data.payment.method", `"Visa •••• 0341"`, "data.payment.paid_at", "null", "data.can_extend", "false")
	c.post(i, ownOf(booking)+"/extend", fmt.Sprintf(`{"end_date":%q}`, time.Now().Add(20*time.Hour).UTC().Format(time.RFC3339))).
		wants(409, "booking_not_extendable")
	for _, kind := range []string{"start", "deposit"} {
		r.eventually(
			10*time.Second, kind+" is declined",
			func() bool { return instances[1].charge(booking, kind)["state"] == "declined" },
		)
		charge := instances[1].charge(booking, kind)
		next, _ := charge["next_attempt_at"].(string)
		at, err := time.Parse(time.RFC3339, next)
		if in := time.Until(at); err != nil || in < 59*time.Minute || in > time.Hour || charge["decline_code"] != "generic_decline" ||
			amount(charge, "attempts") != "1" {
			r.Errorf("the declined charge is %v", charge)
		}
	}
	good := c.add(instances[1], "pm_card_mastercard", true)
	for _, at := range instances {
		c.awaitPayment(at, booking, "paid").has("data.payment.method", `"Mastercard •••• 4444"`, "data.can_extend", "true")
	}
	r.eventually(10*time.Second, "the deposit is held", func() bool { return i.charge(booking, "deposit")["state"] == "authorized" })
	start, deposit := r.movements(booking)["start 1"], r.movements(booking)["deposit 1"]
	if start.Captured != 13200 || start.Attempts != 2 || start.Approved != 1 || deposit.Held != 20000 || deposit.Captured != 0 ||
		len(r.movements(booking)) != 2 {
		r.Errorf("the processor's ledger is %+v", r.movements(booking))
	}
	c.get(i, "/payment-methods").has("data.0.id", fmt.Sprint(good), "data.0.is_default", "true", "data.1.is_default", "false")
	c.remove(i, fmt.Sprintf("/payment-methods/%d", bad)).wants(200, "")
	codes := map[string]int{}
	path := fmt.Sprintf("/api/v1/admin/activity?booking_id=%d&action=charge.start", booking)
	for _, line := range i.asAdmin(http.MethodGet, path, "").wants(200, "").list("data") {
		code, _ := line.(map[string]any)["code"].(string)
		codes[code]++
	}
	if codes["card_declined"] != 1 || codes[""] != 1 {
		r.Errorf("audit entries of the charge of the start: %v", codes)
	}
}

// confirm does what the library of an app does when the owner of the card confirms.
func (r *rentals) confirm(secret string) {
	r.Helper()
	intent, _, ok := strings.Cut(secret, "_secret_")
	if !ok {
		r.Fatalf("not a secret of a payment: %q", secret)
	}
	form := url.Values{"client_secret": {secret}}
	request, err := http.NewRequest(
		http.MethodPost, r.processor.URL()+"/v1/payment_intents/"+intent+"/confirm", strings.NewReader(form.Encode()),
	)
	r.must(err)
	request.Header.Set("Authorization", "Bearer pk_test_app")
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	r.must(err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		r.Errorf("confirm %s: %s", intent, response.Status)
	}
}

func (r desk) isPaidOnceTheOwnerConfirms() {
	i := r.instances[0]
	c, other := r.newCustomer(), r.newCustomer()
	c.add(i, "pm_card_authenticationRequired", true)
	booking := c.book(i, 3, fromNow(time.Minute), "")
	i.start(booking)
	c.awaitPayment(i, booking, "requires_action").has("data.payment.method", `"Visa •••• 3184"`, "data.payment.paid_at", "null")
	other.get(i, ownOf(booking)+"/payment-action").wants(404, "booking_not_found")
	seen := map[string]bool{}
	for range 2 { // the rental, and the deposit
		var secret string
		r.eventually(10*time.Second, "a payment waits", func() bool {
			a := c.get(i, ownOf(booking)+"/payment-action")
			secret = a.word("data.client_secret")
			return a.status == http.StatusOK && !seen[secret]
		})
		seen[secret] = true
		r.confirm(secret)
	}
	c.awaitPayment(i, booking, "paid")
	r.eventually(10*time.Second, "the deposit is held", func() bool { return i.charge(booking, "deposit")["state"] == "authorized" })
	c.get(i, ownOf(booking)+"/payment-action").wants(409, "booking_state_conflict")
	if m := r.movements(booking); m["start 1"].Captured != 13200 || m["start 1"].Approved != 1 || m["deposit 1"].Held != 20000 ||
		m["deposit 1"].Approved != 1 {
		r.Errorf("the processor's ledger is %+v", m)
	}
	for secret := range seen {
		if n := r.rows(`select count(*) from charges c where c::text like '%' || $1 || '%'`, secret) +
			r.rows(`select count(*) from activity a where a::text like '%' || $1 || '%'`, secret); n != 0 {
			r.Errorf("the secret of a payment is stored %d times, want 0", n)
		}
	}
}

func (r desk) holdsDeposits() {
	i := r.instances[0]
	c := r.newCustomer()
	c.add(i, "pm_card_visa", true)
	damaged, clean := c.book(i, 5, fromNow(time.Minute), ""), c.book(i, 7, fromNow(time.Minute), "")
	for _, booking := range []int64{damaged, clean} {
		i.start(booking)
		c.awaitPayment(i, booking, "paid")
		if m := r.movements(booking); m["start 1"].Captured != 13200 || m["deposit 1"].Held != 20000 || m["deposit 1"].Captured != 0 ||
			m["deposit 1"].Status != "requires_capture" {
			r.Errorf("after the start: %+v", m)
		}
	}
	capture := func() answer {
		return i.asAdmin(
			http.MethodPost, adminOf(damaged)+"/deposit/capture", `{"amount":35.50,"reason":"A scratch"}`,
			"Idempotency-Key", "scratch",
		)
	}
	capture().wants(200, "")
	c.awaitPayment(i, damaged, "paid")
	if again := capture().wants(200, ""); again.header.Get("Idempotency-Replayed") != "true" {
		r.Errorf("the repeated capture has the header %v, want it replayed", again.header)
	}
	i.asAdmin(http.MethodPost, adminOf(damaged)+"/deposit/capture", `{"amount":1,"reason":"More"}`, "Idempotency-Key", "more").
		wants(409, "booking_state_conflict")
	for _, booking := range []int64{damaged, clean} {
		i.asAdmin(http.MethodPost, adminOf(booking)+"/end", "").wants(200, "")
	}
	r.eventually(10*time.Second, "the deposit is released", func() bool { return i.charge(clean, "deposit")["state"] == "released" })
	if m := r.movements(damaged)["deposit 1"]; m.Captured != 3550 || m.Held != 0 || m.Status != "succeeded" {
		r.Errorf("captured in part: %+v", m)
	}
	if m := r.movements(clean)["deposit 1"]; m.Captured != 0 || m.Held != 0 || m.Status != "canceled" {
		r.Errorf("released: %+v", m)
	}
	if charge := i.charge(damaged, "deposit"); charge["state"] != "captured" || amount(charge, "settled") != "35.50" ||
		charge["reason"] != "A scratch" {
		r.Errorf("the charge that is captured in part: %v", charge)
	}
	c.awaitPayment(i, clean, "paid")
}

func (r desk) chargesFeesOnce() {
	instances := r.instances
	i := instances[0]
	c := r.newCustomer()
	c.add(i, "pm_card_visa", true)
	booking := c.book(i, 9, fromNow(time.Minute), "")
	i.start(booking)
	c.awaitPayment(i, booking, "paid")

	const fee = `{"kind":"cleaning","amount":45.50,"reason":"Dog hair"}`
	results := make(chan answer)
	for n := range 10 {
		go func() {
			results <- instances[n%2].asAdmin("POST", adminOf(booking)+"/fees", fee, "Idempotency-Key", "dog")
		}()
	}
	first := 0
	for range 10 {
		a := <-results
		a.wants(200, "")
		if a.header.Get("Idempotency-Replayed") == "" {
			first++
		}
	}
	if first != 1 {
		r.Errorf("%d of ten requests with one key charged a fee, want 1", first)
	}
	i.asAdmin("POST", adminOf(booking)+"/fees", strings.Replace(fee, "45.50", "45.60", 1), "Idempotency-Key", "dog").
		wants(422, "idempotency_mismatch")
	c.awaitPayment(i, booking, "paid")
	m := r.movements(booking)
	if len(m) != 3 || m["fee 1"].Captured != 4550 || m["fee 1"].Attempts != 1 {
		r.Errorf("after the fee the processor's ledger is %+v", m)
	}

	refund := func(key, body string) answer {
		return i.asAdmin("POST", adminOf(booking)+"/refund", body, "Idempotency-Key", key)
	}
	refund("much", `{"amount":177.51,"reason":"x"}`).wants(422, "refund_exceeds_paid")
	refund("part", `{"amount":50,"reason":"Cold"}`).wants(200, "")
	c.awaitPayment(i, booking, "partially_refunded")
	if again := refund("part", `{"amount":50,"reason":"Cold"}`).wants(200, ""); again.header.Get("Idempotency-Replayed") != "true" {
		r.Errorf("the repeated refund has the header %v, want it replayed", again.header)
	}
	refund("much-again", `{"amount":127.51,"reason":"x"}`).wants(422, "refund_exceeds_paid")
	refund("rest", `{"full":true,"reason":"All of it"}`).wants(200, "")
	c.awaitPayment(i, booking, "refunded")
	refund("nothing-left", `{"full":true,"reason":"x"}`).wants(422, "refund_exceeds_paid")
	m = r.movements(booking)
	if m["fee 1"].Refunded != 4550 || m["start 1"].Refunded != 13200 || len(m["start 1"].Refunds) != 2 || len(m["fee 1"].Refunds) != 1 {
		r.Errorf("after the refunds the processor's ledger is %+v", m)
	}
}
