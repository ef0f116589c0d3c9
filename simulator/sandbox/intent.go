package sandbox

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// States of a payment (https://docs.stripe.com/payments/paymentintents/lifecycle).
const (
	requiresMethod       = "requires_payment_method"
	requiresConfirmation = "requires_confirmation"
	requiresAction       = "requires_action"
	requiresCapture      = "requires_capture"
	succeeded            = "succeeded"
	canceled             = "canceled"
)

// manual is the capture method of a hold.
const manual = "manual"

// maxAmount is Stripe's: eight digits.
const maxAmount = 99_999_999

// intent is a payment.
type intent struct {
	object
	Status      string    `json:"status"`
	Customer    string    `json:"customer"`
	Currency    string    `json:"currency"` // in lower case
	Amount      int64     `json:"amount"`
	Capturable  int64     `json:"amount_capturable"`
	Received    int64     `json:"amount_received"`
	Capture     string    `json:"capture_method"`
	Description string    `json:"description"`
	Method      string    `json:"payment_method"`
	Secret      string    `json:"client_secret"`
	LastError   *failure  `json:"last_error"`
	Attempts    []attempt `json:"attempts"`
}

// attempt is one attempt with a card: a charge, in Stripe's terms.
type attempt struct {
	ID      string `json:"id"`
	Method  string `json:"payment_method"`
	Refused string `json:"refused"` // the code; empty: approved
}

func (i *intent) iso() string { return strings.ToUpper(i.Currency) }

func (i *intent) latest() string {
	if len(i.Attempts) == 0 {
		return ""
	}
	return i.Attempts[len(i.Attempts)-1].ID
}

func (i *intent) view() view {
	v := i.object.view("payment_intent")
	for name, value := range map[string]any{
		"status": i.Status, "customer": orNull(i.Customer), "currency": i.Currency, "amount": i.Amount, "amount_capturable": i.Capturable,
		"amount_received": i.Received, "capture_method": i.Capture, "confirmation_method": "automatic",
		"description":    orNull(i.Description),
		"payment_method": orNull(i.Method), "client_secret": i.Secret, "latest_charge": orNull(i.latest()),
		"payment_method_types": []string{"card"},
		"last_payment_error":   nil, "next_action": nil, "canceled_at": nil, "cancellation_reason": nil,
	} {
		v[name] = value
	}
	if i.LastError != nil {
		v["last_payment_error"] = i.LastError.view()["error"]
	}
	if i.Status == requiresAction {
		v["next_action"] = view{"type": "use_stripe_sdk", "use_stripe_sdk": view{}}
	}
	return v
}

// intents returns the payments of a customer, or all.
func (l *ledger) intents(customer string, newest bool) []*intent {
	return sorted(l.Intents, func(i *intent) int64 { return i.Number }, newest, func(i *intent) bool {
		return customer == "" || i.Customer == customer
	})
}

// ownDigits are the currencies whose amounts end in zeros (https://docs.stripe.com/currencies).
var ownDigits = map[string]int64{"bhd": 10, "jod": 10, "kwd": 10, "omr": 10, "tnd": 10, "isk": 100, "ugx": 100}

func checkAmount(p *params, amount int64, currency string) {
	switch by := ownDigits[currency]; {
	case amount > maxAmount:
		p.fail(refused("amount_too_large", "amount", "Amount must be no more than %d", maxAmount))
	case by > 0 && amount%by != 0:
		p.fail(refused("invalid_charge_amount", "amount", "Amounts in %s must be multiples of %d", currency, by))
	}
}

// smallest holds the least amounts that are charged, in the API's units
// (https://docs.stripe.com/currencies#minimum-and-maximum-charge-amounts, read 2026-11-26). Stripe
// converts amounts in other currencies to that of the account's settlement; here any will do.
var smallest = map[string]int64{
	"aed": 200, "aud": 50, "bgn": 100, "brl": 50, "cad": 50, "chf": 50, "czk": 15_00, "dkk": 250, "eur": 50, "gbp": 30,
	"hkd": 400, "huf": 175_00, "inr": 50, "jpy": 50, "mxn": 10_00, "myr": 200, "nok": 300, "nzd": 50, "pln": 200,
	"ron": 200, "sek": 300, "sgd": 50, "thb": 10_00, "usd": 50,
}

