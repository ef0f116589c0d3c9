package service_test

import (
	"net/http"
	"testing"
	"time"
)

func TestClients_WithoutRedisOnlyCommandsAreUnavailable(t *testing.T) {
	t.Parallel()
	s := realStack(t, 1)
	r := s.rent()
	i := r.open()
	c := r.newCustomer()
	c.add(i, "pm_card_visa", true)
	booking := c.book(i, 1, fromNow(time.Minute))
	s.must(s.redis.Kill())
	c.get(i, ownOf(booking)).wants(200, "").has("data.status", `"upcoming"`, "meta.agency_code", `"ONE"`)
	var captured signature
	card := func(change func(*signature)) answer {
		return c.post(i, "/payment-methods", `{"payment_method_id":"pm_card_amex"}`, change)
	}
	card(func(s *signature) { captured = *s }).wants(201, "")
	card(func(s *signature) { s.at, s.nonce = captured.at, captured.nonce }).wants(401, "agency_signature_replayed")
	// Administrators sign no request.
	i.asAdmin(http.MethodPost, adminOf(booking)+"/start", "").wants(200, "")
	c.awaitPayment(i, booking, "paid")
}
