package service_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

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

// Other payments are made in rounds of the fault harness, by what the processor's ledger has.
func TestPayment_IsPaidOnceTheOwnerOfTheCardConfirms(t *testing.T) {
	t.Parallel()
	r := embeddedStack(t, 1).rent()
	i := r.open()
	c, other := r.newCustomer(), r.newCustomer()
	c.add(i, "pm_card_authenticationRequired", true)
	booking := c.book(i, 1, fromNow(time.Minute))
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
