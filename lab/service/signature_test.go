package service_test

import (
	"fmt"
	"net/http"
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
	c := r.newCustomer()
	c.add(i, "pm_card_visa", true)

	const nobodys, invalid = "/api/v1/client/payment-methods/4711/default", "agency_signature_invalid"
	get := func(change func(*signedRequest)) answer { return c.get(i, "/bookings?status=active&limit=20", change) }
	rows := []refusal{
		{"another secret", get(func(s *signedRequest) { s.key.Secret = make([]byte, rental.SecretSize) }), 401, invalid, false, ""},
		{
			"the body was changed",
			c.post(i, "/payment-methods", `{"payment_method_id":"pm_card_amex"}`, func(s *signedRequest) {
				s.signed.Body = []byte(`{"payment_method_id":"pm_card_visa"}`)
			}), 401, invalid, false, "",
		},
	}
	var once signedRequest
	c.at(i, http.MethodPost, nobodys, "", func(s *signedRequest) { once = *s }).wants(404, "payment_method_not_found")
	same := func(s *signedRequest) { s.at, s.nonce = once.at, once.nonce }
	for n, at := range instances {
		again := c.at(at, http.MethodPost, nobodys, "", same)
		rows = append(rows, refusal{fmt.Sprintf("repeated at instance %d", n+1), again, 401, "agency_signature_replayed", false, ""})
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

func TestClients_WithoutRedisOnlyCommandsAreUnavailable(t *testing.T) {
	t.Parallel()
	s := realStack(t, 1)
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
}
