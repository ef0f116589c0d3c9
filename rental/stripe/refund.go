package stripe

import (
	"cmp"
	"context"
	"errors"

	"github.com/google/uuid"
	api "github.com/stripe/stripe-go/v85"

	"motorpool/rental"
)

var errRoundsToNothing = errors.New("it is less than can be refunded in its currency")

// Refund refunds a part of a payment. It sends no request for an amount that rounds to nothing.
func (p *Processor) Refund(ctx context.Context, key string, r rental.RefundRequest) (rental.Refund, error) {
	amount := amountBack(r.Amount, r.Currency)
	if amount == 0 {
		return rental.Refund{}, &rental.ProcessorError{Kind: rental.TooSmall, Cause: errRoundsToNothing}
	}
	params := &api.RefundCreateParams{
		PaymentIntent: api.String(r.Intent),
		Amount:        api.Int64(amount),
		Metadata:      map[string]string{metaCharge: r.Refund.String()},
	}
	params.SetIdempotencyKey(key)
	return p.refund(ctx, changes, func(ctx context.Context) (*api.Refund, error) {
		return p.api.V1Refunds.Create(ctx, params)
	}, r.Intent)
}

// RefundByID returns a refund as it is now.
func (p *Processor) RefundByID(ctx context.Context, id string) (rental.Refund, error) {
	return p.refund(ctx, reads, func(ctx context.Context) (*api.Refund, error) {
		return p.api.V1Refunds.Retrieve(ctx, id, &api.RefundRetrieveParams{})
	}, id)
}

func (p *Processor) refund(
	ctx context.Context, reads bool, do func(context.Context) (*api.Refund, error), id string,
) (rental.Refund, error) {
	made, err := call(ctx, p, reads, do, id)
	if err != nil {
		return rental.Refund{}, err
	}
	return refundOf(made), nil
}

// maxPerPage is the longest page that Stripe allows.
const maxPerPage = 100

// RefundOf searches the refunds of a payment, page by page, for one with an identity. One that has
// not failed takes precedence. Stripe's search API cannot be used: its results lag.
func (p *Processor) RefundOf(ctx context.Context, intent string, refund uuid.UUID) (rental.Refund, bool, error) {
	found, err := call(ctx, p, reads, func(ctx context.Context) (*rental.Refund, error) {
		params := &api.RefundListParams{PaymentIntent: api.String(intent)}
		params.Limit = api.Int64(maxPerPage)
		var found *rental.Refund
		for made, err := range p.api.V1Refunds.List(ctx, params).All(ctx) {
			if err != nil {
				return nil, err
			}
			if made.Metadata[metaCharge] != refund.String() {
				continue
			}
			if refund := refundOf(made); found == nil || found.Status == rental.RefundFailed {
				found = &refund
			}
		}
		return found, nil
	}, intent)
	if err != nil || found == nil {
		return rental.Refund{}, false, err
	}
	return *found, true, nil
}

func refundOf(r *api.Refund) rental.Refund {
	made := rental.Refund{ID: r.ID, Status: rental.RefundPending, Amount: amountHere(r.Amount, string(r.Currency))}
	switch r.Status {
	case api.RefundStatusSucceeded:
		made.Status = rental.RefundSucceeded
	case api.RefundStatusFailed, api.RefundStatusCanceled:
		made.Status, made.Why = rental.RefundFailed, cmp.Or(string(r.FailureReason), string(r.Status))
	}
	return made
}