func createIntent(l *ledger, r *request) (view, *failure) {
	p := r.params
	p.needed("amount")
	i := &intent{
		Status: requiresMethod, Amount: p.whole("amount"), Currency: p.needed("currency"), Customer: p.text("customer"),
		Capture: p.oneOf("capture_method", "automatic_async", "automatic", manual), Description: p.text("description"),
	}
	metadata, kinds := p.object("metadata"), p.list("payment_method_types")
	if len(i.Currency) != 3 || strings.ToLower(i.Currency) != i.Currency {
		p.fail(refused("parameter_invalid", "currency", "Invalid currency: %s", i.Currency))
	}
	if !slices.Equal(kinds, []string{"card"}) {
		p.fail(refused("parameter_invalid", "payment_method_types", "This sandbox has cards alone: payment_method_types must be card."))
	}
	checkAmount(p, i.Amount, i.Currency)
	if least := smallest[i.Currency]; i.Amount > 0 && i.Amount < least {
		p.fail(refused("amount_too_small", "amount", "Amount must be at least %d in %s", least, i.Currency))
	}
	if f := p.check(); f != nil {
		return nil, f
	}
	if i.Customer != "" && l.Customers[i.Customer] == nil {
		return nil, missingAt("customer", "customer", i.Customer)
	}
	i.object = l.newObject("pi", metadata)
	i.Secret = newID(i.ID + "_secret")
	l.Intents[i.ID] = i
	l.addEvent("payment_intent.created", i.view())
	return i.view(), nil
}

// intentOf returns the payment that the path names, to a caller with the secret key, or with the
// payment's client secret.
func (l *ledger) intentOf(r *request) (*intent, *failure) {
	secret := r.params.text("client_secret")
	i := l.Intents[r.id]
	if i == nil {
		return nil, missing("payment_intent", r.id)
	}
	if secret != i.Secret && (r.publishable || secret != "") {
		return nil, refused(
			"payment_intent_invalid_parameter", "client_secret",
			"The client_secret provided does not match any associated PaymentIntent on this account.",
		)
	}
	return i, nil
}

func getIntent(l *ledger, r *request) (view, *failure) {
	i, f := l.intentOf(r)
	if f := cmp.Or(r.params.check(), f); f != nil {
		return nil, f
	}
	return i.view(), nil
}

func listIntents(l *ledger, r *request) (view, *failure) {
	all, since := l.intents(r.params.text("customer"), true), r.params.whole("created[gte]")
	all = slices.DeleteFunc(all, func(i *intent) bool { return i.Created < since })
	expanded := r.params.list("expand")
	if len(expanded) > 0 && !slices.Equal(expanded, []string{"data.latest_charge"}) {
		r.params.fail(refused("parameter_invalid", "expand", "This sandbox expands data.latest_charge alone."))
	}
	return page(r, "/v1/payment_intents", all, func(i *intent) (string, view) {
		v := i.view()
		if len(expanded) > 0 && len(i.Attempts) > 0 {
			v["latest_charge"] = l.charge(i)
		}
		return i.ID, v
	})
}

// unexpected returns a failure if the payment is in another state than the request needs.
func (i *intent) unexpected(what string, want ...string) *failure {
	if slices.Contains(want, i.Status) {
		return nil
	}
	f := refused(unexpectedState, "", "You cannot %s this PaymentIntent because it has a status of %s.", what, i.Status)
	f.Intent = i.view()
	return f
}

func capture(l *ledger, r *request) (view, *failure) {
	amount := r.params.whole("amount_to_capture")
	i, f := l.intentOf(r)
	if i != nil {
		checkAmount(r.params, amount, i.Currency)
	}
	if f := cmp.Or(r.params.check(), f); f != nil {
		return nil, f
	}
	if f := i.unexpected("capture", requiresCapture); f != nil {
		return nil, f
	}
	amount = cmp.Or(amount, i.Capturable)
	if amount > i.Capturable {
		return nil, refused(
			"amount_too_large", "amount_to_capture",
			"The amount_to_capture is greater than the amount that is held (%d).", i.Capturable,
		)
	}
	i.Status, i.Received, i.Capturable = succeeded, amount, 0
	l.addEvent("charge.captured", l.charge(i))
	l.addEvent("payment_intent.succeeded", i.view())
	return i.view(), nil
}

func cancel(l *ledger, r *request) (view, *failure) {
	r.params.oneOf("cancellation_reason", "abandoned", "duplicate", "fraudulent", "requested_by_customer")
	i, f := l.intentOf(r)
	if f := cmp.Or(r.params.check(), f); f != nil {
		return nil, f
	}
	if f := i.unexpected("cancel", requiresMethod, requiresConfirmation, requiresAction, requiresCapture); f != nil {
		return nil, f
	}
	l.cancel(i)
	return i.view(), nil
}

func (l *ledger) cancel(i *intent) {
	i.Status, i.Capturable = canceled, 0
	l.addEvent("payment_intent.canceled", i.view())
}

// Lapse ends a hold, as its bank may, and posts an event.
func (s *Server) Lapse(intent string) error {
	return s.change(func(l *ledger) error {
		i := l.Intents[intent]
		if i == nil || i.Status != requiresCapture {
			return errors.New("the sandbox has no such hold")
		}
		l.cancel(i)
		return nil
	})
}
