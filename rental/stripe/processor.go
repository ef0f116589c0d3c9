package stripe

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"time"

	api "github.com/stripe/stripe-go/v85"

	"motorpool/rental"
)

// Config sets the account and the server.
type Config struct {
	// Key is a secret key (sk_…) or a restricted one (rk_…).
	Key string
	// BaseURL is the URL of the API. Defaults to https://api.stripe.com.
	BaseURL string
	// WebhookSecret (whsec_…) verifies the signatures of notices. Without it, all are rejected.
	WebhookSecret string
	// Timeout bounds one call. Defaults to 20 s.
	Timeout time.Duration
	// HTTPClient is copied; its transport and cookies are used, redirects are not followed.
	// Defaults to a client with separate connections.
	HTTPClient *http.Client
	// Logger logs each request, at the level debug. Defaults to no logs.
	Logger *slog.Logger
}

// String names no secret.
func (c Config) String() string { return "stripe at " + cmp.Or(c.BaseURL, api.APIURL) }

// GoString names no secret.
func (c Config) GoString() string { return c.String() }

// LogValue names no secret.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Processor is an account at Stripe. It is safe for concurrent use.
type Processor struct {
	api           *api.Client
	http          *http.Client
	webhookSecret string
	timeout       time.Duration
	live          bool
}

var _ rental.Processor = (*Processor)(nil)

// New returns the processor. It does no I/O.
func New(c Config) *Processor {
	client := newHTTPClient(c.HTTPClient, cmp.Or(c.Logger, slog.New(slog.DiscardHandler)))
	backends := api.NewBackendsWithConfig(&api.BackendConfig{
		URL:               api.String(cmp.Or(c.BaseURL, api.APIURL)),
		HTTPClient:        client,
		MaxNetworkRetries: api.Int64(0),    // [STR-1]
		EnableTelemetry:   api.Bool(false), // [STR-4]
		// [STR-3]: it would log whole responses.
		LeveledLogger: &api.LeveledLogger{Level: api.LevelNull},
	})
	return &Processor{
		api:           api.NewClient(c.Key, api.WithBackends(backends)),
		http:          client,
		webhookSecret: c.WebhookSecret,
		timeout:       cmp.Or(c.Timeout, 20*time.Second),
		live:          IsLive(c.Key),
	}
}

// IsLive reports whether a key moves real money.
func IsLive(key string) bool {
	return strings.HasPrefix(key, "sk_live_") || strings.HasPrefix(key, "rk_live_")
}

// Live reports whether real money is moved.
func (p *Processor) Live() bool { return p.live }

// Close closes idle connections.
func (p *Processor) Close() { p.http.CloseIdleConnections() }

// Kinds of calls: only a change can have an unknown result.
const (
	reads   = true
	changes = false
)

// call makes one request about the objects with these ids. Its error is a *rental.ProcessorError.
func call[T any](ctx context.Context, p *Processor, reads bool, do func(context.Context) (T, error), ids ...string) (T, error) {
	var none T
	for _, id := range ids {
		if err := checkID(id); err != nil {
			return none, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	ctx, t := withTrip(ctx)
	result, err := do(ctx)
	if err != nil {
		return none, failure(err, t, reads)
	}
	return result, nil
}

// idForm matches possible ids of Stripe. Ids, including those from callers, become a part of a
// URL path.
var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,255}$`)

// checkID returns NotKnown for a text that cannot be an id at Stripe.
func checkID(id string) error {
	if !idForm.MatchString(id) {
		return &rental.ProcessorError{Kind: rental.NotKnown, Cause: errNoID}
	}
	return nil
}
