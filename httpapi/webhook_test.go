package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/httpapi"
	"motorpool/rental"
	"motorpool/rental/stripe"
	"motorpool/simulator/sandbox"
)

const hook = "/webhooks/stripe"

// notices reads notices as Stripe signs them, and stores them.
type notices struct {
	*stripe.Processor
	mu     sync.Mutex
	kept   map[string]rental.Notice
	nudges int
	err    error
	block  bool
}

func listening(e *notices) func(*httpapi.Config) {
	e.Processor, e.kept = stripe.New(stripe.Config{WebhookSecret: "whsec_test"}), map[string]rental.Notice{}
	return func(c *httpapi.Config) {
		c.Webhooks = e
		c.Nudge = func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.nudges++
		}
	}
}

func (e *notices) Keep(ctx context.Context, n rental.Notice) error {
	if e.block {
		<-ctx.Done()
		return ctx.Err()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.kept[n.ID] = n
	}
	return e.err
}

// wants checks how many notices are stored, and how often the collector was nudged.
func (e *notices) wants(t *testing.T, kept, nudges int) {
	t.Helper()
	same(t, [2]int{len(e.kept), e.nudges}, [2]int{kept, nudges}, "notices and nudges")
}

// noticed returns a request without a token, with a body and its signature.
func noticed(body string, change ...func(*http.Request)) changes {
	signature := sandbox.Sign("whsec_test", time.Now(), []byte(body))
	return append(changes{anonymous, withJSON(body), withHeader("Stripe-Signature", signature)}, change...)
}

// event returns the notice of an event, with the JSON text of its object.
func event(id, kind, object string) string {
	return fmt.Sprintf(`{"id":%q,"object":"event","type":%q,"data":{"object":%s}}`, id, kind, object)
}

var aboutPayment = event("evt_1", "payment_intent.succeeded", `{"id":"pi_1"}`)

func TestWebhook_NoticeIsStoredOnceAndNudgesTheCollector(t *testing.T) {
	e := &notices{}
	a := newAPI(t, listening(e))
	for range 3 {
		r := a.post(hook, noticed(aboutPayment)...).wants(200, "")
		r.has("", nil)
		same(t, r.body.Success, true, "success")
	}
	if n := e.kept["evt_1"]; len(e.kept) != 1 || n.Object != "pi_1" || n.Kind != rental.AboutIntent || e.nudges != 3 {
		t.Errorf("stored %+v, %d nudges; want evt_1 once and 3", e.kept, e.nudges)
	}
}

func TestWebhook_NeedsTheProcessorsSignatureAndNoToken(t *testing.T) {
	e := &notices{}
	a := newAPI(t, listening(e))
	other := withHeader("Stripe-Signature", sandbox.Sign("whsec_other", time.Now(), []byte(aboutPayment)))
	for _, change := range []changes{
		{anonymous, withJSON(aboutPayment)}, {withJSON(aboutPayment)}, {anonymous, withJSON(aboutPayment), other},
		append(noticed(aboutPayment), withBody(strings.Replace(aboutPayment, "pi_1", "pi_2", 1))),
	} {
		a.post(hook, change...).wants(400, "webhook_signature_invalid")
	}
	e.wants(t, 0, 0)
	for _, change := range []changes{
		noticed(aboutPayment, func(r *http.Request) { r.Header.Del("Content-Type") }),
		noticed(aboutPayment, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain; charset=utf-8") }),
		noticed(aboutPayment, withToken("nonsense")),
	} {
		a.post(hook, change...).wants(200, "")
	}
}

func TestWebhook_HasASeparateBodyLimit(t *testing.T) {
	e := &notices{}
	a := newAPI(t, listening(e))
	fill := func(size int) string { return aboutPayment + strings.Repeat(" ", size-len(aboutPayment)) }
	a.post(hook, noticed(fill(256<<10))...).wants(200, "")
	a.post(hook, noticed(fill(256<<10+1))...).wants(413, "body_too_large")
	chunked := func(r *http.Request) { r.ContentLength = -1 }
	if r := a.post(hook, noticed(fill(257<<10), chunked)...).wants(413, "body_too_large"); !strings.Contains(r.body.Message, "256 KiB") {
		t.Error(r.text)
	}
}

func TestWebhook_SignedNoticeThatCannotBeStoredIsRefused(t *testing.T) {
	e := &notices{}
	a := newAPI(t, listening(e))
	for name, body := range map[string]string{
		"NUL in the object": event("evt_1", "payment_intent.succeeded", `{"id":"pi_\u0000"}`),
		"NUL in the id":     strings.Replace(aboutPayment, "evt_1", `evt\u0000`, 1),
		"NUL in the type":   strings.Replace(aboutPayment, "succeeded", `\u0000`, 1),
		"too long an id":    event(strings.Repeat("x", 256), "payment_intent.succeeded", `{"id":"pi_1"}`),
		"a member twice":    strings.Replace(aboutPayment, "{", `{"id":"evt_0",`, 1),
		"twice, nested":     event("evt_1", "payment_intent.succeeded", `{"id":"pi_1","of":[{"id":1,"id":2}]}`),
	} {
		t.Run(name, func(t *testing.T) {
			a.t = t
			a.post(hook, noticed(body)...).wants(400, "malformed_json")
		})
	}
	e.wants(t, 0, 0)
}

func TestWebhook_NoticeOfTheOtherModeIsIgnored(t *testing.T) {
	live := strings.Replace(aboutPayment, "{", `{"livemode":true,`, 1)
	for _, wanted := range []bool{false, true} {
		e := &notices{}
		a := newAPI(t, listening(e), func(c *httpapi.Config) { c.LiveMoney = wanted })
		other, own := live, aboutPayment
		if wanted {
			other, own = own, other
		}
		a.post(hook, noticed(other)...).wants(200, "")
		if len(e.kept) != 0 || e.nudges != 0 || !strings.Contains(a.log.String(), "notice of the other mode ignored") {
			t.Errorf("live money %v: stored %+v, want nothing\n%s", wanted, e.kept, a.log)
		}
		a.post(hook, noticed(own)...).wants(200, "")
		e.wants(t, 1, 1)
	}
}

func TestWebhook_NoticeOfAnotherKindIsNotStored(t *testing.T) {
	e := &notices{}
	a := newAPI(t, listening(e))
	a.post(hook, noticed(event("evt_1", "customer.created", `{"id":"cus_1"}`))...).wants(200, "")
	e.wants(t, 0, 0)
}

func TestWebhook_UnstoredNoticeIsRefusedForARetry(t *testing.T) {
	e := &notices{err: gone{}}
	a := newAPI(t, listening(e))
	a.post(hook, noticed(aboutPayment)...).wants(503, "service_unavailable").wantsRetryAfter("10")
	e.err = errors.New("something broke")
	a.post(hook, noticed(aboutPayment)...).wants(500, "internal")
	same(t, e.nudges, 0, "the collector was nudged for a notice that was not stored")
	synctest.Test(t, func(t *testing.T) {
		stuck := &notices{block: true}
		newAPI(t, listening(stuck)).post(hook, noticed(aboutPayment)...).wants(503, "service_unavailable")
	})
}

func TestWebhook_NoticeIsStoredThoughTheCallerDisconnected(t *testing.T) {
	e := &notices{}
	a := newAPI(t, listening(e))
	a.post(hook, noticed(aboutPayment, disconnected)...)
	same(t, len(e.kept), 1, "the notice was not stored")
}
