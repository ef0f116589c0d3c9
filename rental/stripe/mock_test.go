package stripe_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/stripe"
	"motorpool/simulator/devstack"
)

// mockModule is Stripe's own check of requests: it validates each request against the published
// OpenAPI document of the API, and keeps no state.
const (
	mockModule = "github.com/stripe/stripe-mock"
	mockAt     = "v0.203.0"
)

// installMock returns the path of the program, which it builds once into the user's cache.
func installMock(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder to build stripe-mock into: %w", err)
	}
	dir := filepath.Join(cache, "motorpool", "stripe-mock-"+mockAt)
	program := filepath.Join(dir, "stripe-mock")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	install := exec.CommandContext(ctx, "go", "install", mockModule+"@"+mockAt)
	install.Dir = dir // outside this module
	install.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-mod=mod", "CGO_ENABLED=0")
	if said, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go install %s@%s: %w: %s", mockModule, mockAt, err, said)
	}
	return program, nil
}

// startMock returns the address of a running stripe-mock.
func startMock(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	program, err := installMock(ctx)
	devstack.Need(t, err)
	port, err := devstack.FreePort()
	require.NoError(t, err)
	server, err := devstack.StartProgram(t.Context(), devstack.ProgramConfig{
		Name:    "stripe-mock",
		Command: func() *exec.Cmd { return exec.Command(program, "-http-addr", fmt.Sprintf("127.0.0.1:%d", port)) },
		Serving: "Listening for HTTP",
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	return fmt.Sprintf("http://127.0.0.1:%d", port)
}

// witness records each request with its response, and the responses that it must not have.
type witness struct {
	next http.RoundTripper

	mu      sync.Mutex
	answers []string
	bad     []string
}

func (w *witness) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	line := fmt.Sprintf("%s %s", r.Method, r.URL)
	if err != nil {
		w.bad = append(w.bad, line+": "+err.Error())
		return response, err
	}
	w.answers = append(w.answers, line)
	if response.StatusCode != http.StatusOK {
		w.bad = append(w.bad, fmt.Sprintf("%s: %d", line, response.StatusCode))
	}
	return response, err
}

// used is a rental.Processor that records which of its methods were called.
type used struct {
	p    *stripe.Processor
	seen map[string]bool
}

func (u used) as(method string) *stripe.Processor { u.seen[method] = true; return u.p }

func TestMock_AcceptsEveryRequest(t *testing.T) {
	url := startMock(t)
	w := &witness{next: &http.Transport{}}
	p := stripe.New(stripe.Config{Key: "sk_test_123", BaseURL: url, HTTPClient: &http.Client{Transport: w}})
	defer w.next.(*http.Transport).CloseIdleConnections()
	u, ctx := used{p: p, seen: map[string]bool{}}, t.Context()
	key := func() string { return uuid.NewString() }
	check := func(what string, err error) {
		t.Helper()
		assert.NoError(t, err, "%s", what)
	}

	customer, err := u.as("CreateCustomer").CreateCustomer(ctx, key(), rental.Client{ID: 42, Agency: 7})
	check("customer", err)
	card, err := u.as("Attach").Attach(ctx, customer, "pm_card_visa")
	check("attach", err)
	if card.Token == "" || card.Brand == "" || len(card.LastFour) != 4 || card.ExpYear == 0 {
		t.Errorf("card %+v, want a token, brand, four digits and an expiry", card)
	}
	_, _, err = u.as("Card").Card(ctx, card.Token)
	check("card", err)
	check("detach", u.as("Detach").Detach(ctx, card.Token))
	var intent rental.Intent
	for _, hold := range []bool{true, false} {
		for _, currency := range []rental.Currency{"EUR", "JPY", "BHD", "ISK", "UGX"} {
			for _, words := range []string{"", "BK-2026-00001"} {
				for _, metadata := range []map[string]string{nil, {"booking": "BK-2026-00001", "kind": "start"}} {
					intent, err = u.as("CreateIntent").CreateIntent(ctx, key(), rental.IntentRequest{
						Payment: uuid.New(), Customer: customer, Amount: 20_000, Currency: currency, Hold: hold,
						Description: words, Metadata: metadata,
					})
					check("intent", err)
				}
			}
		}
	}
	if intent.ID == "" || intent.Secret == "" {
		t.Errorf("intent %v, want an id and a secret", intent)
	}
	_, err = u.as("Confirm").Confirm(ctx, key(), intent.ID, card.Token)
	check("confirm", err)
	_, err = u.as("Intent").Intent(ctx, intent.ID)
	check("intent", err)
	_, err = u.as("Capture").Capture(ctx, key(), intent.ID, 5_000, "EUR")
	check("capture", err)
	_, err = u.as("Cancel").Cancel(ctx, key(), intent.ID)
	check("cancel", err)
	refund, err := u.as("Refund").Refund(ctx, key(),
		rental.RefundRequest{Refund: uuid.New(), Intent: intent.ID, Amount: 100, Currency: "EUR"})
	check("refund", err)
	_, err = u.as("RefundByID").RefundByID(ctx, refund.ID)
	check("refund", err)
	_, _, err = u.as("RefundOf").RefundOf(ctx, intent.ID, uuid.New())
	check("refunds", err)
	_, _, err = u.as("IntentOf").IntentOf(ctx, rental.IntentRequest{Customer: customer, Payment: uuid.New(), Amount: 1, Currency: "EUR"})
	check("intents", err)
	_, _, err = u.as("Intents").Intents(ctx, time.Unix(1, 0), "")
	check("list of intents", err)

	for _, bad := range w.bad {
		t.Error(bad)
	}
	for method := range reflect.TypeFor[rental.Processor]().Methods() {
		if !u.seen[method.Name] {
			t.Errorf("the method %s was not called", method.Name)
		}
	}
	if len(w.answers) < len(u.seen) {
		t.Errorf("%d requests for %d methods, want at least one each: %s", len(w.answers), len(u.seen), strings.Join(w.answers, "\n"))
	}

	// An unknown parameter shows that stripe-mock does check the requests.
	request, err := http.NewRequestWithContext(
		ctx, http.MethodPost, url+"/v1/payment_intents", strings.NewReader("amount=12&currency=eur&colour=red"),
	)
	require.NoError(t, err)
	request.Header.Set("Authorization", "Bearer sk_test_123")
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := w.next.RoundTrip(request)
	require.NoError(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("an unknown parameter had the status %d, want 400", response.StatusCode)
	}
}
