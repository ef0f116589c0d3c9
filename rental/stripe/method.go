package stripe

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	api "github.com/stripe/stripe-go/v85"

	"motorpool/rental"
)

// Attach binds a card to a customer. If it is bound to the customer already, that is no error.
func (p *Processor) Attach(ctx context.Context, customer, token string) (rental.Card, error) {
	method, err := call(ctx, p, changes, func(ctx context.Context) (*api.PaymentMethod, error) {
		return p.api.V1PaymentMethods.Attach(ctx, token, &api.PaymentMethodAttachParams{Customer: api.String(customer)})
	}, customer, token)
	if kindIs(err, rental.Refused) || kindIs(err, rental.WrongState) {
		// Stripe also refuses if an earlier request, whose response was lost, attached the card.
		card, owner, looked := p.Card(ctx, token)
		switch {
		case looked == nil && owner == customer:
			return card, nil
		case looked != nil && !kindIs(looked, rental.NotKnown) && !kindIs(looked, rental.Refused):
			return rental.Card{}, looked
		}
	}
	if err != nil {
		return rental.Card{}, err
	}
	card, err := cardOf(method)
	if err != nil {
		_ = p.Detach(ctx, method.ID) // if it stays attached, it is never used
	}
	return card, err
}

// Detach makes a payment method unusable. One that is unknown, or has no customer, already is, so
// that is no error.
func (p *Processor) Detach(ctx context.Context, token string) error {
	if checkID(token) != nil {
		return nil
	}
	_, err := call(ctx, p, changes, func(ctx context.Context) (*api.PaymentMethod, error) {
		return p.api.V1PaymentMethods.Detach(ctx, token, &api.PaymentMethodDetachParams{})
	})
	switch {
	case kindIs(err, rental.NotKnown):
		return nil
	case kindIs(err, rental.Refused), kindIs(err, rental.WrongState):
		if _, owner, looked := p.Card(ctx, token); looked == nil && owner == "" {
			return nil
		}
	}
	return err
}

// Card returns a card as it is now, and the customer that it is bound to.
func (p *Processor) Card(ctx context.Context, token string) (rental.Card, string, error) {
	method, err := call(ctx, p, reads, func(ctx context.Context) (*api.PaymentMethod, error) {
		return p.api.V1PaymentMethods.Retrieve(ctx, token, &api.PaymentMethodRetrieveParams{})
	}, token)
	if err != nil {
		return rental.Card{}, "", err
	}
	card, err := cardOf(method)
	if err != nil {
		return rental.Card{}, "", err
	}
	owner := ""
	if method.Customer != nil {
		owner = method.Customer.ID
	}
	return card, owner, nil
}

func cardOf(m *api.PaymentMethod) (rental.Card, error) {
	if m.Card == nil {
		return rental.Card{}, &rental.ProcessorError{Kind: rental.Refused, Cause: errNotCard}
	}
	return rental.Card{
		Token:       m.ID,
		Brand:       strings.ToLower(cmp.Or(string(m.Card.Brand), "unknown")),
		LastFour:    m.Card.Last4,
		ExpMonth:    int(m.Card.ExpMonth),
		ExpYear:     int(m.Card.ExpYear),
		Fingerprint: m.Card.Fingerprint,
	}, nil
}

// CreateCustomer creates a customer without the client's name or subject. All parameters follow
// from the key: a request under a key must not change.
func (p *Processor) CreateCustomer(ctx context.Context, key string, c rental.Client) (string, error) {
	params := &api.CustomerCreateParams{
		Description: api.String(fmt.Sprintf("Client of agency %d", c.Agency)),
		Metadata: map[string]string{
			"client_key": c.Key,
			"agency_id":  strconv.FormatInt(int64(c.Agency), 10),
		},
	}
	params.SetIdempotencyKey(key)
	customer, err := call(ctx, p, changes, func(ctx context.Context) (*api.Customer, error) {
		return p.api.V1Customers.Create(ctx, params)
	})
	if err != nil {
		return "", err
	}
	return customer.ID, nil
}
