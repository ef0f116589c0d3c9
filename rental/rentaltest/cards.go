// Package rentaltest holds the contracts of the ports of package rental, as tests that every
// implementation runs, such as [CardsContract], and in-memory implementations for tests of the
// code that uses the ports: [Bank], [Cards], [Ledger], [Notices].
//
// Only test files import it.
package rentaltest

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"motorpool/rental"
	"motorpool/telematics"
)

// Cards stores payment methods in memory, without charges. It is safe for concurrent use.
type Cards struct {
	mu      sync.Mutex
	clients []rental.Client // id is the place, from 1
	methods []rental.Method // by id
	last    rental.MethodID
	used    map[rental.MethodID]bool
	keys    map[string]named
	lines   []telematics.Activity
	detach  map[string]detachment // by token
	err     error
}

type detachment struct {
	client rental.ClientID
	due    time.Time
}

type named struct {
	fingerprint [32]byte
	method      rental.MethodID
	refusal     *telematics.Error
}

// NewCards returns a store without clients.
func NewCards() *Cards {
	return &Cards{used: map[rental.MethodID]bool{}, keys: map[string]named{}, detach: map[string]detachment{}}
}

// Use marks a method as used by an active booking.
func (m *Cards) Use(id rental.MethodID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used[id] = true
}

// FailWith makes every call fail; nil ends that.
func (m *Cards) FailWith(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// Lines returns the audit log entries, oldest first.
func (m *Cards) Lines() []telematics.Activity {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.lines)
}

// Client returns the client, and creates it at first use.
func (m *Cards) Client(_ context.Context, agency telematics.AgencyID, subject string) (rental.Client, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.clients {
		if c.Agency == agency && c.Subject == subject {
			return c, m.err
		}
	}
	if m.err != nil {
		return rental.Client{}, m.err
	}
	c := rental.Client{ID: rental.ClientID(len(m.clients) + 1), Agency: agency, Subject: subject, Key: uuid.NewString()}
	m.clients = append(m.clients, c)
	return c, nil
}

func (m *Cards) client(id rental.ClientID) *rental.Client { return &m.clients[id-1] }

// SetCustomer stores the processor's id of a client, once.
func (m *Cards) SetCustomer(_ context.Context, id rental.ClientID, customer string) (rental.Client, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.client(id)
	if m.err == nil && c.Customer == "" {
		c.Customer = customer
	}
	return *c, m.err
}

// Methods returns the client's payment methods, newest first.
func (m *Cards) Methods(_ context.Context, id rental.ClientID) ([]rental.Method, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.of(id), m.err
}

func (m *Cards) of(id rental.ClientID) []rental.Method {
	found := []rental.Method{}
	for _, method := range slices.Backward(m.methods) {
		if method.Client == id {
			found = append(found, m.shown(method))
		}
	}
	return found
}

// shown returns a method with its derived fields.
func (m *Cards) shown(method rental.Method) rental.Method {
	method.Default = m.client(method.Client).Default == method.ID
	return method
}

func (m *Cards) at(client rental.ClientID, id rental.MethodID) (int, error) {
	at := slices.IndexFunc(m.methods, func(method rental.Method) bool { return method.ID == id && method.Client == client })
	if at < 0 {
		return at, rental.NoSuchMethod(id)
	}
	return at, nil
}

// AddMethod stores a card, or returns the existing method.
func (m *Cards) AddMethod(_ context.Context, a rental.Addition) (rental.Added, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return rental.Added{}, m.err
	}
	if a.Key != nil {
		if added, found, err := m.addedUnder(a.Client, *a.Key); found || err != nil {
			if err == nil && !slices.ContainsFunc(m.methods, func(method rental.Method) bool { return method.Token == a.Card.Token }) {
				added.Unused = a.Card.Token
				m.detach[a.Card.Token] = detachment{a.Client, time.Now().Add(time.Minute)}
			}
			return added, err
		}
	}
	added, err := m.put(a)
	if err != nil {
		return rental.Added{}, err
	}
	if c := m.client(a.Client); a.Default || c.Default == 0 {
		c.Default = added.Method.ID
	}
	added.Method = m.shown(added.Method)
	delete(m.detach, added.Method.Token)
	if added.Unused != "" {
		m.detach[added.Unused] = detachment{a.Client, time.Now().Add(time.Minute)}
	}
	m.take(a.Key, named{method: added.Method.ID})
	m.addEntry(a.Activity, added.Method)
	return added, nil
}

func (m *Cards) put(a rental.Addition) (rental.Added, error) {
	for i := range m.methods {
		method := &m.methods[i]
		if method.Client != a.Client && method.Token == a.Card.Token {
			return rental.Added{}, rental.InvalidMethod("it belongs to another customer", nil)
		}
		if method.Client != a.Client ||
			method.Token != a.Card.Token && (a.Card.Fingerprint == "" || method.Fingerprint != a.Card.Fingerprint) {
			continue
		}
		added := rental.Added{Existed: true}
		same := method.ExpMonth == a.Card.ExpMonth && method.ExpYear == a.Card.ExpYear
		switch {
		case method.Token == a.Card.Token:
		case same:
			added.Unused = a.Card.Token
		default:
			added.Unused = method.Token
		}
		if !same {
			method.Token, method.ExpMonth, method.ExpYear = a.Card.Token, a.Card.ExpMonth, a.Card.ExpYear
		}
		added.Method = *method
		return added, nil
	}
	if len(m.of(a.Client)) >= rental.MaxMethods {
		return rental.Added{}, rental.TooManyMethods()
	}
	m.last++
	method := rental.Method{ID: m.last, Client: a.Client, Card: a.Card, Created: a.Now}
	m.methods = append(m.methods, method)
	return rental.Added{Method: method}, nil
}

