package service_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/simulator/sandbox"
)

// notice is a notice of the processor; a test may change it before it is signed.
type notice struct {
	id, name, object string
	live             bool
	padding          int // bytes
	secret           string
}

// notify posts a notice like the processor.
func (r *rentals) notify(i *instance, name, object string, change func(*notice)) answer {
	r.Helper()
	n := notice{id: "evt_" + uuid.NewString(), name: name, object: object, secret: r.processor.WebhookSecret()}
	if change != nil {
		change(&n)
	}
	body, err := json.Marshal(map[string]any{
		"id": n.id, "object": "event", "type": n.name, "api_version": "2019-02-19", "created": time.Now().Unix(), "livemode": n.live,
		"data": map[string]any{"object": map[string]any{"id": n.object, "padding": strings.Repeat("x", n.padding)}},
	})
	r.must(err)
	request, err := http.NewRequest(http.MethodPost, i.base+"/webhooks/stripe", strings.NewReader(string(body)))
	r.must(err)
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("Stripe-Signature", sandbox.Sign(n.secret, time.Now(), body))
	return ask(i.T, request)
}

// kept returns the number of stored notices with an id.
func (r *rentals) kept(id string) int {
	r.Helper()
	return r.rows(`select count(*) from processor_notices where id = $1`, id)
}

func TestNotice_OnlyWhatTheProcessorSignsIsBelieved(t *testing.T) {
	t.Parallel()
	r := embeddedStack(t, 1).rent()
	i := r.open()
	second := r.serve(r.paid)
	notify := func(change func(*notice)) answer { return r.notify(i, "payment_intent.succeeded", "pi_4711", change) }
	id := func(s string) func(*notice) { return func(n *notice) { n.id = s } }
	checkAll(r.T, []refusal{
		{"another secret", notify(func(n *notice) { n.secret = "whsec_other" }), 400, "webhook_signature_invalid", false, ""},
		{"more than 256 KiB", notify(func(n *notice) { n.padding = 256 << 10 }), 413, "body_too_large", false, ""},
	})
	assert.Equal(r, r.rows(`select count(*) from processor_notices`), 0, "notices were kept")

	// Notices of the other mode, of a type that is not stored, and of an unknown object are
	// accepted and have no effect.
	notify(func(n *notice) { n.id, n.live = "evt_live", true }).wants(200, "")
	r.notify(i, "customer.created", "cus_4711", id("evt_other")).wants(200, "")
	for _, id := range []string{"evt_live", "evt_other"} {
		if r.kept(id) != 0 {
			r.Errorf("%s was kept", id)
		}
	}
	const unknown = `motorpool_payment_notices_handled_total{result="unknown_object"}`
	strange := func() int64 { return i.metric(unknown) + second.metric(unknown) }
	notify(id("evt_unknown")).wants(200, "")
	r.notify(i, "payment_method.detached", "pm_4711", id("evt_card")).wants(200, "")
	r.notify(i, "refund.updated", "re_4711", id("evt_refund")).wants(200, "")
	for _, at := range []*instance{i, second, i} { // repeated
		r.notify(at, "payment_intent.succeeded", "pi_4711", id("evt_unknown")).wants(200, "")
	}
	notify(func(n *notice) { n.id, n.padding = "evt_large", 200<<10 }).wants(200, "")
	r.eventually(10*time.Second, "the notices are handled", func() bool {
		return r.rows(`select count(*) from processor_notices where due_at is null`) == 4
	})
	if n := r.rows(`select count(*) from processor_notices`); n != 4 || strange() != 3 {
		r.Errorf("%d notices are stored and %d were of unknown objects, want 4 and 3", n, strange())
	}
}

