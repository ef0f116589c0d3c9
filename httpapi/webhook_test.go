package httpapi_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
)

const hook = "/webhooks/stripe"

// notices verifies and stores notices with signatures as Stripe makes them, at the time of the
// tests.
// tests.
type notices struct {
	mu     sync.Mutex
	kept   map[string]rental.Notice
	nudges int
	err    error
	block  bool
}

func listening(e *notices) func(*httpapi.Config) {
	e.kept = map[string]rental.Notice{}
	return func(c *httpapi.Config) {
		c.Webhooks = e
		c.Nudge = func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.nudges++
		}
	}
}

func noticeSignature(secret string, at time.Time, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return hex.EncodeToString(mac.Sum(nil))
}

func (e *notices) Read(header http.Header, body []byte) (rental.Notice, error) {
	stamp, rest, _ := strings.Cut(header.Get("Stripe-Signature"), ",")
	var at int64
	if _, err := fmt.Sscanf(stamp, "t=%d", &at); err != nil || now.Sub(time.Unix(at, 0)) > 5*time.Minute {
		return rental.Notice{}, errors.New("the signature has no time, or is old")
	}
	want := "v1=" + noticeSignature("whsec_test", time.Unix(at, 0), string(body))
	for one := range strings.SplitSeq(rest, ",") {
		var n rental.Notice
		if hmac.Equal([]byte(one), []byte(want)) {
			return n, json.Unmarshal(body, &n)
		}
	}
	return rental.Notice{}, errors.New("the signature does not match")
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

// noticed returns a request without a token, with a body and its signature.
func noticed(body string, change ...func(*http.Request)) []func(*http.Request) {
	stamp := fmt.Sprintf("t=%d,v1=%s", now.Unix(), noticeSignature("whsec_test", now, body))
	return append([]func(*http.Request){anonymous, withJSON(body), withHeader("Stripe-Signature", stamp)}, change...)
}

const aboutPayment = `{"ID":"evt_1","Type":"payment_intent.succeeded","Object":"pi_1","Kind":"intent"}`

func TestWebhook_NoticeIsStoredOnceAndNudgesTheCollector(t *testing.T) {
	e := &notices{}
	a := newAPI(t, listening(e))
	for range 3 {
		r := a.post(hook, noticed(aboutPayment)...).wants(200, "")
		if !r.body.Success || r.body.Data != nil {
			t.Error(r.text)
		}
	}
	if n := e.kept["evt_1"]; len(e.kept) != 1 || n.Object != "pi_1" || n.Kind != rental.AboutIntent || e.nudges != 3 {
		t.Errorf("stored %+v, %d nudges; want evt_1 once and 3", e.kept, e.nudges)
	}
}

func TestWebhook_NeedsTheProcessorsSignatureAndNoToken(t *testing.T) {
	e := &notices{}
	a := newAPI(t, listening(e))
	good := noticeSignature("whsec_test", now, aboutPayment)
	with := func(value string) []func(*http.Request) {
		return []func(*http.Request){anonymous, withJSON(aboutPayment), withHeader("Stripe-Signature", value)}
	}
	stamp := fmt.Sprintf("t=%d,", now.Unix())
	old := now.Add(-6 * time.Minute)
	for name, change := range map[string][]func(*http.Request){
		"no signature":                   {anonymous, withJSON(aboutPayment)},
		"a token instead of a signature": {withJSON(aboutPayment)},
		"with another secret":            with(stamp + "v1=" + noticeSignature("whsec_other", now, aboutPayment)),
		"of another body":                append(noticed(aboutPayment), withBody(strings.Replace(aboutPayment, "pi_1", "pi_2", 1))),
		"of a longer body":               append(noticed(aboutPayment), withBody(aboutPayment+" ")),
		"of another time":                with(fmt.Sprintf("t=%d,v1=%s", now.Unix()+1, good)),
		"of an old time":                 with(fmt.Sprintf("t=%d,v1=%s", old.Unix(), noticeSignature("whsec_test", old, aboutPayment))),
		"of an empty body":               {anonymous, withHeader("Stripe-Signature", stamp+"v1="+good)},
		"of another scheme":              with(stamp + "v0=" + good),
	} {
		t.Run(name, func(t *testing.T) {
			a.t = t
			a.post(hook, change...).wants(400, "webhook_signature_invalid")
		})
	}
	a.t = t
	if len(e.kept) != 0 || e.nudges != 0 {
		t.Errorf("stored %+v, want nothing", e.kept)
	}
	for _, change := range [][]func(*http.Request){
		// Two signatures while the secret is replaced.
		with(stamp + "v1=" + noticeSignature("whsec_other", now, aboutPayment) + ",v1=" + good),
		noticed(aboutPayment, func(r *http.Request) { r.Header.Del("Content-Type") }),
		noticed(aboutPayment, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain; charset=utf-8") }),
		noticed(aboutPayment, func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") }),
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
		"NUL in the object": `{"ID":"evt_1","Type":"payment_intent.succeeded","Object":"pi_\u0000","Kind":"intent"}`,
		"NUL in the id":     `{"ID":"evt\u0000","Type":"payment_intent.succeeded","Object":"pi_1","Kind":"intent"}`,
		"NUL in the type":   `{"ID":"evt_1","Type":"payment_intent.\u0000","Object":"pi_1","Kind":"intent"}`,
		"too long an id":    `{"ID":"` + strings.Repeat("x", 256) + `","Type":"payment_intent.succeeded","Object":"pi_1","Kind":"intent"}`,
		"a member twice":    `{"ID":"evt_1","ID":"evt_2","Type":"payment_intent.succeeded","Object":"pi_1","Kind":"intent"}`,
		"twice, nested":     `{"ID":"evt_1","Type":"payment_intent.succeeded","Object":"pi_1","Kind":"intent","data":{"object":[{"id":1,"id":2}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			a.t = t
			a.post(hook, noticed(body)...).wants(400, "malformed_json")
		})
	}
	if len(e.kept) != 0 || e.nudges != 0 {
		t.Errorf("stored %+v, want nothing", e.kept)
	}
}

func TestWebhook_NoticeOfTheOtherModeIsIgnored(t *testing.T) {
	live := strings.Replace(aboutPayment, "{", `{"Live":true,`, 1)
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
		if len(e.kept) != 1 || e.nudges != 1 {
			t.Errorf("live money %v: stored %+v, want one notice", wanted, e.kept)
		}
	}
}

func TestWebhook_NoticeOfAnotherKindIsNotStored(t *testing.T) {
	e := &notices{}
	a := newAPI(t, listening(e))
	a.post(hook, noticed(strings.Replace(aboutPayment, `"intent"`, `"other"`, 1))...).wants(200, "")
	if len(e.kept) != 0 || e.nudges != 0 {
		t.Errorf("stored %+v, want nothing", e.kept)
	}
}

type unavailableError struct{}

func (unavailableError) Error() string     { return "the store is unavailable" }
func (unavailableError) Unavailable() bool { return true }

func TestWebhook_UnstoredNoticeIsRefusedForARetry(t *testing.T) {
	e := &notices{err: unavailableError{}}
	a := newAPI(t, listening(e))
	a.post(hook, noticed(aboutPayment)...).wants(503, "service_unavailable").wantsRetryAfter("10")
	e.err = errors.New("something broke")
	a.post(hook, noticed(aboutPayment)...).wants(500, "internal")
	if e.nudges != 0 {
		t.Error("the collector was nudged for a notice that was not stored")
	}
	newAPI(t).post(hook, noticed(aboutPayment)...).wants(503, "service_unavailable").wantsRetryAfter("10")
	synctest.Test(t, func(t *testing.T) {
		stuck := &notices{block: true}
		newAPI(t, listening(stuck)).post(hook, noticed(aboutPayment)...).wants(503, "service_unavailable")
	})
}

func TestWebhook_NoticeIsStoredThoughTheCallerDisconnected(t *testing.T) {
	e := &notices{}
	a := newAPI(t, listening(e))
	a.post(hook, noticed(aboutPayment, func(r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		*r = *r.WithContext(ctx)
	})...)
	if len(e.kept) != 1 {
		t.Error("the notice was not stored")
	}
}

func TestWebhook_AcceptsOnlyPOST(t *testing.T) {
	a := newAPI(t, listening(&notices{}))
	r := a.get(hook, anonymous).wants(405, "method_not_allowed")
	if r.header.Get("Allow") == "" {
		t.Errorf("headers %v, want Allow", r.header)
	}
	a.post("/webhooks/other", anonymous).wants(404, "not_found")
}
