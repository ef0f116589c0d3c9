package sandbox_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/simulator/sandbox"
)

// inbox receives events.
type inbox struct {
	*httptest.Server
	mu    sync.Mutex
	seen  []sandboxEvent
	fails int // number of first requests with the status 503
	wrong []string
}

type sandboxEvent struct {
	ID, Type string
	Livemode bool
	Data     struct {
		Object map[string]any
	}
}

func newInbox(t *testing.T, secret string) *inbox {
	t.Helper()
	i := &inbox{}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		i.mu.Lock()
		defer i.mu.Unlock()
		stamp, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Stripe-Signature"), "t="), ",")
		at, err := strconv.ParseInt(stamp, 10, 64)
		if err != nil || sandbox.Sign(secret, time.Unix(at, 0), body) != r.Header.Get("Stripe-Signature") {
			i.wrong = append(i.wrong, r.Header.Get("Stripe-Signature"))
		}
		if i.fails > 0 {
			i.fails--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		var e sandboxEvent
		if err := json.Unmarshal(body, &e); err != nil {
			i.wrong = append(i.wrong, err.Error())
		}
		i.seen = append(i.seen, e)
	}))
	t.Cleanup(func() {
		i.Close()
		for _, wrong := range i.wrong {
			t.Error(wrong)
		}
	})
	return i
}

// awaits returns the notices when all of them have arrived.
func (i *inbox) awaits(t *testing.T, names ...string) []sandboxEvent {
	t.Helper()
	slices.Sort(names)
	var got []string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		i.mu.Lock()
		seen := slices.Clone(i.seen)
		i.mu.Unlock()
		got = nil
		ids := map[string]bool{}
		for _, e := range seen {
			if !ids[e.ID] {
				got = append(got, e.Type)
			}
			ids[e.ID] = true
		}
		slices.Sort(got)
		if slices.Equal(got, names) {
			return seen
		}
	}
	t.Fatalf("got %v, want %v", got, names)
	return nil
}

func TestWebhook_EventsAreSignedAndRepeatedUntilAccepted(t *testing.T) {
	in := newInbox(t, sandbox.DefaultWebhookSecret)
	in.fails = 3
	b := newBench(t, func(c *sandbox.Config) { c.WebhookURL, c.RefundDelay = in.URL, time.Millisecond })
	customer := b.customer()
	card := b.attach(customer, "pm_card_pendingRefund")
	bad := b.attach(customer, "pm_card_chargeCustomerFail")
	wary := b.attach(customer, "pm_card_authenticationRequired")
	paid, held, dropped := b.intent(customer), b.intent(customer, "capture_method", "manual"), b.intent(customer)
	b.post("/v1/payment_intents/"+paid+"/confirm", "payment_method", bad)
	b.post("/v1/payment_intents/"+paid+"/confirm", "payment_method", wary)
	b.post("/v1/payment_intents/"+paid+"/confirm", "payment_method", card)
	b.post("/v1/payment_intents/"+held+"/confirm", "payment_method", card)
	b.post("/v1/payment_intents/" + held + "/capture")
	b.post("/v1/payment_intents/" + dropped + "/cancel")
	b.post("/v1/refunds", "payment_intent", paid)
	b.post("/v1/payment_methods/" + card + "/detach")
	seen := in.awaits(t,
		"customer.created", "payment_method.attached", "payment_method.attached", "payment_method.attached",
		"payment_intent.created", "payment_intent.created", "payment_intent.created",
		"payment_intent.payment_failed", "charge.failed", "payment_intent.requires_action", "payment_intent.succeeded", "charge.succeeded",
		"payment_intent.amount_capturable_updated", "charge.captured", "payment_intent.succeeded", "payment_intent.canceled",
		"refund.created", "charge.refunded", "refund.updated", "charge.refund.updated",
		"payment_method.detached",
	)
	for _, e := range seen {
		if e.Livemode || e.Data.Object["id"] == nil {
			t.Errorf("event %+v is live or names no object", e)
		}
		if e.Type == "charge.refunded" && e.Data.Object["payment_intent"] != paid {
			t.Errorf("event %+v, want the refunded payment", e)
		}
	}
}

func TestWebhook_EventsMayRepeatInAnyOrder(t *testing.T) {
	in := newInbox(t, "whsec_other")
	b := newBench(t, func(c *sandbox.Config) { c.WebhookSecret, c.Disorder = "whsec_other", true })
	b.customer() // before the webhook is set, no event is sent
	b.SetWebhook(in.URL)
	var names []string
	for range 60 {
		b.customer()
		names = append(names, "customer.created")
	}
	in.awaits(t, names...)
	deadline := time.Now().Add(time.Minute)
	for {
		in.mu.Lock()
		total := len(in.seen)
		in.mu.Unlock()
		if total > len(names) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no event was sent twice")
		}
		time.Sleep(time.Millisecond)
	}
}
