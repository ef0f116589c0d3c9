package service_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"motorpool/rental"
	"motorpool/store/agencykeys"
	"motorpool/telematics"
)

func TestSignature_ASignatureIsGoodForOneRequestOfItsAgency(t *testing.T) {
	t.Parallel()
	r := startStack(t, 1).rent()
	instances := []*instance{r.open(), r.serve(r.paid)}
	i := instances[0]
	c, other := r.newCustomer(), r.newCustomer()
	c.add(i, "pm_card_visa", true)
	r.signed(i, c)

	const methods = "/api/v1/client/payment-methods"
	get := func(change func(*signedRequest)) answer { return c.get(i, "/bookings?status=active&limit=20", change) }
	post := func(change func(*signedRequest)) answer {
		return c.post(i, "/payment-methods", `{"payment_method_id":"pm_card_amex"}`, change)
	}
	header := func(text string) func(*signedRequest) { return func(s *signedRequest) { s.as = text } }
	aged := func(age time.Duration) func(*signedRequest) { return func(s *signedRequest) { s.at = s.at.Add(age) } }
	long := strings.Repeat("a", 10<<10)
	const invalid, stale = "agency_signature_invalid", "agency_signature_stale"
	rows := []refusal{
		{"none", get(header("-")), 401, "agency_signature_missing", false, ""},
		{"another secret", get(func(s *signedRequest) { s.key.Secret = make([]byte, rental.SecretSize) }), 401, invalid, false, ""},
		{"an unknown key", get(func(s *signedRequest) { s.key.ID = "ak_4711" }), 401, invalid, false, ""},
		{
			"the body was changed",
			post(func(s *signedRequest) { s.signed.Body = []byte(`{"payment_method_id":"pm_card_visa"}`) }), 401,
			invalid, false, "",
		},
		{"a body was added", post(func(s *signedRequest) { s.signed.Body = nil }), 401, invalid, false, ""},
		{"the query was changed", get(func(s *signedRequest) { s.signed.Query = "status=active&limit=21" }), 401, invalid, false, ""},
		{"the query was sorted", get(func(s *signedRequest) { s.signed.Query = "limit=20&status=active" }), 401, invalid, false, ""},
		{"the method was changed", get(func(s *signedRequest) { s.signed.Method = http.MethodPost }), 401, invalid, false, ""},
		{"the path was changed", get(func(s *signedRequest) { s.signed.Path = methods }), 401, invalid, false, ""},
		{
			"another client's token",
			get(func(s *signedRequest) { s.headers.Set("Authorization", "Bearer "+other.token) }), 401, invalid,
			false, "",
		},
		{"301 s old", get(aged(-302 * time.Second)), 401, stale, false, ""},
		{"in the future", get(aged(302 * time.Second)), 401, stale, false, ""},
		{"a header of 10 kB", get(header("k=" + long)), 401, invalid, false, ""},
		{"two headers", get(func(s *signedRequest) { s.twice = true }), 401, invalid, false, ""},
		{"not a signature", get(header("hello")), 401, invalid, false, ""},
		{"an encoded body", post(withHeader("Content-Encoding", "gzip")), 401, invalid, false, ""},
		{"another agency's app", get(func(s *signedRequest) { s.key = r.apps[2] }), 403, "agency_mismatch", false, ""},
	}
	var once signedRequest
	const nobodys = methods + "/4711/default"
	c.at(i, http.MethodPost, nobodys, "", func(s *signedRequest) { once = *s }).wants(404, "payment_method_not_found")
	same := func(s *signedRequest) { s.at, s.nonce = once.at, once.nonce }
	for n, at := range instances {
		rows = append(
			rows,
			refusal{
				fmt.Sprintf("repeated at instance %d", n+1), c.at(at, http.MethodPost, nobodys, "", same), 401,
				"agency_signature_replayed", false, "",
			},
		)
	}
	get(func(s *signedRequest) { once = *s }).wants(200, "")
	get(same).wants(200, "") // a repeated read is allowed
	retiring, revoked, retired := r.newKey(1), r.newKey(1), r.newKey(1)
	signedBy := func(key rental.AgencyKey) func(*signedRequest) { return func(s *signedRequest) { s.key = key } }
	for _, key := range []rental.AgencyKey{retiring, revoked, retired} {
		r.eventually(2*agencykeys.Within, "the new key is known", func() bool { return get(signedBy(key)).status == 200 })
	}
	_, _, err := r.keys.Retire(r.Context(), 0, retiring.ID, time.Now().Add(time.Hour), telematics.OperatorAt("eva"))
	r.must(err)
	_, _, err = r.keys.Retire(r.Context(), 0, retired.ID, time.Now(), telematics.OperatorAt("eva"))
	r.must(err)
	_, _, err = r.keys.Revoke(r.Context(), 0, revoked.ID, telematics.OperatorAt("eva"))
	r.must(err)
	time.Sleep(agencykeys.Within) // the documented limit
	for n, at := range instances {
		rows = append(rows,
			refusal{fmt.Sprintf("revoked, at instance %d", n+1), c.get(at, "/bookings", signedBy(revoked)), 401, invalid, false, ""},
			refusal{fmt.Sprintf("retired, at instance %d", n+1), c.get(at, "/bookings", signedBy(retired)), 401, invalid, false, ""})
		c.get(at, "/bookings", signedBy(retiring)).wants(200, "")
	}
	checkAll(r.T, rows)
	if n := len(c.get(i, "/payment-methods").wants(200, "").list("data")); n != 1 {
		r.Errorf("%d cards after requests that were all refused, want 1", n)
	}
	if n := r.rows(`select count(*) from activity where code like 'agency_signature%'`); n != 0 {
		r.Errorf("requests without a valid signature left %d audit entries, want none", n)
	}
}

