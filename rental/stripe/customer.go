package stripe

import (
	"context"
	"fmt"
	"strconv"

	api "github.com/stripe/stripe-go/v85"

	"motorpool/rental"
)

// CreateCustomer makes a customer that has a number and no name: Stripe needs none.
func (p *Processor) CreateCustomer(ctx context.Context, key string, c rental.Client) (string, error) {
	params := &api.CustomerCreateParams{
		Description: api.String(fmt.Sprintf("Client %d of agency %d", c.ID, c.Agency)),
		Metadata: map[string]string{
			"client_id": strconv.FormatInt(int64(c.ID), 10),
			"agency_id": strconv.FormatInt(int64(c.Agency), 10),
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
