package httpapi_test

import (
	"cmp"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"motorpool/httpapi"
	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/rental/wallet"
	"motorpool/simulator/sandbox"
	"motorpool/telematics"
)

const methods = "/api/v1/client/payment-methods"

// purse is the API over a wallet with its record and processor in memory.
type purse struct {
	*api
	cards *rentaltest.Cards
	bank  *rentaltest.Bank
}

func newPurse(t *testing.T, change ...func(*httpapi.Config)) purse {
	t.Helper()
	p := purse{cards: rentaltest.NewCards(), bank: rentaltest.NewBank(t)}
	p.api = newAPI(t, append(change, func(c *httpapi.Config) {
		c.Wallet = wallet.New(wallet.Config{Cards: p.cards, Processor: p.bank, Now: c.Now, Log: c.Log})
	})...)
	return p
}

// card issues a card with a token at the processor.
func (p purse) card(token string) rental.Card {
	return p.issue(rental.Card{Token: token, Brand: "Visa", LastFour: "4242", ExpMonth: 12, ExpYear: 2030, Fingerprint: "of " + token})
}

func (p purse) issue(c rental.Card) rental.Card { return p.bank.Issue(c, "", sandbox.Behaviour{}) }

func (p purse) add(token string, change ...func(*http.Request)) *response {
	p.t.Helper()
	p.card(token)
	return p.asClient(
		http.MethodPost, methods,
		append(changes{withJSON(fmt.Sprintf(`{"payment_method_id":%q}`, token))}, change...)...)
}

func (p purse) list() []any {
	p.t.Helper()
	list, ok := p.asClient(http.MethodGet, methods).wants(200, "").body.Data.([]any)
	if !ok {
		p.t.Fatal("the data is no array")
	}
	return list
}

func (r *response) id() string {
	r.t.Helper()
	return fmt.Sprint(r.at("id"))
}

func TestPaymentMethod_HasAllFields(t *testing.T) {
	p := newPurse(t)
	p.asClient(http.MethodGet, methods).wants(200, "").says("0 payment methods.").shows(`"data":[]`)
	r := p.add("pm_card_1").wants(201, "")
	want := map[string]any{"id": 1.0, "type": "card", "brand": "visa", "last_four": "4242", "exp_month": 12.0, "exp_year": 2030.0,
		"is_default": true, "created_at": "2026-01-02T10:00:00.250Z"}
	r.has("", want).says("Visa •••• 4242 was added.")
	same(t, r.body.Success, true, "success")
	p.add("pm_card_2").wants(201, "")
	list := p.list()
	second := list[0].(map[string]any)
	if len(list) != 2 || !reflect.DeepEqual(list[1], want) || second["id"] != 2.0 || second["is_default"] != false {
		t.Errorf("cards %v, want the new one first", list)
	}
	p.asClient(http.MethodGet, methods).meta("agency_id", 1.0).hides("pm_card", "of pm")
}

func TestSetDefault_ReturnsOnlyFieldsOfTheContract(t *testing.T) {
	p := newPurse(t)
	p.add("pm_1").wants(201, "")
	p.card("pm_3")
	p.asClient(http.MethodPost, methods, withJSON(`{"payment_method_id":"pm_3","set_default":true}`)).wants(201, "").has("is_default", true)
	second := p.add("pm_2").wants(201, "").id()
	r := p.asClient(http.MethodPost, methods+"/"+second+"/default").wants(200, "")
	want := map[string]any{"id": 3.0, "type": "card", "brand": "visa", "last_four": "4242", "is_default": true}
	r.has("", want).meta("agency_id", 1.0)
	if list := p.list(); list[0].(map[string]any)["is_default"] != true || list[1].(map[string]any)["is_default"] != false {
		t.Errorf("cards %v, want the first one as default", list)
	}
	p.asClient(http.MethodPost, methods+"/"+second+"/default").wants(200, "")
}

func TestAddMethod_SameCardIsNotAddedTwice(t *testing.T) {
	p := newPurse(t)
	first := p.add("pm_1").wants(201, "").id()
	p.issue(rental.Card{Token: "pm_2", Brand: "visa", LastFour: "4242", ExpMonth: 12, ExpYear: 2035, Fingerprint: "of pm_1"})
	for _, set := range []string{"false", "null"} {
		r := p.asClient(http.MethodPost, methods, withJSON(`{"payment_method_id":"pm_2","set_default":`+set+`}`)).wants(200, "")
		r.has("exp_year", 2035.0).says("Visa •••• 4242 was saved already.")
		same(t, r.id(), first, "id")
	}
}

