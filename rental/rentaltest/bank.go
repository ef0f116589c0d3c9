package rentaltest

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"motorpool/rental"
	"motorpool/rental/stripe"
	"motorpool/simulator/sandbox"
)

// Bank is a payment processor in memory: the adapter of production over a sandbox in this process,
// without a network, so that it works in virtual time. It records its calls, and fails on demand.
// It is safe for concurrent use.
type Bank struct {
	account
	*sandbox.Server

	drawing sync.Mutex // held while fault is called

	mu    sync.Mutex
	fault func(Call) Fault
	tell  func(rental.Notice)
	log   []Call
}

// Call is a call of a bank, about a charge, a payment, a refund, a card or a key.
type Call struct{ Method, About string }

// String returns the method and what it is about.
func (c Call) String() string { return c.Method + " " + c.About }

// Fault is a fault of a call.
type Fault = sandbox.Fault

// FaultKinds lists the kinds of faults that a caller can tell apart.
var FaultKinds = []sandbox.FaultKind{
	sandbox.HangBefore, sandbox.HangAfter, sandbox.Late, sandbox.FailBefore, sandbox.FailAfter, sandbox.TooMany,
	sandbox.BadKey,
}

// NewBank returns a bank without faults that sends no notices. It ends with the test. Its refunds
// that are pending stay so until SettleRefund.
func NewBank(t testing.TB) *Bank {
	const never = 1 << 62
	b := &Bank{}
	b.Server = sandbox.New(
		sandbox.Config{RefundDelay: never, WebhookURL: "http://motorpool.test", Events: subscribed, Poster: roundTripper(b.notify)},
	)
	b.account = b.through(b.RoundTrip)
	b.BreakBy(b.decide)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// account is the adapter of a bank.
type account struct {
	*stripe.Processor
	bank *Bank
}

// IntentOf searches a payment. One that it finds is as good as queried.
func (a account) IntentOf(ctx context.Context, r rental.IntentRequest) (rental.Intent, bool, error) {
	found, ok, err := a.Processor.IntentOf(ctx, r)
	if ok {
		a.bank.record(Call{"Intent", found.ID})
	}
	return found, ok, err
}

// Through returns the bank's adapter with another transport, which calls RoundTrip.
func (b *Bank) Through(transport func(*http.Request) (*http.Response, error)) rental.Processor {
	return b.through(transport)
}

func (b *Bank) through(transport roundTripper) account {
	return account{bank: b, Processor: stripe.New(stripe.Config{
		Key: b.Key(), WebhookSecret: b.WebhookSecret(), BaseURL: "http://bank.test", HTTPClient: &http.Client{Transport: transport},
	})}
}

// roundTripper is a transport without a network.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var errReset = errors.New("connection reset by peer")

// RoundTrip performs a request of the adapter, which goes on when its caller has left.
func (b *Bank) RoundTrip(r *http.Request) (*http.Response, error) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	done := make(chan *http.Response, 1)
	go func() { // ends with the request, or once a late one was performed
		defer close(done)
		defer func() {
			cause := recover()
			if err, ok := cause.(error); cause != nil && (!ok || !errors.Is(err, http.ErrAbortHandler)) {
				panic(cause)
			}
		}()
		w := httptest.NewRecorder()
		b.Handler().ServeHTTP(w, r)
		done <- w.Result()
	}()
	select {
	case response, ok := <-done:
		if !ok {
			return nil, errReset
		}
		return response, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// subscribed are the events that docs/payments.md names.
var subscribed = []string{
	"payment_intent.succeeded", "payment_intent.payment_failed", "payment_intent.requires_action", "payment_intent.processing",
	"payment_intent.amount_capturable_updated", "payment_intent.canceled", "charge.refunded", "refund.updated", "refund.failed",
	"payment_method.updated", "payment_method.automatically_updated", "payment_method.detached",
}

// notify takes the request of an event.
func (b *Bank) notify(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if _, err := w.Body.ReadFrom(r.Body); err != nil {
		return nil, err
	}
	notice, err := b.Read(r.Header, w.Body.Bytes())
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	tell := b.tell
	b.mu.Unlock()
	if tell != nil {
		tell(notice)
	}
	return w.Result(), nil
}

// FailWith sets a function that is called before each call, one at a time, and returns its fault.
// Nil: no faults.
func (b *Bank) FailWith(fault func(Call) Fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fault = fault
}

// FailAll makes all calls of a method fail; empty: of every method.
func (b *Bank) FailAll(method string, kind sandbox.FaultKind) {
	b.FailWith(func(c Call) Fault {
		if method != "" && c.Method != method {
			return Fault{}
		}
		return Fault{Kind: kind}
	})
}

// Tell sets a function that gets a notice of each change. Nil: no notices.
func (b *Bank) Tell(tell func(rental.Notice)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tell = tell
}

// calls names the method of the adapter for each request.
var calls = map[string]string{
	"POST /v1/customers":                    "CreateCustomer",
	"POST /v1/payment_methods/{id}/attach":  "Attach",
	"POST /v1/payment_methods/{id}/detach":  "Detach",
	"GET /v1/payment_methods/{id}":          "Card",
	"POST /v1/payment_intents":              "CreateIntent",
	"POST /v1/payment_intents/{id}/confirm": "Confirm",
	"POST /v1/payment_intents/{id}/capture": "Capture",
	"POST /v1/payment_intents/{id}/cancel":  "Cancel",
	"GET /v1/payment_intents/{id}":          "Intent",
	"GET /v1/payment_intents":               "IntentOf",
	"POST /v1/refunds":                      "Refund",
	"GET /v1/refunds":                       "RefundOf",
	"GET /v1/refunds/{id}":                  "RefundByID",
}

// decide returns the fault of a request, and records it if it arrives.
func (b *Bank) decide(r sandbox.Request) (f Fault) {
	c := Call{calls[r.Pattern], cmp.Or(r.ID, r.Form.Get("metadata[charge_id]"), r.Form.Get("starting_after"), r.Key)}
	if r.Form.Has("created[gte]") {
		c.Method = "Intents"
	}
	b.mu.Lock()
	fault := b.fault
	b.mu.Unlock()
	if fault != nil {
		b.drawing.Lock()
		defer b.drawing.Unlock()
		f = fault(c)
	}
	switch f.Kind {
	case sandbox.HangBefore, sandbox.TooMany, sandbox.BadKey:
	default:
		b.record(c)
	}
	return f
}

func (b *Bank) record(c Call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, c)
}

// Calls returns the calls that arrived, in order.
func (b *Bank) Calls() []Call {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.log)
}