func scope(k telematics.IdempotencyKey) string {
	return strconv.FormatInt(int64(k.Agency), 10) + " " + k.Subject + " " + k.Key
}

func (m *Cards) take(k *telematics.IdempotencyKey, n named) {
	if k == nil {
		return
	}
	if _, taken := m.keys[scope(*k)]; !taken {
		n.fingerprint = k.Fingerprint
		m.keys[scope(*k)] = n
	}
}

// AddedUnder returns the method that an earlier request with a key added.
func (m *Cards) AddedUnder(_ context.Context, id rental.ClientID, key telematics.IdempotencyKey) (rental.Added, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return rental.Added{}, false, m.err
	}
	return m.addedUnder(id, key)
}

func (m *Cards) addedUnder(id rental.ClientID, key telematics.IdempotencyKey) (rental.Added, bool, error) {
	n, found := m.keys[scope(key)]
	switch {
	case !found:
		return rental.Added{}, false, nil
	case n.fingerprint != key.Fingerprint:
		return rental.Added{}, false, telematics.KeyMismatch()
	case n.refusal != nil:
		return rental.Added{Replayed: true}, true, n.refusal
	}
	at, err := m.at(id, n.method)
	if err != nil {
		return rental.Added{Replayed: true}, true, err
	}
	return rental.Added{Method: m.shown(m.methods[at]), Replayed: true}, true, nil
}

// KeepDecline stores a decline as the result of a key.
func (m *Cards) KeepDecline(_ context.Context, key telematics.IdempotencyKey, decline *telematics.Error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.take(&key, named{refusal: decline})
	}
	return m.err
}

// RemoveMethod removes a payment method.
func (m *Cards) RemoveMethod(
	_ context.Context, id rental.ClientID, method rental.MethodID, entry telematics.Activity,
) (rental.Method, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return rental.Method{}, m.err
	}
	at, err := m.at(id, method)
	switch {
	case err != nil:
		return rental.Method{}, err
	case m.client(id).Default == method:
		return rental.Method{}, rental.IsDefault()
	case m.used[method]:
		return rental.Method{}, rental.InUse()
	}
	m.detach[m.methods[at].Token] = detachment{id, time.Now().Add(time.Minute)}
	return m.remove(at, entry), nil
}

func (m *Cards) remove(at int, entry telematics.Activity) rental.Method {
	removed := m.shown(m.methods[at])
	m.methods = slices.Delete(m.methods, at, at+1)
	m.addEntry(entry, removed)
	return removed
}

// SetDefault makes a payment method the default.
func (m *Cards) SetDefault(
	_ context.Context, id rental.ClientID, method rental.MethodID, entry telematics.Activity, key *telematics.IdempotencyKey,
) (rental.Method, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return rental.Method{}, false, m.err
	}
	if key != nil {
		if added, found, err := m.addedUnder(id, *key); found || err != nil {
			return added.Method, found, err
		}
	}
	at, err := m.at(id, method)
	if err != nil {
		return rental.Method{}, false, err
	}
	m.client(id).Default = method
	m.take(key, named{method: method})
	m.addEntry(entry, m.shown(m.methods[at]))
	return m.shown(m.methods[at]), false, nil
}

// DropCard removes the payment method with a token.
func (m *Cards) DropCard(_ context.Context, token string, entry telematics.Activity) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.IndexFunc(m.methods, func(method rental.Method) bool { return method.Token == token })
	if m.err != nil || at < 0 {
		return m.err
	}
	c := m.client(m.methods[at].Client)
	entry.Agency = c.Agency
	removed := m.remove(at, entry)
	if c.Default == removed.ID {
		c.Default = 0
		if others := m.of(c.ID); len(others) > 0 {
			c.Default = others[0].ID
		}
	}
	return nil
}

// DetachLater stores a card to detach.
func (m *Cards) DetachLater(_ context.Context, client rental.ClientID, token string, after time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.detach[token] = detachment{client, time.Now().Add(after)}
	}
	return m.err
}

// TakeDetachments returns cards to detach.
func (m *Cards) TakeDetachments(_ context.Context, limit int, again time.Duration) (due []rental.Detachment, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for token, d := range m.detach {
		switch {
		case m.err != nil || len(due) == limit || d.due.After(time.Now()):
		case slices.ContainsFunc(m.methods, func(method rental.Method) bool { return method.Token == token }):
			delete(m.detach, token)
		default:
			m.detach[token] = detachment{d.client, time.Now().Add(again)}
			due = append(due, rental.Detachment{Client: d.client, Customer: m.client(d.client).Customer, Token: token})
		}
	}
	return due, m.err
}

// Detached removes a card from those to detach.
func (m *Cards) Detached(_ context.Context, token string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		delete(m.detach, token)
	}
	return m.err
}

// RefreshCard stores the processor's changes of a card.
func (m *Cards) RefreshCard(_ context.Context, card rental.Card) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.methods {
		if method := &m.methods[i]; m.err == nil && method.Token == card.Token {
			method.Brand, method.LastFour, method.ExpMonth, method.ExpYear = card.Brand, card.LastFour, card.ExpMonth, card.ExpYear
		}
	}
	return m.err
}

// addEntry adds an audit log entry, as Postgres does.
func (m *Cards) addEntry(entry telematics.Activity, method rental.Method) {
	entry.ID, entry.Outcome = int64(len(m.lines)+1), telematics.Executed
	entry.Details = map[string]any{"payment_method_id": int64(method.ID), "brand": method.Brand, "last_four": method.LastFour,
		"exp_month": method.ExpMonth, "exp_year": method.ExpYear, "is_default": method.Default}
	m.lines = append(m.lines, entry)
}