func TestRemoveMethod_RemovesACardButNotTheDefault(t *testing.T) {
	p := newPurse(t)
	first := p.add("pm_1").wants(201, "").id()
	second := p.add("pm_2").wants(201, "").id()
	r := p.asClient(http.MethodDelete, methods+"/"+first).wants(400, "default_payment_method")
	r.has("", nil).mentions("default payment method cannot be removed")
	same(t, r.body.Error.Retryable, false, "retryable")
	r = p.asClient(http.MethodDelete, methods+"/"+second).wants(200, "")
	r.meta("agency_id", 1.0).shows(`"data":null`)
	same(t, r.body.Success, true, "success")
	same(t, len(p.list()), 1, "cards")
	same(t, p.bank.Attached(), []string{"pm_1"}, "attached")
	third := p.add("pm_3").wants(201, "").id()
	p.cards.Use(3)
	p.asClient(http.MethodDelete, methods+"/"+third).wants(400, "payment_method_in_use")
}

func TestPaymentMethod_OfAnotherReadsLikeAMissingOne(t *testing.T) {
	p := newPurse(t)
	own := p.add("pm_1").wants(201, "").id()
	other := claiming(claimSet{"role": "client", "agency_id": 1, "sub": "client-2"})
	for method, tail := range map[string]string{http.MethodDelete: "", http.MethodPost: "/default"} {
		theirs := p.asClient(method, methods+"/"+own+tail, other).wants(404, "payment_method_not_found")
		missing := p.asClient(method, methods+"/99"+tail, other).wants(404, "payment_method_not_found")
		same(t, strings.ReplaceAll(missing.body.Message, "99", own), theirs.body.Message, "message")
		same(t, *missing.body.Error, *theirs.body.Error, "error")
	}
	p.asClient(http.MethodGet, methods, other).wants(200, "").lists(0)
	same(t, len(p.list()), 1, "another client removed the card")
}

func TestAddMethod_RefusalHasItsReason(t *testing.T) {
	for name, test := range map[string]struct {
		token  string
		fail   sandbox.FaultKind
		status int
		code   string
		reason string
		retry  string
	}{
		"declined": {
			token: "pm_card_visa_chargeDeclinedInsufficientFunds", status: 422, code: "card_declined", reason: "insufficient_funds"},
		"unknown to the processor": {status: 422, code: "payment_method_invalid"},
		"processor unavailable": {
			fail: sandbox.ResetAfter, status: 503, code: "payment_processor_unavailable", retry: "10"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPurse(t)
			if test.fail != "" {
				p.bank.FailAll("", test.fail)
			}
			before := len(p.list())
			r := p.asClient(http.MethodPost, methods, withJSON(fmt.Sprintf(`{"payment_method_id":%q}`, cmp.Or(test.token, "pm_1")))).
				wants(test.status, test.code)
			r.wantsRetryAfter(test.retry)
			if got := r.body.Error.Reason; (got == nil) != (test.reason == "") || got != nil && *got != test.reason {
				t.Errorf("reason of %s, want %q", r.text, test.reason)
			}
			if r.body.Error.Retryable != (test.retry != "") || r.body.Message == "" || len(p.list()) != before {
				t.Errorf("refusal without a message, with a wrong retryable, or with a stored card: %s", r.text)
			}
			like(t, p.lastEntry(), logged{
				Action: rental.MethodAdd, Code: telematics.Code(test.code), Outcome: telematics.NotExecuted,
				Actor: telematics.Actor{Subject: "client-1"},
			}, "entry")
		})
	}
}