// Asked returns the objects of all calls of a method.
func (b *Bank) Asked(method string) (about []string) {
	for _, c := range b.Calls() {
		if c.Method == method {
			about = append(about, c.About)
		}
	}
	return about
}

// Issue creates a card that is bound to a customer, or to none yet.
func (b *Bank) Issue(c rental.Card, customer string, behaviour sandbox.Behaviour) rental.Card {
	b.Server.Issue(sandbox.Card{
		ID: c.Token, Customer: customer, Brand: c.Brand, Last4: c.LastFour, Fingerprint: c.Fingerprint,
		ExpMonth: c.ExpMonth, ExpYear: c.ExpYear, Behaviour: behaviour,
	})
	return c
}

// Entry is what the bank's ledger has of one charge.
type Entry struct {
	Payments int          // that took or held money, ever
	Taken    rental.Minor // what they have taken
	Held     rental.Minor // what they hold
	Refunds  int          // that succeeded, or will
	Returned rental.Minor // by them
}

// Of returns the ledger entry of a charge, by its identity. Amounts have two decimals.
func (b *Bank) Of(charge uuid.UUID) (e Entry) {
	for _, m := range b.Ledger() {
		if m.Charge == charge.String() {
			e.Payments += m.Approved
			e.Taken += rental.Minor(m.Captured)
			e.Held += rental.Minor(m.Held)
		}
		for _, r := range m.Refunds {
			if r.Charge == charge.String() && r.Status != "failed" {
				e.Refunds++
				e.Returned += rental.Minor(r.Amount)
			}
		}
	}
	return e
}
