package stripe_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"motorpool/rental"
	"motorpool/rental/stripe"
	"motorpool/simulator/sandbox"
)

const hushed = "whsec_test"

func reader(t *testing.T, secret string) *stripe.Processor {
	t.Helper()
	p := stripe.New(stripe.Config{Key: "sk_test_x", WebhookSecret: secret})
	t.Cleanup(p.Close)
	return p
}

func signed(signatures ...string) http.Header { return http.Header{"Stripe-Signature": signatures} }

func event(kind, object string) []byte {
	return []byte(
		fmt.Sprintf(
			`{"id":"evt_1","object":"event","type":%q,"api_version":"2019-02-19","livemode":true,"data":{"object":%s}}`,
			kind, object,
		),
	)
}

func TestRead_NamesTheChangedObject(t *testing.T) {
	p := reader(t, hushed)
	for _, c := range []struct {
		name, object string
		kind         rental.NoticeKind
		about        string
	}{
		{"payment_intent.succeeded", `{"id":"pi_1"}`, rental.AboutIntent, "pi_1"},
		{"payment_intent.payment_failed", `{"id":"pi_1"}`, rental.AboutIntent, "pi_1"},
		{"payment_intent.requires_action", `{"id":"pi_1"}`, rental.AboutIntent, "pi_1"},
		{"payment_intent.amount_capturable_updated", `{"id":"pi_1"}`, rental.AboutIntent, "pi_1"},
		{"payment_intent.canceled", `{"id":"pi_1"}`, rental.AboutIntent, "pi_1"},
		{"payment_intent.something_new", `{"id":"pi_1"}`, rental.AboutIntent, "pi_1"},
		{"charge.refunded", `{"id":"ch_1","payment_intent":"pi_1"}`, rental.AboutIntent, "pi_1"},
		{"charge.refunded", `{"id":"ch_1","payment_intent":{"id":"pi_1"}}`, rental.AboutIntent, "pi_1"},
		{"charge.refunded", `{"id":"ch_1","payment_intent":null}`, rental.AboutOther, ""},
		{"charge.refund.updated", `{"id":"re_1"}`, rental.AboutRefund, "re_1"},
		{"charge.dispute.created", `{"id":"dp_1","charge":"ch_1","payment_intent":"pi_1"}`, rental.AboutDispute, "pi_1"},
		{"charge.dispute.closed", `{"id":"dp_1","charge":"ch_1","payment_intent":null}`, rental.AboutOther, ""},
		{"charge.dispute.closed lost", `{"id":"dp_1","payment_intent":"pi_1","status":"lost"}`, rental.AboutDispute, "pi_1"},
		{"payment_intent.succeeded", `{"id":"pi_1","status":"succeeded"}`, rental.AboutIntent, "pi_1"},
		{"refund.created", `{"id":"re_1"}`, rental.AboutRefund, "re_1"},
		{"refund.failed", `{"id":"re_1"}`, rental.AboutRefund, "re_1"},
		{"payment_method.detached", `{"id":"pm_1"}`, rental.AboutCard, "pm_1"},
		{"payment_method.updated", `{"id":"pm_1"}`, rental.AboutCard, "pm_1"},
		{"payment_method.automatically_updated", `{"id":"pm_1"}`, rental.AboutCard, "pm_1"},
		{"payment_method.attached", `{"id":"pm_1"}`, rental.AboutOther, "pm_1"},
		{"charge.succeeded", `{"id":"ch_1"}`, rental.AboutOther, "ch_1"},
		{"customer.deleted", `{"id":"cus_1"}`, rental.AboutOther, "cus_1"},
		{"balance.available", `{"object":"balance"}`, rental.AboutOther, ""},
		{"payment_intent.succeeded", `{"object":"payment_intent"}`, rental.AboutOther, ""},
		{"payment_intent.succeeded", `{"id":7}`, rental.AboutOther, ""},
	} {
		name, _, _ := strings.Cut(c.name, " ")
		body := event(name, c.object)
		n, err := p.Read(signed(sandbox.Sign(hushed, time.Now(), body)), body)
		want := rental.Notice{ID: "evt_1", Type: c.name, Object: c.about, Kind: c.kind, Live: true}
		if err != nil || n != want {
			t.Errorf("%s %s: notice %+v, %v", c.name, c.object, n, err)
		}
	}
}