func TestPaymentMethod_InvalidRequestIsRefused(t *testing.T) {
	p := newPurse(t)
	for body, field := range map[string]string{
		``: "payment_method_id", `{}`: "payment_method_id", `{"payment_method_id":""}`: "payment_method_id",
		`{"payment_method_id":null}`: "payment_method_id", `{"payment_method_id":7}`: "payment_method_id",
		`{"payment_method_id":"` + strings.Repeat("x", 256) + `"}`: "payment_method_id",
		`{"payment_method_id":"pm_1","set_default":"true"}`:        "set_default",
		`{"payment_method_id":"pm_1","set_default":1}`:             "set_default",
	} {
		r := p.asClient(http.MethodPost, methods, withJSON(body)).wants(422, "validation_failed")
		if len(r.body.Errors) != 1 || len(r.body.Errors[field]) == 0 {
			t.Errorf("%s: errors %v, want one for the field", body, r.body.Errors)
		}
	}
	for _, id := range []string{"x", "1.5", "9223372036854775808"} {
		for method, tail := range map[string]string{http.MethodDelete: "", http.MethodPost: "/default"} {
			p.asClient(method, methods+"/"+id+tail).invalid("id")
		}
	}
	if lines := p.history.all(); len(lines) == 0 || slices.ContainsFunc(lines, func(l telematics.Activity) bool {
		return l.Outcome != telematics.NotExecuted || !strings.HasPrefix(l.Action, "payment_method.")
	}) {
		t.Errorf("audit log entries %+v", lines)
	}
}

func TestPaymentMethod_RepeatedRequestIsMarked(t *testing.T) {
	p := newPurse(t)
	key := keyed("add-1")
	first := p.add("pm_1", key).wants(201, "")
	second := p.add("pm_2").wants(201, "").id()
	p.asClient(http.MethodPost, methods+"/"+second+"/default", keyed("default-1")).wants(200, "")
	again := p.asClient(http.MethodPost, methods, withJSON(`{"payment_method_id":"pm_1"}`), key).wants(201, "")
	if again.header.Get("Idempotency-Replayed") != "true" || again.id() != first.id() || again.at("is_default") != false ||
		again.body.RequestID == first.body.RequestID {
		t.Errorf("the repetition with the key: %s, want the first method, replayed", again.text)
	}
	r := p.asClient(http.MethodPost, methods+"/"+second+"/default", keyed("default-1")).wants(200, "")
	r.heads("Idempotency-Replayed", "true")
	p.asClient(http.MethodPost, methods, withJSON(`{"payment_method_id":"pm_2"}`), key).wants(422, "idempotency_mismatch")
	p.asClient(http.MethodDelete, methods+"/"+first.id()).wants(200, "")
	gone := p.asClient(http.MethodPost, methods, withJSON(`{"payment_method_id":"pm_1"}`), key).wants(404, "payment_method_not_found")
	gone.heads("Idempotency-Replayed", "true")
	same(t, len(p.bank.Asked("Attach")), 2, "attached")
	var codes []string
	for _, line := range p.history.all() {
		codes = append(codes, fmt.Sprint(line.Action, " ", line.Code))
	}
	want := []string{
		"payment_method.add idempotency_replayed", "payment_method.default idempotency_replayed",
		"payment_method.add idempotency_mismatch", "payment_method.add idempotency_replayed",
	}
	same(t, codes, want, "audit log entries")
}

func TestAddMethod_RepeatedDeclineDoesNotTryTheCardAgain(t *testing.T) {
	p := newPurse(t)
	key := keyed("add-1")
	body := withJSON(`{"payment_method_id":"pm_card_visa_chargeDeclinedLostCard"}`)
	first := p.asClient(http.MethodPost, methods, body, key).wants(422, "card_declined")
	again := p.asClient(http.MethodPost, methods, body, key).wants(422, "card_declined")
	again.heads("Idempotency-Replayed", "true").says(first.body.Message)
	first.heads("Idempotency-Replayed", "")
	same(t, *again.body.Error.Reason, "generic_decline", "reason")
	same(t, len(p.bank.Asked("Attach")), 1, "attached")
}

func TestPaymentMethod_WithoutPostgresIsRetryable(t *testing.T) {
	p := newPurse(t)
	id := p.add("pm_1").wants(201, "").id()
	p.cards.FailWith(gone{})
	for _, r := range []*response{
		p.asClient(http.MethodGet, methods), p.asClient(http.MethodDelete, methods+"/"+id),
		p.asClient(http.MethodPost, methods+"/"+id+"/default"),
		p.asClient(http.MethodPost, methods, withJSON(`{"payment_method_id":"pm_2"}`)),
	} {
		r.wants(503, "service_unavailable").wantsRetryAfter("10")
		if strings.Contains(r.text, "secret-host") {
			t.Errorf("the response names a server: %s", r.text)
		}
	}
	for _, line := range p.history.all() {
		like(t, line, logged{Outcome: telematics.MayHave, Code: "service_unavailable"}, "entry")
	}
}
