package sandbox

import (
	"cmp"
	"errors"
	"slices"
)

// method is a card that was shown to the sandbox. One that was detached is of no use for ever.
type method struct {
	object
	Customer    string `json:"customer"` // empty: no customer
	Used        bool   `json:"used"`     // it was bound
	Brand       string `json:"brand"`
	Funding     string `json:"funding"`
	Last4       string `json:"last4"`
	Fingerprint string `json:"fingerprint"`
	ExpMonth    int    `json:"exp_month"`
	ExpYear     int    `json:"exp_year"`
	Attach      string `json:"attach"`
	Behaviour
}

func (m *method) view() view {
	v := m.object.view("payment_method")
	v["type"] = "card"
	v["customer"] = orNull(m.Customer)
	v["billing_details"] = view{"address": nil, "email": nil, "name": nil, "phone": nil}
	v["card"] = view{
		"brand": m.Brand, "display_brand": m.Brand, "country": "US", "funding": m.Funding, "last4": m.Last4, "fingerprint": m.Fingerprint,
		"exp_month": m.ExpMonth, "exp_year": m.ExpYear, "checks": view{"cvc_check": "pass"},
	}
	return v
}

// find returns a payment method. A published card is a new one each time.
func (l *ledger) find(token string) *method {
	c, ok := published[token]
	if !ok {
		return l.Methods[token]
	}
	m := &method{
		object: l.newObject("pm", nil), Brand: c.Brand, Funding: c.Funding, Last4: c.Number[len(c.Number)-4:],
		Fingerprint: c.fingerprint(), ExpMonth: expMonth, ExpYear: expYear, Attach: c.Attach, Behaviour: c.Behaviour,
	}
	m.Funding = cmp.Or(m.Funding, "credit")
	l.Methods[m.ID] = m
	return m
}

func getMethod(l *ledger, r *request) (view, *failure) {
	if f := r.params.check(); f != nil {
		return nil, f
	}
	m := l.find(r.id)
	if m == nil {
		return nil, missing("PaymentMethod", r.id)
	}
	return m.view(), nil
}

func attach(l *ledger, r *request) (view, *failure) {
	customer := r.params.needed("customer")
	if f := r.params.check(); f != nil {
		return nil, f
	}
	if l.Customers[customer] == nil {
		return nil, missingAt("customer", "customer", customer)
	}
	m := l.find(r.id)
	switch {
	case m == nil:
		return nil, missing("PaymentMethod", r.id)
	case m.Customer != "":
		return nil, refused("", "", "The payment method you provided has already been attached to a customer.")
	case m.Used:
		return nil, refused(
			"", "",
			"This PaymentMethod was previously used without being attached to a Customer or was detached from a Customer, "+
				"and may not be used again.",
		)
	case m.Attach != "":
		return nil, declined(m.Attach, "")
	}
	m.Customer, m.Used = customer, true
	l.addEvent("payment_method.attached", m.view())
	return m.view(), nil
}

func detach(l *ledger, r *request) (view, *failure) {
	if f := r.params.check(); f != nil {
		return nil, f
	}
	m := l.Methods[r.id]
	if m == nil {
		return nil, missing("PaymentMethod", r.id)
	}
	if m.Customer == "" {
		return nil, refused("", "", "The payment method you provided is not attached to a customer so detachment is impossible.")
	}
	m.Customer = ""
	l.addEvent("payment_method.detached", m.view())
	return m.view(), nil
}

// Card is a payment method that is none of the published ones.
type Card struct {
	ID          string
	Customer    string // that it is bound to, created if absent; empty: none
	Brand       string
	Last4       string
	Fingerprint string
	ExpMonth    int
	ExpYear     int
	Behaviour
}

// Issue adds a card, or replaces the one with its id, without an event.
func (s *Server) Issue(c Card) {
	_ = s.change(func(l *ledger) error {
		o := l.newObject("pm", nil)
		o.ID = c.ID
		l.Methods[c.ID] = &method{
			object: o, Customer: c.Customer, Used: c.Customer != "", Brand: c.Brand, Funding: "credit", Last4: c.Last4,
			Fingerprint: c.Fingerprint, ExpMonth: c.ExpMonth, ExpYear: c.ExpYear, Behaviour: c.Behaviour,
		}
		if c.Customer != "" && l.Customers[c.Customer] == nil {
			o.ID = c.Customer
			l.Customers[c.Customer] = &customer{object: o}
		}
		return nil
	})
}

// Attached returns the ids of the cards that are bound to a customer, sorted.
func (s *Server) Attached() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, m := range s.ledger.Methods {
		if m.Customer != "" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Customers returns the number of customers.
func (s *Server) Customers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ledger.Customers)
}

// SetCard changes the behaviour of an attached card from now on.
func (s *Server) SetCard(token string, b Behaviour) error {
	return s.change(func(l *ledger) error {
		m := l.Methods[token]
		if m == nil {
			return errors.New("the sandbox has no such payment method")
		}
		m.Behaviour = b
		return nil
	})
}