func TestRead_RefusesWhatTheProcessorDidNotSign(t *testing.T) {
	p, now := reader(t, hushed), time.Now()
	body := event("payment_intent.succeeded", `{"id":"pi_1"}`)
	good := sandbox.Sign(hushed, now, body)
	stamp, signature, _ := strings.Cut(good, ",")
	for name, c := range map[string]struct {
		header http.Header
		body   []byte
	}{
		"no signature":            {http.Header{}, body},
		"another secret":          {signed(sandbox.Sign("whsec_other", now, body)), body},
		"empty secret":            {signed(sandbox.Sign("", now, body)), body},
		"changed body":            {signed(good), event("payment_intent.succeeded", `{"id":"pi_2"}`)},
		"body with another space": {signed(good), append([]byte(" "), body...)},
		"changed time":            {signed(fmt.Sprintf("t=%d,%s", now.Unix()-1, signature)), body},
		"too old":                 {signed(sandbox.Sign(hushed, now.Add(-5*time.Minute-2*time.Second), body)), body},
		"old scheme":              {signed(strings.Replace(good, "v1=", "v0=", 1)), body},
		"no time":                 {signed(signature), body},
		"garbage":                 {signed("garbage"), body},
		"two headers":             {signed(good, good), body},
		"not hex":                 {signed(stamp + ",v1=zz"), body},
		"no event": {
			signed(sandbox.Sign(hushed, now, []byte(`{"object":"v2.core.event"}`))), []byte(`{"object":"v2.core.event"}`),
		},
		"not JSON":   {signed(sandbox.Sign(hushed, now, []byte(`{`))), []byte(`{`)},
		"empty body": {signed(sandbox.Sign(hushed, now, nil)), nil},
		"event without an object": {
			signed(sandbox.Sign(hushed, now, []byte(`{"object":"event","id":"evt_1"}`))), []byte(`{"object":"event","id":"evt_1"}`),
		},
	} {
		if n, err := p.Read(c.header, c.body); err == nil {
			t.Errorf("%s: read as %+v, want an error", name, n)
		}
	}
	// While a secret is replaced, a notice has two signatures.
	other := sandbox.Sign("whsec_other", now, body)
	_, wrong, _ := strings.Cut(other, ",")
	for _, header := range []string{good, good + "," + wrong, stamp + "," + wrong + "," +
		signature, sandbox.Sign(hushed, now.Add(-4*time.Minute), body)} {
		if _, err := p.Read(signed(header), body); err != nil {
			t.Errorf("%s: %v", header, err)
		}
	}
}

func TestNotice_WithoutASecretNoNoticeIsBelieved(t *testing.T) {
	p, body := reader(t, ""), event("payment_intent.succeeded", `{"id":"pi_1"}`)
	if n, err := p.Read(signed(sandbox.Sign("", time.Now(), body)), body); err == nil {
		t.Errorf("read as %+v, want an error", n)
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		string(event("payment_intent.succeeded", `{"id":"pi_1"}`)), string(event("charge.refunded",
			`{"payment_intent":[]}`)), `{}`, `null`, `[]`,
		`{"object":"event","id":"evt_1","type":"refund.failed","data":null}`,
		`{"object":"event","id":"evt_1","type":"refund.failed","data":{}}`,
		`{"object":"event","id":"evt_1","type":"refund.failed","data":{"object":null}}`,
		`{"object":"event","id":"evt_1","type":"refund.failed","data":{"object":[]}}`,
	} {
		f.Add([]byte(seed))
	}
	p := stripe.New(stripe.Config{Key: "sk_test_x", WebhookSecret: hushed})
	f.Fuzz(func(t *testing.T, body []byte) {
		n, err := p.Read(signed(sandbox.Sign(hushed, time.Now(), body)), body)
		if err == nil && (n.ID == "" || n.Type == "" || n.Object == "" && n.Kind != rental.AboutOther) {
			t.Errorf("notice %+v, without an id, type or object, of %q", n, body)
		}
	})
}