// signed sends requests that may be signed in different ways.
func (r *rentals) signed(i *instance, c customer) {
	r.Helper()
	for _, target := range []string{"/bookings", "/bookings?status=active&limit=20", "/bookings?limit=%32%30", "/payment-methods"} {
		c.get(i, target).wants(200, "")
	}
	c.get(i, "/bookings", func(s *signedRequest) { s.at = s.at.Add(-298 * time.Second) }).wants(200, "")
	c.get(i, "/bookings", func(s *signedRequest) { s.at = s.at.Add(298 * time.Second) }).wants(200, "")
	c.get(i, "/bookings", func(s *signedRequest) { // while a secret is being replaced
		old := s.signed.Sign(s.key.ID, make([]byte, rental.SecretSize), s.at, s.nonce).String()
		present := s.signed.Sign(s.key.ID, s.key.Secret, s.at, s.nonce).String()
		s.as = old + present[strings.LastIndex(present, ",v1="):]
	}).wants(200, "")
}

func TestClients_WithoutRedisOnlyCommandsAreUnavailable(t *testing.T) {
	t.Parallel()
	s := frailStack(t, 1)
	r := s.rent()
	i := r.open()
	c := r.newCustomer()
	c.add(i, "pm_card_visa", true)
	booking := c.book(i, 1, fromNow(time.Minute), "")
	s.must(s.redis.Kill())
	c.get(i, ownOf(booking)).wants(200, "").has("data.status", `"upcoming"`, "meta.agency_code", `"ONE"`)
	var captured signedRequest
	card := func(change func(*signedRequest)) answer {
		return c.post(i, "/payment-methods", `{"payment_method_id":"pm_card_amex"}`, change)
	}
	card(func(s *signedRequest) { captured = *s }).wants(201, "")
	card(func(s *signedRequest) { s.at, s.nonce = captured.at, captured.nonce }).wants(401, "agency_signature_replayed")
	// Administrators sign no request.
	i.asAdmin(http.MethodPost, adminOf(booking)+"/start", "").wants(200, "")
	c.awaitPayment(i, booking, "paid")
	s.must(s.redis.Restart())

	s.must(s.postgres.Kill())
	time.Sleep(agencykeys.Within)
	checkAll(t, []refusal{
		{"a booking without Postgres", c.get(i, ownOf(booking)), 503, "service_unavailable", true, "10"},
		{"cards without Postgres", c.get(i, "/payment-methods"), 503, "service_unavailable", true, "10"},
		{
			"a card without Postgres", c.post(i, "/payment-methods", `{"payment_method_id":"pm_card_jcb"}`), 503,
			"service_unavailable", true, "10",
		},
		{
			"a fee without Postgres",
			i.asAdmin(http.MethodPost, adminOf(booking)+"/fees", `{"kind":"cleaning","amount":5,"reason":"x"}`, "Idempotency-Key", "f"),
			503, "service_unavailable", true, "10",
		},
		{"a notice without Postgres", r.notify(i, "payment_intent.succeeded", "pi_1", nil), 503, "service_unavailable", true, "10"},
	})
	s.must(s.postgres.Restart())
	s.eventually(20*time.Second, "bookings are available again", func() bool { return c.get(i, ownOf(booking)).status == 200 })
	c.get(i, ownOf(booking)).has("data.payment.status", `"paid"`)
}
