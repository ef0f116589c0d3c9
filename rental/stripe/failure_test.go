package stripe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	api "github.com/stripe/stripe-go/v85"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/stripe"
	"motorpool/simulator/sandbox"
)

// quick is for processors that do not answer.
func quick(c *stripe.Config) { c.Timeout = 2 * time.Second }

func TestFailure_LostResponseMayHaveHappened(t *testing.T) {
	for kind, happened := range map[sandbox.FaultKind]bool{
		sandbox.HangAfter: true, sandbox.ResetAfter: true, sandbox.HangBefore: false, sandbox.ResetBefore: false,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, quick)
			card, prepared := w.card("pm_card_visa"), w.prepare(w.request(1_000, "EUR"))
			w.breaks(sandbox.Fault{Kind: kind, Path: confirms, Times: -1})
			_, err := w.Confirm(t.Context(), "attempt-1", prepared.ID, card.Token)
			w.wants(err, rental.MayHaveHappened)
			w.there.Heal()
			looked, err := w.Intent(t.Context(), prepared.ID)
			if err != nil || (looked.Status == rental.IntentSucceeded) != happened {
				t.Errorf("queried as %v, %v", looked, err)
			}
			paid, err := w.Confirm(t.Context(), "attempt-1", prepared.ID, card.Token)
			if err != nil || paid.Status != rental.IntentSucceeded {
				t.Errorf("the repeated request: %v, %v; want it succeeded", paid, err)
			}
			if m := w.only(); m.Attempts != 1 || m.Captured != 1_000 {
				t.Errorf("payment %+v, want one attempt of the same key", m)
			}
		})
	}
}

func TestFailure_BusyProcessorHasDoneNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	card, prepared := w.card("pm_card_visa"), w.prepare(w.request(1_000, "EUR"))
	w.breaks(sandbox.Fault{Kind: sandbox.TooMany, Path: confirms})
	_, err := w.Confirm(t.Context(), "attempt-1", prepared.ID, card.Token)
	w.wants(err, rental.NotDone)

	// Two keys for one object, and one key for two requests.
	w.breaks(sandbox.Fault{Kind: sandbox.Slow, Path: confirms, For: 5 * time.Second})
	var first sync.WaitGroup
	first.Go(func() {
		if _, err := w.Confirm(t.Context(), "attempt-1", prepared.ID, card.Token); err != nil {
			t.Error(err)
		}
	})
	for len(w.there.Faults()) > 0 {
		time.Sleep(time.Millisecond)
	}
	_, err = w.Confirm(t.Context(), "attempt-1", prepared.ID, card.Token)
	w.wants(err, rental.MayHaveHappened)
	_, err = w.Cancel(t.Context(), "cancel", prepared.ID)
	w.wants(err, rental.NotDone)
	first.Wait()
	if m := w.only(); m.Attempts != 1 || m.Captured != 1_000 {
		t.Errorf("payment %+v, want 1000 in one attempt", m)
	}
}

