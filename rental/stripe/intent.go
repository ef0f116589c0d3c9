package stripe

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"
	api "github.com/stripe/stripe-go/v85"

	"motorpool/rental"
)

// metaCharge is the name of the metadata of an object at Stripe that holds the identity of its
// charge.
const metaCharge = "charge_id"

// CreateIntent prepares a payment. The method "card" is set here, not by the account's settings:
// other methods redirect the payer, and no payer is present. Unless it is a hold, it is captured
// when it is confirmed, so that "succeeded" means that the money has moved.
func (p *Processor) CreateIntent(ctx context.Context, key string, r rental.IntentRequest) (rental.Intent, error) {
	capture := api.PaymentIntentCaptureMethodAutomatic
	if r.Hold {
		capture = api.PaymentIntentCaptureMethodManual
	}
	metadata := maps.Clone(r.Metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[metaCharge] = r.Payment.String()
	params := &api.PaymentIntentCreateParams{
		Amount:             api.Int64(amountThere(r.Amount, r.Currency)),
		Currency:           api.String(strings.ToLower(string(r.Currency))),
		Customer:           api.String(r.Customer),
		CaptureMethod:      api.String(capture),
		PaymentMethodTypes: api.StringSlice([]string{"card"}),
		Metadata:           metadata,
	}
	if r.Description != "" {
		params.Description = api.String(r.Description)
	}
	params.SetIdempotencyKey(key)
	return p.intent(ctx, changes, func(ctx context.Context) (*api.PaymentIntent, error) {
		return p.api.V1PaymentIntents.Create(ctx, params)
	}, r.Customer) // without a customer any card could pay
}

// Confirm executes a payment with a card. If Stripe no longer holds the card, the error is a hard
// decline: the payment itself can still succeed with another card.
func (p *Processor) Confirm(ctx context.Context, key, intent, token string) (rental.Intent, error) {
	if err := checkID(intent); err != nil {
		return rental.Intent{}, err
	}
	if checkID(token) != nil { // without one Stripe would try the card of the last attempt
		return rental.Intent{}, &rental.ProcessorError{Kind: rental.CardRefused, Decline: goneCard(), Cause: errNoID}
	}
	params := &api.PaymentIntentConfirmParams{PaymentMethod: api.String(token), OffSession: api.Bool(true)}
	params.SetIdempotencyKey(key)
	var response *api.Error
	made, err := p.intent(ctx, changes, func(ctx context.Context) (*api.PaymentIntent, error) {
		intent, err := p.api.V1PaymentIntents.Confirm(ctx, intent, params)
		_ = errors.As(err, &response)
		return intent, err
	})
	f, ok := errors.AsType[*rental.ProcessorError](err)
	if ok && (f.Kind == rental.Refused || f.Kind == rental.NotKnown) && isAboutCard(response) {
		f.Kind, f.Decline = rental.CardRefused, goneCard()
	}
	return made, err
}

func isAboutCard(e *api.Error) bool {
	return e != nil &&
		(e.Param == "payment_method" || e.Code == api.ErrorCodePaymentMethodUnactivated ||
			e.Code == api.ErrorCodePaymentMethodUnexpectedState)
}

// Intent returns a payment as it is now.
func (p *Processor) Intent(ctx context.Context, intent string) (rental.Intent, error) {
	return p.intent(ctx, reads, func(ctx context.Context) (*api.PaymentIntent, error) {
		return p.api.V1PaymentIntents.Retrieve(ctx, intent, &api.PaymentIntentRetrieveParams{})
	}, intent)
}

// IntentOf searches the newest payments of a customer. Stripe's search API cannot be used: its
// results lag.
func (p *Processor) IntentOf(ctx context.Context, r rental.IntentRequest) (rental.Intent, bool, error) {
	found, err := call(ctx, p, reads, func(ctx context.Context) (*rental.Intent, error) {
		params := &api.PaymentIntentListParams{Customer: api.String(r.Customer)}
		params.Limit = api.Int64(maxPerPage)
		var found *rental.Intent
		read := 0
		for made, err := range p.api.V1PaymentIntents.List(ctx, params).All(ctx) {
			if err != nil {
				return nil, err
			}
			if read++; read > maxPerPage {
				break
			}
			if made.Metadata[metaCharge] != r.Payment.String() {
				continue
			}
			intent := intentOf(made, "")
			if made.Amount == amountThere(r.Amount, r.Currency) {
				intent.Requested = r.Amount
			}
			if found == nil || precedence[intent.Status] > precedence[found.Status] {
				found = &intent
			}
		}
		return found, nil
	}, r.Customer)
	if err != nil || found == nil {
		return rental.Intent{}, false, err
	}
	return *found, true, nil
}

// Intents returns a page of the account's payments.
func (p *Processor) Intents(ctx context.Context, since time.Time, cursor string) ([]rental.ListedIntent, string, error) {
	page, err := call(ctx, p, reads, func(ctx context.Context) (page []rental.ListedIntent, err error) {
		params := &api.PaymentIntentListParams{CreatedRange: &api.RangeQueryParams{GreaterThanOrEqual: since.Unix()}}
		params.Limit = api.Int64(maxPerPage)
		if cursor != "" {
			params.StartingAfter = api.String(cursor)
		}
		params.AddExpand("data.latest_charge") // with what was refunded
		for made, err := range p.api.V1PaymentIntents.List(ctx, params).All(ctx) {
			if err != nil {
				return nil, err
			}
			if page = append(page, listed(made)); len(page) == maxPerPage {
				break
			}
		}
		return page, nil
	})
	if err != nil || len(page) < maxPerPage {
		return page, "", err
	}
	return page, page[maxPerPage-1].ID, nil
}

func listed(made *api.PaymentIntent) rental.ListedIntent {
	l := rental.ListedIntent{
		Intent: intentOf(made, ""), Created: time.Unix(made.Created, 0).UTC(), Metadata: made.Metadata,
	}
	l.Payment, _ = uuid.Parse(made.Metadata[metaCharge]) // others than ours have none
	if made.Customer != nil {
		l.Customer = made.Customer.ID
	}
	if made.LatestCharge != nil {
		l.Refunded = amountHere(made.LatestCharge.AmountRefunded, string(made.Currency))
	}
	return l
}

// precedence ranks several payments with one identity, of which an earlier answer was lost.
var precedence = map[rental.IntentStatus]int{
	rental.IntentSucceeded: 5, rental.IntentHeld: 4, rental.IntentProcessing: 3, rental.IntentAction: 2, rental.IntentPrepared: 1,
}

// Capture takes a part of a held amount. The rest is released.
func (p *Processor) Capture(ctx context.Context, key, intent string, amount rental.Minor, c rental.Currency) (rental.Intent, error) {
	params := &api.PaymentIntentCaptureParams{AmountToCapture: api.Int64(amountThere(amount, c))}
	params.SetIdempotencyKey(key)
	return p.intent(ctx, changes, func(ctx context.Context) (*api.PaymentIntent, error) {
		return p.api.V1PaymentIntents.Capture(ctx, intent, params)
	}, intent)
}

// Cancel cancels a payment, and releases what it holds.
func (p *Processor) Cancel(ctx context.Context, key, intent string) (rental.Intent, error) {
	params := &api.PaymentIntentCancelParams{}
	params.SetIdempotencyKey(key)
	return p.intent(ctx, changes, func(ctx context.Context) (*api.PaymentIntent, error) {
		return p.api.V1PaymentIntents.Cancel(ctx, intent, params)
	}, intent)
}

func (p *Processor) intent(
	ctx context.Context, reads bool, do func(context.Context) (*api.PaymentIntent, error), ids ...string,
) (rental.Intent, error) {
	made, err := call(ctx, p, reads, do, ids...)
	if err != nil {
		return rental.Intent{}, err
	}
	return intentOf(made, adviceIn(made.LastResponse)), nil
}

// statuses maps Stripe's statuses (https://docs.stripe.com/payments/paymentintents/lifecycle).
var statuses = map[api.PaymentIntentStatus]rental.IntentStatus{
	api.PaymentIntentStatusRequiresPaymentMethod: rental.IntentPrepared,
	api.PaymentIntentStatusRequiresConfirmation:  rental.IntentPrepared,
	api.PaymentIntentStatusRequiresAction:        rental.IntentAction,
	api.PaymentIntentStatusProcessing:            rental.IntentProcessing,
	api.PaymentIntentStatusRequiresCapture:       rental.IntentHeld,
	api.PaymentIntentStatusSucceeded:             rental.IntentSucceeded,
	api.PaymentIntentStatusCanceled:              rental.IntentCanceled,
}

func intentOf(pi *api.PaymentIntent, advice string) rental.Intent {
	status, ok := statuses[pi.Status]
	if !ok {
		status = rental.IntentProcessing // unknown to this version: it is queried again
	}
	i := rental.Intent{
		ID: pi.ID, Status: status, Secret: pi.ClientSecret,
		Requested: amountHere(pi.Amount, string(pi.Currency)), Currency: rental.Currency(strings.ToUpper(string(pi.Currency))),
	}
	switch status {
	case rental.IntentHeld:
		i.Amount = amountHere(pi.AmountCapturable, string(pi.Currency))
	case rental.IntentSucceeded:
		i.Amount = amountHere(pi.AmountReceived, string(pi.Currency))
	}
	if pi.LatestCharge != nil {
		i.Attempt = pi.LatestCharge.ID
	}
	if e := pi.LastPaymentError; e != nil &&
		(status == rental.IntentPrepared || status == rental.IntentAction || status == rental.IntentCanceled) {
		i.Decline = declineOf(e, advice)
		i.Attempt = cmp.Or(i.Attempt, e.ChargeID)
	}
	if status == rental.IntentPrepared && i.Decline != nil && i.Decline.Action {
		// Stripe's status asks for a payment method: the same one works if its owner confirms.
		i.Status = rental.IntentAction
	}
	return i
}
