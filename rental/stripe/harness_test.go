package stripe_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/stripe"
	"motorpool/simulator/sandbox"
)

// world is the adapter with a sandbox.
type world struct {
	*testing.T
	*stripe.Processor
	there    *sandbox.Server
	customer string
}

func newWorld(t *testing.T, change ...func(*stripe.Config)) *world {
	t.Helper()
	there, err := sandbox.Start(sandbox.Config{})
	require.NoError(t, err)
	config := stripe.Config{Key: there.Key(), BaseURL: there.URL(), WebhookSecret: there.WebhookSecret(), Timeout: time.Minute}
	for _, c := range change {
		c(&config)
	}
	w := &world{T: t, Processor: stripe.New(config), there: there}
	t.Cleanup(func() {
		w.Close()
		assert.NoError(t, there.Close())
	})
	return w
}

// customerOf returns the world's customer, which it creates at first use.
func (w *world) customerOf() string {
	w.Helper()
	if w.customer == "" {
		id, err := w.CreateCustomer(w.Context(), uuid.NewString(), rental.Client{ID: 42, Agency: 7})
		require.NoError(w, err)
		w.customer = id
	}
	return w.customer
}

// card attaches one of Stripe's published test cards.
func (w *world) card(token string) rental.Card {
	w.Helper()
	card, err := w.Attach(w.Context(), w.customerOf(), token)
	require.NoError(w, err)
	return card
}

func (w *world) request(amount rental.Minor, c rental.Currency) rental.IntentRequest {
	w.Helper()
	return rental.IntentRequest{
		Payment: uuid.New(), Customer: w.customerOf(), Amount: amount, Currency: c, Description: "BK-2026-00001",
		Metadata: map[string]string{"booking": "BK-2026-00001"},
	}
}

func (w *world) prepare(r rental.IntentRequest) rental.Intent {
	w.Helper()
	intent, err := w.CreateIntent(w.Context(), "charge-"+r.Payment.String(), r)
	require.NoError(w, err)
	return intent
}

// paid returns a succeeded payment.
func (w *world) paid(amount rental.Minor, c rental.Currency, token string) rental.Intent {
	w.Helper()
	intent, err := w.Confirm(w.Context(), uuid.NewString(), w.prepare(w.request(amount, c)).ID, token)
	if err != nil || intent.Status != rental.IntentSucceeded {
		w.Fatalf("intent %v, %v; want it succeeded", intent, err)
	}
	return intent
}

// wants checks the kind of an error.
func (w *world) wants(err error, kind rental.ProcessorFailure) {
	w.Helper()
	_ = w.failure(err, kind)
}

// failure returns the error, which must have the kind.
func (w *world) failure(err error, kind rental.ProcessorFailure) *rental.ProcessorError {
	w.Helper()
	var f *rental.ProcessorError
	if !errors.As(err, &f) || f.Kind != kind {
		w.Fatalf("error %v, want %s", err, kind)
	}
	return f
}

func (w *world) breaks(f sandbox.Fault) {
	w.Helper()
	require.NoError(w, w.there.Break(f))
}

// only returns the single payment of the ledger.
func (w *world) only() sandbox.Movement {
	w.Helper()
	all := w.there.Ledger()
	if len(all) != 1 {
		w.Fatalf("%d payments, want 1: %+v", len(all), all)
	}
	return all[0]
}

// confirms is the path of the calls that charge cards.
const confirms = "/v1/payment_intents/*/confirm"

// byOwner confirms a payment as the owner's app does, with the client secret.
func (w *world) byOwner(i rental.Intent) {
	w.Helper()
	form := "client_secret=" + i.Secret
	request, err := http.NewRequestWithContext(
		w.Context(), http.MethodPost, w.there.URL()+"/v1/payment_intents/"+i.ID+"/confirm", strings.NewReader(form),
	)
	require.NoError(w, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "Bearer pk_test_app")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	require.NoError(w, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		w.Fatalf("the owner's confirmation had the status %d, want 200", response.StatusCode)
	}
}
