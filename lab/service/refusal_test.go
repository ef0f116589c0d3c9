package service_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"motorpool/internal/app"
)

// What limits and the processor refuse; packages httpapi and store/rentals have the rest.
func TestRefusals_ForAWhileSayWhenToTryAgain(t *testing.T) {
	t.Parallel()
	r := startStack(t, 1).rent()
	i := r.open(func(c *app.Config) { c.ClientRate, c.CardRate, c.VehicleRate = 3, 1, 1 })
	hasty, careful := r.newCustomer(), r.newCustomer()
	for left := range 3 {
		first := hasty.get(i, "/bookings").wants(200, "")
		if h := first.header; h.Get("RateLimit-Limit") != "3" || h.Get("RateLimit-Remaining") != fmt.Sprint(2-left) ||
			h.Get("RateLimit-Reset") == "" {
			r.Errorf("request %d: limit headers %v", left+1, h)
		}
	}
	card := func(token string) answer {
		return careful.post(i, "/payment-methods", fmt.Sprintf(`{"payment_method_id":%q}`, token))
	}
	r.must(r.processor.Kill())
	card("pm_card_amex").wants(503, "payment_processor_unavailable").has("error.retryable", "true", "error.retry_after", "10")
	r.must(r.processor.Restart())
	for name, of := range map[string]struct {
		limit string
		call  func() answer
	}{
		"requests of a client":  {"3", func() answer { return hasty.get(i, "/bookings") }},
		"new cards of a client": {"1", func() answer { return card("pm_card_visa") }},
		"commands of a vehicle": {"1", func() answer {
			return i.asAdmin(http.MethodPost, "/api/v1/admin/vehicles/1/control/lock", "", "Prefer", "respond-async")
		}},
	} {
		a := overLimit(of.call).wants(429, "rate_limited").has("error.retryable", "true")
		if h := a.header; h.Get("RateLimit-Limit") != of.limit || h.Get("RateLimit-Remaining") != "0" ||
			h.Get("RateLimit-Reset") != h.Get("Retry-After") {
			r.Errorf("too many %s: %v", name, h)
		}
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
