package rentaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"motorpool/rental"
)

// Vault is the part of a payment processor that holds cards, in memory. Cards are created by Issue.
// It is safe for concurrent use.
type Vault struct {
	mu        sync.Mutex
	customers map[string]answer // by key
	cards     map[string]*held  // by token
	asked     []string          // calls, as method and object
	fail      func(method, about string) error
}

type held struct {
	card     rental.Card
	customer string
	gone     bool // detached: permanently unusable
	refusal  *rental.Decline
}

type answer struct {
	id  string
	err error
}

// NewVault returns a vault without cards.
func NewVault() *Vault {
	return &Vault{customers: map[string]answer{}, cards: map[string]*held{}}
}

// Issue creates a card that is not attached yet.
func (v *Vault) Issue(c rental.Card) rental.Card {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.cards[c.Token] = &held{card: c}
	return c
}

// IssueRefused creates a card that is declined when it is attached.
func (v *Vault) IssueRefused(c rental.Card, d rental.Decline) rental.Card {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.cards[c.Token] = &held{card: c, refusal: &d}
	return c
}

// FailWith sets a function that is called before every call and returns its error. Nil ends that.
func (v *Vault) FailWith(fail func(method, about string) error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.fail = fail
}

// Asked returns the objects of all calls of a method.
func (v *Vault) Asked(method string) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var about []string
	for _, call := range v.asked {
		if rest, ok := strings.CutPrefix(call, method+" "); ok {
			about = append(about, rest)
		}
	}
	return about
}

// Attached returns the tokens that are attached, sorted.
func (v *Vault) Attached() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var tokens []string
	for token, h := range v.cards {
		if h.customer != "" {
			tokens = append(tokens, token)
		}
	}
	slices.Sort(tokens)
	return tokens
}

// Customers returns the number of customers.
func (v *Vault) Customers() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	made := map[string]bool{}
	for _, a := range v.customers {
		if a.err == nil {
			made[a.id] = true
		}
	}
	return len(made)
}

// begin records a call, and locks the vault until the returned function is called.
func (v *Vault) begin(ctx context.Context, method, about string) (func(), error) {
	v.mu.Lock()
	v.asked = append(v.asked, method+" "+about)
	if err := ctx.Err(); err != nil {
		return v.mu.Unlock, &rental.ProcessorError{Kind: rental.MayHaveHappened, Cause: err}
	}
	if v.fail != nil {
		return v.mu.Unlock, v.fail(method, about)
	}
	return v.mu.Unlock, nil
}

// CreateCustomer creates one customer per key.
func (v *Vault) CreateCustomer(ctx context.Context, key string, _ rental.Client) (string, error) {
	end, err := v.begin(ctx, "CreateCustomer", key)
	defer end()
	if a, known := v.customers[key]; known {
		return a.id, a.err
	}
	a := answer{id: fmt.Sprintf("cus_%d", len(v.customers)+1)}
	switch kindOf(err) {
	case "":
	case rental.BrokenThere:
		a.err = err
	case rental.MayHaveHappened:
		v.customers[key] = a // created, but the response is lost
		return "", err
	default:
		return "", err
	}
	v.customers[key] = a
	return a.id, a.err
}

func kindOf(err error) rental.ProcessorFailure {
	var failure *rental.ProcessorError
	if errors.As(err, &failure) {
		return failure.Kind
	}
	return ""
}

// Attach binds a card to a customer.
func (v *Vault) Attach(ctx context.Context, customer, token string) (rental.Card, error) {
	end, err := v.begin(ctx, "Attach", token)
	defer end()
	h := v.cards[token]
	if err != nil {
		if h != nil && kindOf(err) == rental.MayHaveHappened {
			h.customer = customer
		}
		return rental.Card{}, err
	}
	switch {
	case h == nil:
		return rental.Card{}, &rental.ProcessorError{Kind: rental.NotKnown, Cause: errors.New("no such payment method")}
	case h.gone || h.customer != "":
		return rental.Card{}, &rental.ProcessorError{Kind: rental.Refused, Cause: errors.New("attached before")}
	case h.refusal != nil:
		return rental.Card{}, &rental.ProcessorError{Kind: rental.CardRefused, Decline: h.refusal}
	}
	h.customer = customer
	return h.card, nil
}

// Detach makes a card permanently unusable.
func (v *Vault) Detach(ctx context.Context, token string) error {
	end, err := v.begin(ctx, "Detach", token)
	defer end()
	if h := v.cards[token]; h != nil && err == nil {
		h.customer, h.gone = "", true
	}
	return err
}

// Card returns a card as it is now, and the customer that it is bound to.
func (v *Vault) Card(ctx context.Context, token string) (rental.Card, string, error) {
	end, err := v.begin(ctx, "Card", token)
	defer end()
	h := v.cards[token]
	if err == nil && h == nil {
		err = &rental.ProcessorError{Kind: rental.NotKnown, Cause: errors.New("no such payment method")}
	}
	if err != nil {
		return rental.Card{}, "", err
	}
	return h.card, h.customer, nil
}
