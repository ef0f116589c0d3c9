package sandbox

import (
	"cmp"
	"crypto/rand"
	"slices"
	"time"
)

// ledger is the state of the sandbox. The file contains it as JSON.
type ledger struct {
	Count     int64                `json:"count"` // of objects: it gives them their order
	Customers map[string]*customer `json:"customers"`
	Methods   map[string]*method   `json:"payment_methods"`
	Intents   map[string]*intent   `json:"payment_intents"`
	Refunds   map[string]*refund   `json:"refunds"`
	Answers   map[string]answer    `json:"answers"` // by idempotency key

	events []event // to be posted once the change is made
}

func newLedger() *ledger {
	return &ledger{
		Customers: map[string]*customer{}, Methods: map[string]*method{}, Intents: map[string]*intent{},
		Refunds: map[string]*refund{}, Answers: map[string]answer{},
	}
}

// object has the fields of every object.
type object struct {
	ID       string            `json:"id"`
	Number   int64             `json:"number"`
	Created  int64             `json:"created"` // Unix time
	Metadata map[string]string `json:"metadata"`
}

func (l *ledger) newObject(prefix string, metadata map[string]string) object {
	l.Count++
	return object{ID: newID(prefix), Number: l.Count, Created: time.Now().Unix(), Metadata: metadata}
}

func newID(prefix string) string { return prefix + "_" + rand.Text() }

// view is an object in an answer.
type view = map[string]any

func (o object) view(kind string) view {
	metadata := o.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	return view{"id": o.ID, "object": kind, "created": o.Created, "livemode": false, "metadata": metadata}
}

// orNull shows an empty id or word as Stripe does.
func orNull[T comparable](v T) any {
	var none T
	if v == none {
		return nil
	}
	return v
}

// Movement is a payment with its refunds. Amounts are in the units of Stripe's API.
type Movement struct {
	Intent   string     `json:"intent"`
	Charge   string     `json:"charge_id"` // of its metadata
	Customer string     `json:"customer"`
	Currency string     `json:"currency"` // in capitals
	Status   string     `json:"status"`
	Amount   int64      `json:"amount"`   // asked for
	Held     int64      `json:"held"`     // authorised, not captured
	Captured int64      `json:"captured"` // received
	Refunded int64      `json:"refunded"` // refunds that failed are not counted
	Attempts int        `json:"attempts"` // every card that was tried
	Approved int        `json:"approved"` // those of them that were not refused
	Refunds  []Giveback `json:"refunds"`
}

// Giveback is a refund.
type Giveback struct {
	Refund string `json:"refund"`
	Charge string `json:"charge_id"` // of its metadata
	Amount int64  `json:"amount"`
	Status string `json:"status"`
}

// Ledger returns every payment that was ever made, the first one first.
func (s *Server) Ledger() []Movement {
	s.mu.Lock()
	defer s.mu.Unlock()
	movements := []Movement{}
	for _, i := range s.ledger.intents("", false) {
		m := Movement{
			Intent: i.ID, Charge: i.Metadata["charge_id"], Customer: i.Customer, Currency: i.iso(), Status: i.Status, Amount: i.Amount,
			Held: i.Capturable, Captured: i.Received, Refunded: s.ledger.refunded(i.ID), Attempts: len(i.Attempts), Refunds: []Giveback{},
		}
		for _, a := range i.Attempts {
			if a.Refused == "" {
				m.Approved++
			}
		}
		for _, r := range s.ledger.refundsOf(i.ID, false) {
			m.Refunds = append(m.Refunds, Giveback{Refund: r.ID, Charge: r.Metadata["charge_id"], Amount: r.Amount, Status: r.Status})
		}
		movements = append(movements, m)
	}
	return movements
}

// sorted returns objects by their number: the newest first, as Stripe lists them, or the oldest.
func sorted[T any](objects map[string]T, number func(T) int64, newest bool, want func(T) bool) []T {
	var some []T
	for _, o := range objects {
		if want(o) {
			some = append(some, o)
		}
	}
	slices.SortFunc(some, func(a, b T) int {
		if newest {
			a, b = b, a
		}
		return cmp.Compare(number(a), number(b))
	})
	return some
}
