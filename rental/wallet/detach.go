package wallet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"motorpool/guard"
	"motorpool/rental"
)

const (
	// detachBudget is how long a response waits for a card to be detached.
	detachBudget = 5 * time.Second

	// attachFor is how long a card that is being attached may stay attached without being stored:
	// longer than Budget, so that a request that is still at work keeps it. Half or double: a card
	// whose request was interrupted is detached that much earlier or later.
	attachFor = time.Hour

	// detachEvery is the interval of queries for cards to detach; detachAgain is after how long a
	// failure is repeated. Half: more calls of a processor that is unavailable; double: a removed
	// card stays attached for longer.
	detachEvery = time.Minute
	detachAgain = 5 * time.Minute

	// detachBatch is how many are detached at a time, in turn; a choice.
	detachBatch = 20
)

// detach makes a card unusable that is not, or no longer, stored. If that fails, Run repeats it.
func (w *Wallet) detach(ctx context.Context, client rental.ClientID, token string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), detachBudget)
	defer cancel()
	err := w.Processor.Detach(ctx, token)
	if err == nil {
		err = w.Cards.Detached(ctx, token)
	}
	if err != nil {
		w.Log.WarnContext(ctx, "card not detached, retrying", "client", client, "err", err)
	}
}

// Run detaches the cards that requests have left attached, because the processor was unavailable or
// an instance died. It blocks until the context ends, and returns nil.
func (w *Wallet) Run(ctx context.Context) error {
	var outage guard.Outage
	for {
		outage.Note(ctx, w.Log, "removed cards not detached", w.detachDue(ctx))
		if !guard.Pause(ctx, detachEvery) {
			return nil
		}
	}
}

func (w *Wallet) detachDue(ctx context.Context) error {
	var failed error
	for range detachBatch {
		// One by one, so that each is looked up a moment before: it may be a payment method again.
		due, err := w.Cards.TakeDetachments(ctx, 1, detachAgain)
		if err != nil || len(due) == 0 {
			return errors.Join(failed, err)
		}
		failed = errors.Join(failed, w.detachOne(ctx, due[0]))
	}
	return failed
}

// detachOne detaches a card, if it is still the client's: anyone can name a card of another
// customer.
func (w *Wallet) detachOne(ctx context.Context, d rental.Detachment) error {
	ctx, cancel := context.WithTimeout(ctx, w.Budget)
	defer cancel()
	_, customer, err := w.Processor.Card(ctx, d.Token)
	kind := kindOf(err)
	switch {
	case err != nil && kind != rental.NotKnown && kind != rental.Refused:
		return fmt.Errorf("detach a card of client %d: %w", d.Client, err)
	case err == nil && customer != "" && customer == d.Customer:
		if err := w.Processor.Detach(ctx, d.Token); err != nil {
			return fmt.Errorf("detach a card of client %d: %w", d.Client, err)
		}
		w.Log.InfoContext(ctx, "card detached that a request had left attached", "client", d.Client)
	}
	return w.Cards.Detached(ctx, d.Token)
}
