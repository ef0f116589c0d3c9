package sandbox

import (
	"cmp"
	"errors"
)

// confirm tries a card. With the secret key the owner is absent, or the request says that they are
// present; with a publishable key and the payment's client secret it is the owner who confirms.
func confirm(l *ledger, r *request) (view, *failure) {
	token, away := r.params.text("payment_method"), r.params.yes("off_session")
	r.params.text("return_url")
	i, f := l.intentOf(r)
	if f := cmp.Or(r.params.check(), f); f != nil {
		return nil, f
	}
	if f := i.unexpected("confirm", requiresMethod, requiresConfirmation, requiresAction); f != nil {
		return nil, f
	}
	m, f := l.cardFor(i, token)
	if f != nil {
		return nil, f
	}
	switch {
	case m.Authenticate && !r.publishable && away:
		return nil, l.refuse(i, m, declined(authentication, ""))
	case m.Authenticate && !r.publishable:
		i.Status, i.Method, i.LastError = requiresAction, m.ID, nil
		l.addEvent("payment_intent.requires_action", i.view())
		return i.view(), nil
	case m.Decline != "":
		return nil, l.refuse(i, m, declined(m.Decline, m.Advice))
	}
	l.approve(i, m)
	return i.view(), nil
}

// OwnerConfirms confirms a payment that waits for its owner, with the card that was tried last.
func (s *Server) OwnerConfirms(intent string) error {
	return s.change(func(l *ledger) error {
		i := l.Intents[intent]
		if i == nil ||
			i.Status != requiresAction && (i.Status != requiresMethod || i.LastError == nil || i.LastError.Code != authentication) {
			return errors.New("no payment of the sandbox waits for its owner under this id")
		}
		m, f := l.cardFor(i, "")
		if f != nil {
			return errors.New(f.Message)
		}
		l.approve(i, m)
		return nil
	})
}

// cardFor returns the card to try: the one that is named, else the one that was tried last.
func (l *ledger) cardFor(i *intent, token string) (*method, *failure) {
	token = cmp.Or(token, i.Method)
	if token == "" && len(i.Attempts) > 0 {
		token = i.Attempts[len(i.Attempts)-1].Method
	}
	if token == "" {
		f := refused(unexpectedState, "payment_method", "You cannot confirm this PaymentIntent because it's missing a payment method.")
		f.Intent = i.view()
		return nil, f
	}
	m := l.find(token)
	switch {
	case m == nil, m.Gone:
		return nil, missingAt("payment_method", "PaymentMethod", token)
	case i.Customer != "" && m.Customer != i.Customer, m.Customer == "" && m.Used:
		return nil, refused(
			resourceMissing, "payment_method",
			"The customer does not have a payment method with the ID %s. The payment method must be attached to the customer.",
			token,
		)
	}
	return m, nil
}

func (l *ledger) refuse(i *intent, m *method, f *failure) *failure {
	code := cmp.Or(f.DeclineCode, f.Code)
	i.Attempts = append(i.Attempts, attempt{ID: newID("ch"), Method: m.ID, Refused: code})
	f.Charge, f.Method = i.latest(), m.view()
	i.Status, i.Method = requiresMethod, ""
	kept := *f
	i.LastError = &kept
	f.Intent = i.view()
	l.addEvent("charge.failed", l.charge(i))
	l.addEvent("payment_intent.payment_failed", i.view())
	return f
}

func (l *ledger) approve(i *intent, m *method) {
	i.Attempts = append(i.Attempts, attempt{ID: newID("ch"), Method: m.ID})
	i.Method, i.LastError = m.ID, nil
	if i.Capture == manual {
		i.Status, i.Capturable = requiresCapture, i.Amount
		l.addEvent("payment_intent.amount_capturable_updated", i.view())
		return
	}
	i.Status, i.Received = succeeded, i.Amount
	l.addEvent("charge.succeeded", l.charge(i))
	l.addEvent("payment_intent.succeeded", i.view())
}

// charge is the last attempt, as events show it.
func (l *ledger) charge(i *intent) view {
	last := i.Attempts[len(i.Attempts)-1]
	refunded := l.refunded(i.ID)
	v := object{ID: last.ID, Created: i.Created, Metadata: i.Metadata}.view("charge")
	for name, value := range map[string]any{
		"amount": i.Amount, "amount_captured": i.Received, "amount_refunded": refunded, "captured": i.Received > 0, "currency": i.Currency,
		"customer": orNull(i.Customer), "payment_intent": i.ID, "payment_method": last.Method, "paid": last.Refused == "",
		"refunded": i.Received > 0 && refunded == i.Received, "failure_code": orNull(last.Refused), "status": "succeeded",
	} {
		v[name] = value
	}
	if last.Refused != "" {
		v["status"] = "failed"
	}
	return v
}