func TestProcessor_UnavailableHasDoneNothing(t *testing.T) {
	w := newWorld(t)
	prepared := w.prepare(w.request(1_000, "EUR"))
	require.NoError(t, w.there.Kill())
	w.Close() // on an open connection the request might have been sent
	_, err := w.Cancel(t.Context(), "cancel", prepared.ID)
	w.wants(err, rental.NotDone)
	require.NoError(t, w.there.Restart())
	if gone, err := w.Cancel(t.Context(), "cancel", prepared.ID); err != nil || gone.Status != rental.IntentCanceled {
		t.Errorf("after the restart: %v, %v; want it canceled", gone, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = w.Cancel(ended, "cancel", prepared.ID)
	if f := w.failure(err, rental.NotDone); !errors.Is(f, context.Canceled) {
		t.Error(err)
	}
}

// respondingWith returns a processor whose server gives every request one response.
func respondingWith(t *testing.T, status int, body string) *stripe.Processor {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	p := stripe.New(stripe.Config{Key: "sk_test_x", BaseURL: server.URL})
	t.Cleanup(func() { p.Close(); server.Close() })
	return p
}

func TestFailure_KindByResponse(t *testing.T) {
	body := func(kind, code string) string {
		return fmt.Sprintf(`{"error":{"type":%q,"code":%q,"message":"m"}}`, kind, code)
	}
	for name, c := range map[string]struct {
		status          int
		body            string
		changed, looked rental.ProcessorFailure
	}{
		"server error":                {500, body("api_error", ""), rental.BrokenThere, rental.NotDone},
		"server error, not JSON":      {502, "<html>client_secret hush</html>", rental.BrokenThere, rental.NotDone},
		"unavailable":                 {503, body("api_error", ""), rental.BrokenThere, rental.NotDone},
		"too many requests":           {429, body("invalid_request_error", "rate_limit"), rental.NotDone, rental.NotDone},
		"too many requests, not JSON": {429, "slow down", rental.NotDone, rental.NotDone},
		"object locked":               {429, body("invalid_request_error", "lock_timeout"), rental.NotDone, rental.NotDone},
		"key in use": {
			409, body("idempotency_error", "idempotency_key_in_use"), rental.MayHaveHappened, rental.MayHaveHappened,
		},
		"other conflict":                {409, body("invalid_request_error", ""), rental.MayHaveHappened, rental.MayHaveHappened},
		"key of another request":        {400, body("idempotency_error", ""), rental.Refused, rental.Refused},
		"key refused":                   {401, body("invalid_request_error", "api_key_expired"), rental.NotOurs, rental.NotOurs},
		"missing permission":            {403, body("invalid_request_error", "more_permissions_required"), rental.NotOurs, rental.NotOurs},
		"forbidden by a proxy":          {403, "forbidden", rental.NotOurs, rental.NotOurs},
		"unknown object":                {404, body("invalid_request_error", "resource_missing"), rental.NotKnown, rental.NotKnown},
		"unknown object in a parameter": {400, body("invalid_request_error", "resource_missing"), rental.NotKnown, rental.NotKnown},
		"unknown path":                  {404, "404 page not found", rental.NotDone, rental.NotDone},
		"amount too small":              {400, body("invalid_request_error", "amount_too_small"), rental.TooSmall, rental.TooSmall},
		"amount too large":              {400, body("invalid_request_error", "amount_too_large"), rental.Refused, rental.Refused},
		"bad parameter":                 {400, body("invalid_request_error", "parameter_invalid_integer"), rental.Refused, rental.Refused},
		"wrong state": {
			400, body("invalid_request_error", "payment_intent_unexpected_state"), rental.WrongState, rental.WrongState,
		},
		"refunded already": {
			400, body("invalid_request_error", "charge_already_refunded"), rental.WrongState, rental.WrongState,
		},
		"declined":           {402, body("card_error", "card_declined"), rental.CardRefused, rental.CardRefused},
		"balance too low":    {402, body("invalid_request_error", ""), rental.Refused, rental.Refused},
		"redirect":           {307, "", rental.NotDone, rental.NotDone},
		"truncated response": {200, `{"id":"pi_1","client_secret":"hush`, rental.MayHaveHappened, rental.NotDone},
	} {
		t.Run(name, func(t *testing.T) {
			p := respondingWith(t, c.status, c.body)
			_, changed := p.Cancel(t.Context(), "key", "pi_1")
			_, looked := p.Intent(t.Context(), "pi_1")
			for err, want := range map[error]rental.ProcessorFailure{changed: c.changed, looked: c.looked} {
				f, ok := err.(*rental.ProcessorError) //nolint:errorlint // the contract is the type itself
				if !ok || f.Kind != want || (f.Decline != nil) != (want == rental.CardRefused) {
					t.Errorf("error %v, want %s", err, want)
				}
				if text := fmt.Sprintf("%v %+v %#v", err, err, f.Cause); strings.Contains(text, "hush") {
					t.Errorf("the error quotes the response: %s", text)
				}
			}
		})
	}
}

func TestProcessor_NoErrorOrLogHasTheClientSecret(t *testing.T) {
	var log lines
	w := newWorld(t, quick, func(c *stripe.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	card, prepared := w.card("pm_card_chargeCustomerFail"), w.prepare(w.request(1_000, "EUR"))
	_, secret, _ := strings.Cut(prepared.Secret, "_secret_")
	_, refused := w.Confirm(t.Context(), "a", prepared.ID, card.Token)
	w.wants(refused, rental.CardRefused)
	_, wrong := w.Capture(t.Context(), "b", prepared.ID, 1, "EUR")
	f := w.failure(wrong, rental.WrongState)
	w.breaks(sandbox.Fault{Kind: sandbox.HangAfter})
	_, lost := w.Intent(t.Context(), prepared.ID)
	slog.New(slog.NewJSONHandler(&log, nil)).Error("all of it", "refused", refused, "wrong", wrong, "lost", lost, "intent", *f.Intent,
		"pointer", f.Intent)
	text := log.String() + fmt.Sprintf("%v %+v %#v %s", *f.Intent, *f.Intent, *f.Intent, f.Intent) + fmt.Sprintf("%+v %#v", f, f)
	for _, err := range []error{refused, wrong, lost} {
		text += fmt.Sprintf("%v %+v %#v", err, err, err)
		for e := err; e != nil; e = errors.Unwrap(e) {
			text += fmt.Sprintf("%+v %#v", e, e)
		}
	}
	if secret == "" || strings.Contains(text, secret) || strings.Contains(text, w.there.Key()) {
		t.Errorf("a secret is in: %s", text)
	}
	if !strings.Contains(log.String(), prepared.ID) {
		t.Error("the log does not name the intent")
	}
}

// lines is a log that several goroutines write.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestProcessor_RequestsDoNotDescribeThisMachine(t *testing.T) {
	var seen http.Header
	count := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen, count = r.Header.Clone(), count+1
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `{"error":{"type":"api_error","message":"m"}}`)
	}))
	defer server.Close()
	key, version := api.Key, api.EnableTelemetry
	p := stripe.New(stripe.Config{Key: "sk_test_x", BaseURL: server.URL + "/"})
	defer p.Close()
	_, err := p.CreateCustomer(t.Context(), "the-key", rental.Client{ID: 1})
	if err == nil || count != 1 {
		t.Errorf("%d requests, %v; want one failed request without a retry", count, err)
	}
	allowed := map[string]string{
		"Authorization": "Bearer sk_test_x", "Content-Type": "application/x-www-form-urlencoded", "Stripe-Version": api.APIVersion,
		"User-Agent": "Motorpool stripe-go/" + api.ClientVersion, "Idempotency-Key": "the-key",
	}
	for name := range seen {
		if want, ok := allowed[name]; ok && seen.Get(name) != want || !ok && name != "Content-Length" && name != "Accept-Encoding" {
			t.Errorf("unexpected header %s: %q", name, seen.Get(name))
		}
	}
	if api.Key != key || api.EnableTelemetry != version {
		t.Error("the global state of the library was changed")
	}
}

func TestConfig_PrintsNoSecret(t *testing.T) {
	c := stripe.Config{Key: "sk_hush", WebhookSecret: "whsec_hush"}
	var log lines
	slog.New(slog.NewTextHandler(&log, nil)).Info("config", "config", c)
	if text := fmt.Sprintf("%v %+v %#v %s", c, c, c, log.String()); strings.Contains(text, "hush") {
		t.Errorf("a secret is in: %s", text)
	}
	for key, live := range map[string]bool{"sk_live_1": true, "rk_live_1": true, "sk_test_1": false, "rk_test_1": false, "": false} {
		p := stripe.New(stripe.Config{Key: key})
		assert.Equal(t, p.Live(), live, "key %q: live", key)
	}
}
