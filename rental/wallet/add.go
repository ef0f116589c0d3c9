package wallet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"motorpool/rental"
	"motorpool/telematics"
)

// Add attaches a card to the client, and stores it. It blocks for Budget at most. It fails with
// CardDeclined, which is stored under the idempotency key, MethodInvalid, MethodLimit or
// ProcessorUnavailable; after the last, a retry is safe.
func (w *Wallet) Add(ctx context.Context, n rental.NewCard) (rental.Added, error) {
	ctx, cancel := w.change(ctx)
	defer cancel()
	client, err := w.Cards.Client(ctx, n.Actor.Agency, n.Actor.Subject)
	if err != nil {
		return rental.Added{}, err
	}
	if n.Key != nil { // before any call of the processor: a declined card is not tried again
		if added, found, err := w.Cards.AddedUnder(ctx, client.ID, *n.Key); found || err != nil {
			return added, err
		}
	}
	if !isToken(n.Token) {
		return rental.Added{}, rental.InvalidMethod("the processor does not know it", nil)
	}
	methods, err := w.Cards.Methods(ctx, client.ID)
	if err != nil {
		return rental.Added{}, err
	}
	if err := w.room(ctx, methods, n.Token); err != nil {
		return rental.Added{}, err
	}
	if err := w.Cards.DetachLater(ctx, client.ID, n.Token, attachFor); err != nil {
		return rental.Added{}, err
	}
	card, err := w.attach(ctx, client, n.Token)
	if err != nil {
		return rental.Added{}, w.refuse(ctx, n, err)
	}
	if why := card.Unfit(w.Now()); why != "" {
		if !slices.ContainsFunc(methods, func(m rental.Method) bool { return m.Token == card.Token }) {
			w.detach(ctx, client.ID, card.Token)
		}
		return rental.Added{}, rental.InvalidMethod(why, nil)
	}
	added, err := w.Cards.AddMethod(ctx, rental.Addition{
		Client: client.ID, Card: card, Default: n.Default, Key: n.Key, Activity: w.dateNow(n.Activity), Now: w.Now(),
	})
	var refusal *telematics.Error
	switch {
	case errors.As(err, &refusal) && refusal.Code == rental.MethodLimit:
		// Concurrent requests have reached the limit.
		w.detach(ctx, client.ID, card.Token)
	case err == nil && added.Unused != "":
		w.detach(ctx, client.ID, added.Unused)
	}
	return added, err
}

// maxToken is the longest id of a card at the processor: Stripe's have at most 255 characters.
const maxToken = 255

// isToken reports whether a text may be a processor's id, which becomes a part of a URL.
func isToken(s string) bool {
	return s != "" && len(s) <= maxToken && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}) < 0
}

// room returns an error if the client has MaxMethods already, unless the card is one of them.
func (w *Wallet) room(ctx context.Context, methods []rental.Method, token string) error {
	if len(methods) < rental.MaxMethods {
		return nil
	}
	card, _, err := w.Processor.Card(ctx, token)
	if err != nil {
		card = rental.Card{Token: token}
	}
	if slices.ContainsFunc(methods, func(m rental.Method) bool {
		return m.Token == card.Token || card.Fingerprint != "" && m.Fingerprint == card.Fingerprint
	}) {
		return nil
	}
	return rental.TooManyMethods()
}

// attach binds a card to the client's customer at the processor.
func (w *Wallet) attach(ctx context.Context, client rental.Client, token string) (rental.Card, error) {
	client, err := w.customer(ctx, client)
	if err != nil {
		return rental.Card{}, err
	}
	return w.Processor.Attach(ctx, client.Customer, token)
}

// customerTries is how many keys are tried for one customer.
const customerTries = 3

// customer creates the client's customer at the processor, once. All requests use the same keys, so
// they get the same customer.
func (w *Wallet) customer(ctx context.Context, client rental.Client) (rental.Client, error) {
	if client.Customer != "" {
		return client, nil
	}
	key := "client-" + client.Key
	customer, err := w.Processor.CreateCustomer(ctx, key, client)
	// The processor repeats this error for that key, or the key was used for another request.
	for try := 2; (kindOf(err) == rental.BrokenThere || kindOf(err) == rental.Refused) && try <= customerTries; try++ {
		customer, err = w.Processor.CreateCustomer(ctx, fmt.Sprintf("%s-%d", key, try), client)
	}
	switch kindOf(err) {
	case rental.CardRefused, rental.NotKnown, rental.Refused, rental.WrongState:
		return client, telematics.Broken(fmt.Errorf("create a customer: %w", err))
	}
	if err != nil {
		return client, err
	}
	return w.Cards.SetCustomer(ctx, client.ID, customer)
}

// kindOf returns the kind of a processor's error; empty: nil, or another error.
func kindOf(err error) rental.ProcessorFailure {
	if failure, ok := errors.AsType[*rental.ProcessorError](err); ok {
		return failure.Kind
	}
	return ""
}

// refuse returns the error for a card that was not attached. It stores a decline under the
// request's key.
func (w *Wallet) refuse(ctx context.Context, n rental.NewCard, err error) error {
	var failure *rental.ProcessorError
	var refusal *telematics.Error
	if errors.As(err, &refusal) || !errors.As(err, &failure) {
		return err
	}
	switch failure.Kind {
	case rental.CardRefused:
		decline := failure.Refusal()
		if n.Key == nil {
			return decline
		}
		// If this fails, a repeated request tries the card again.
		if err := w.Cards.KeepDecline(ctx, *n.Key, decline); err != nil {
			w.Log.WarnContext(ctx, "decline not kept", "err", err)
		}
		return decline
	case rental.NotKnown:
		return rental.InvalidMethod("the processor does not know it", err)
	case rental.Refused, rental.WrongState:
		return rental.InvalidMethod("it is no card that can be saved, or it belongs to another customer", err)
	case rental.NotOurs:
		w.Log.ErrorContext(ctx, "payment processor rejected the api key", "err", err)
	}
	return rental.Unavailable(err)
}
