package stripe

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"sync/atomic"
	"time"

	api "github.com/stripe/stripe-go/v85"
)

// trip is the progress of one request.
type trip struct {
	left   atomic.Bool  // there was a connection, so the request may have arrived
	status atomic.Int64 // of the answer; zero: none came
}

type tripKey struct{}

func withTrip(ctx context.Context) (context.Context, *trip) {
	t := &trip{}
	ctx = context.WithValue(ctx, tripKey{}, t)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { t.left.Store(true) },
	}), t
}

// wire is the transport that records the progress of requests.
type wire struct {
	next http.RoundTripper
	log  *slog.Logger
}

// newHTTPClient returns a copy of base with the wire transport; nil: a client with separate
// connections.
func newHTTPClient(base *http.Client, log *slog.Logger) *http.Client {
	var c http.Client
	if base != nil {
		c = *base
	}
	if c.Transport == nil {
		c.Transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	c.Transport = wire{next: c.Transport, log: log}
	// Payments are sent to the configured server only.
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

const userAgent = "Motorpool stripe-go/" + api.ClientVersion

// RoundTrip sends a request without the library's headers about this machine [STR-4].
func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	started := time.Now()
	r = r.Clone(r.Context())
	r.Header.Del("X-Stripe-Client-User-Agent")
	r.Header.Del("X-Stripe-Client-Telemetry")
	r.Header.Set("User-Agent", userAgent)
	response, err := w.next.RoundTrip(r)
	status, id := 0, ""
	if response != nil {
		status, id = response.StatusCode, response.Header.Get("Request-Id")
	}
	if t, ok := r.Context().Value(tripKey{}).(*trip); ok {
		t.status.Store(int64(status))
	}
	w.log.DebugContext(r.Context(), "stripe request", "method", r.Method, "path", withoutCards(r.URL.Path),
		"status", status, "stripe_request", cmp.Or(id, "none"), "latency", time.Since(started), "err", err)
	return response, err
}

// withoutCards hides the tokens of cards in a path or a message, for the log.
func withoutCards(text string) string { return cardToken.ReplaceAllString(text, "${1}_…") }

var cardToken = regexp.MustCompile(`\b(pm|card|tok|src)_[A-Za-z0-9_]+`)

// CloseIdleConnections closes idle connections.
func (w wire) CloseIdleConnections() {
	if c, ok := w.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