func TestNotices_InAnyOrderSayNothingThatIsOld(t *testing.T) {
	t.Parallel()
	r := embeddedStack(t, 3).rent()
	i := r.open()
	r.processor.SetWebhook("") // only the notices below are sent
	c := r.newCustomer()
	c.add(i, "pm_card_visa", true)
	booking := c.book(i, 1, fromNow(time.Minute), "")
	i.start(booking)
	c.awaitPayment(i, booking, "paid")
	intent := r.movements(booking)["start 1"].Intent
	for number, name := range []string{
		"payment_intent.succeeded", "payment_intent.payment_failed", "payment_intent.requires_action",
		"payment_intent.created", "payment_intent.succeeded",
	} {
		r.notify(i, name, intent, func(n *notice) { n.id = fmt.Sprintf("evt_%d", number) }).wants(200, "")
	}
	r.eventually(10*time.Second, "the notices are handled", func() bool {
		return r.rows(`select count(*) from processor_notices where due_at is null and object = $1`, intent) == 5
	})
	c.get(i, ownOf(booking)).has("data.payment.status", `"paid"`)
	if m := r.movements(booking)["start 1"]; m.Captured != 13200 || m.Attempts != 1 {
		r.Errorf("the processor's ledger is %+v, want 13200 in one attempt", m)
	}

	// The processor makes a payment, its responses are lost, and its notice arrives before the
	// id of the payment is stored.
	r.must(r.processor.Break(sandbox.Fault{Kind: sandbox.ResetAfter, Method: http.MethodPost, Path: "/v1/payment_intents", Times: -1}))
	early := c.book(i, 3, fromNow(time.Minute), "")
	i.start(early)
	var unheard string
	r.eventually(10*time.Second, "the processor made a payment whose answer was lost", func() bool {
		for _, m := range r.processor.Ledger() {
			if r.rows(`select count(*) from charges where intent = $1`, m.Intent) == 0 {
				unheard = m.Intent
			}
		}
		return unheard != ""
	})
	r.notify(i, "payment_intent.created", unheard, func(n *notice) { n.id = "evt_early" }).wants(200, "")
	r.processor.Heal()
	c.awaitPayment(i, early, "paid")
	r.eventually(20*time.Second, "the deposit is held", func() bool { return r.movements(early)["deposit 1"].Held == 20000 })
	if m := r.movements(early)["start 1"]; m.Captured != 13200 || m.Approved != 1 || r.kept("evt_early") != 1 {
		r.Errorf("the processor's ledger is %+v, want 13200 once", m)
	}
	assert.Equal(r, len(r.processor.Ledger()), 4, "payments for two bookings")
}

func TestNotice_DroppedCardIsRemovedFromTheWallet(t *testing.T) {
	t.Parallel()
	r := embeddedStack(t, 1).rent()
	instances := []*instance{r.open(), r.serve(r.paid)}
	i := instances[0]
	c := r.newCustomer()
	visa, amex, jcb := c.add(i, "pm_card_visa", true), c.add(i, "pm_card_amex", false), c.add(i, "pm_card_jcb", false)
	drop := func(id int64) {
		var token string
		r.must(r.db.QueryRowContext(r.Context(), `select token from payment_methods where id = $1`, id).Scan(&token))
		r.must(r.processor.Drop(token))
	}
	drop(visa)
	for _, at := range instances {
		r.eventually(10*time.Second, "the newest remaining card is the default", func() bool {
			list := c.get(at, "/payment-methods").wants(200, "")
			return len(list.list("data")) == 2 && list.number("data.0.id") == jcb && list.at("data.0.is_default") == true &&
				list.at("data.1.is_default") == false
		})
	}
	drop(jcb)
	drop(amex)
	r.eventually(
		10*time.Second, "no card is left",
		func() bool { return len(c.get(i, "/payment-methods").wants(200, "").list("data")) == 0 },
	)
	if n := r.rows(`select count(*) from activity where action = 'payment_method.dropped' and actor_role = 'system'`); n != 3 {
		r.Errorf("%d audit entries of dropped cards, want 3", n)
	}
	again := c.add(i, "pm_card_visa", false)
	c.get(i, "/payment-methods").has("data.0.id", fmt.Sprint(again), "data.0.is_default", "true")
}
