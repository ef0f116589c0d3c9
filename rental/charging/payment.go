package charging

import (
	"context"

	"motorpool/rental"
)

// Reasons for a charge's state that Motorpool adds to the processor's.
const (
	noCard        = "no_card"   // the client has none that may be tried
	cardGone      = "card_gone" // the processor does not take it any more
	holdExpired   = "expired"   // the processor ended the hold
	notAccepted   = "refused"   // the request makes no sense to the processor
	canceledThere = "canceled"  // the payment was cancelled at the processor
)

// payment carries a payment or a deposit on from where it is. What the processor knows of is looked
// at first, whatever the state: only what was prepared a moment ago is carried out without [MON-3].
func (w *worker) payment(ctx context.Context) (rental.Result, error) {
	if w.job.Intent == "" {
		return w.prepare(ctx)
	}
	return w.query(ctx)
}

// query asks how the payment is now, and goes on from there.
func (w *worker) query(ctx context.Context) (rental.Result, error) {
	in, err := w.intent(ctx)
	if err != nil {
		return w.retryLater(), nil
	}
	return w.continueFrom(ctx, in)
}

// intent returns the payment as the processor has it now. Where it has none, the error says why.
func (w *worker) intent(ctx context.Context) (rental.Intent, error) {
	bounded, cancel := w.call(ctx)
	defer cancel()
	in, err := w.Processor.Intent(bounded, w.job.Intent)
	if err != nil {
		return rental.Intent{}, w.failure("look", err)
	}
	return in, nil
}

// continueFrom goes on from how the payment is at the processor.
func (w *worker) continueFrom(ctx context.Context, in rental.Intent) (rental.Result, error) {
	if w.job.Kind == rental.DepositCharge {
		return w.continueDeposit(ctx, in)
	}
	switch in.Status {
	case rental.IntentSucceeded:
		r := w.settled(rental.Paid)
		r.Settled, r.AttemptID = in.Amount, in.Attempt
		return w.withActivity(r), nil
	case rental.IntentCanceled:
		return w.canceled(), nil
	case rental.IntentPrepared, rental.IntentAction:
		return w.continueAttempt(ctx, in)
	default:
		return w.undecided(), nil
	}
}

// canceled is a payment that can never be carried out any more.
func (w *worker) canceled() rental.Result {
	r := w.inState(rental.Failed)
	r.NotRetryable = true
	if w.job.State == rental.Failed && w.job.DeclineCode == canceledThere {
		return r
	}
	r.DeclineCode = canceledThere
	return w.withActivity(r)
}

// undecided is a payment about which the processor has not decided yet.
func (w *worker) undecided() rental.Result {
	if !w.job.QueryOnly {
		w.job.State = rental.Unknown
	}
	return w.retryLater()
}

// continueAttempt goes on with a payment that has moved nothing: its last attempt was declined,
// waits for the card's owner, or never came to be.
func (w *worker) continueAttempt(ctx context.Context, in rental.Intent) (rental.Result, error) {
	isNewAttempt := in.Attempt != w.job.AttemptID ||
		// Refused before it was made an attempt.
		in.Attempt == "" && in.Decline != nil && in.Decline.Code != w.job.DeclineCode
	switch {
	case in.Status == rental.IntentAction && (isNewAttempt || w.acted || w.job.DeclineCode != authentication):
		return w.declined(rental.Decline{Code: authentication, Action: true}, in.Attempt), nil
	case in.Decline != nil && isNewAttempt:
		return w.declined(*in.Decline, in.Attempt), nil
	case w.acted:
		return w.retryLater(), nil
	case w.job.QueryOnly:
		return w.unchanged(), nil
	}
	return w.confirm(ctx, in.ID)
}

// prepare makes the payment at the processor, and carries it out. Until its id is stored
// nothing can move, so one that was made and never heard of does no harm.
func (w *worker) prepare(ctx context.Context) (rental.Result, error) {
	switch {
	case w.job.Goal == rental.Release || w.job.Goal == rental.Capture:
		return w.withActivity(w.settled(rental.Released)), nil
	case w.job.QueryOnly:
		return w.unchanged(), nil
	case w.job.Card == nil:
		return w.noCard(), nil
	}
	bounded, cancel := w.call(ctx)
	in, err := w.Processor.CreateIntent(bounded, w.firstKey(w.job.Attempts), w.request())
	cancel()
	if err == nil {
		return w.confirm(ctx, in.ID)
	}
	switch w.failure("prepare", err).Kind {
	case rental.Refused, rental.NotKnown, rental.CardRefused:
		r := w.inState(rental.Failed)
		r.DeclineCode, r.NotRetryable = notAccepted, true
		return w.withActivity(r), nil
	case rental.BrokenThere:
		r := w.retryLater()
		r.CountAttempt = true // the next try needs another name
		return r, nil
	default:
		return w.retryLater(), nil
	}
}

func (w *worker) request() rental.IntentRequest {
	return rental.IntentRequest{
		Charge: w.job.ID, Customer: w.job.Customer, Amount: w.job.Amount, Currency: w.job.Currency, Hold: w.job.Kind == rental.DepositCharge,
		Description: w.job.Reference + " " + string(w.job.Kind),
		Metadata:    map[string]string{"charge": w.job.ID.String(), "booking": w.job.Reference, "kind": string(w.job.Kind)},
	}
}

// confirm carries the payment out with the card.
func (w *worker) confirm(ctx context.Context, intent string) (rental.Result, error) {
	if w.job.Card == nil {
		r := w.noCard()
		r.Intent = intent
		return r, nil
	}
	about := w.intended()
	about.Intent, about.Card = intent, w.job.Card
	if err := w.write(ctx, about); err != nil {
		return rental.Result{}, err
	}
	w.acted = true
	bounded, cancel := w.call(ctx)
	in, err := w.Processor.Confirm(bounded, w.key("confirm"), intent, w.job.Card.Token)
	cancel()
	if err == nil {
		return w.continueFrom(ctx, in)
	}
	failure := w.failure("confirm", err)
	switch failure.Kind {
	case rental.CardRefused:
		if failure.Decline != nil && failure.Intent != nil && failure.Intent.Attempt != "" {
			return w.declined(*failure.Decline, failure.Intent.Attempt), nil
		}
		return w.queryDecline(ctx, failure.Decline)
	case rental.WrongState:
		return w.query(ctx)
	case rental.Refused, rental.NotKnown:
		return w.withoutCard(ctx)
	default:
		return w.retryLater(), nil
	}
}

// withoutCard goes on after the processor found no sense in carrying a payment out: where the
// payment is as it was, it is the card that is gone, and the next one is tried.
func (w *worker) withoutCard(ctx context.Context) (rental.Result, error) {
	in, err := w.intent(ctx)
	if err != nil {
		return w.retryLater(), nil
	}
	if in.Status != rental.IntentPrepared && in.Status != rental.IntentAction || in.Attempt != w.job.AttemptID {
		return w.continueFrom(ctx, in)
	}
	return w.cardGone(), nil
}

// cardGone is a charge that continues immediately with the next card.
func (w *worker) cardGone() rental.Result {
	r := w.inState(rental.Declined)
	r.DeclineCode, r.RefusedCard, r.NextAttempt = cardGone, w.job.Card.Token, w.Now()
	return w.withActivity(r)
}

// queryDecline queries which attempt the processor has just declined.
func (w *worker) queryDecline(ctx context.Context, d *rental.Decline) (rental.Result, error) {
	in, err := w.intent(ctx)
	if err != nil {
		return w.retryLater(), nil
	}
	if d == nil || in.Status != rental.IntentPrepared && in.Status != rental.IntentAction {
		return w.continueFrom(ctx, in)
	}
	if d.Hard && in.Attempt == w.job.AttemptID {
		return w.cardGone(), nil // it never was an attempt
	}
	return w.declined(*d, in.Attempt), nil
}

// authentication is the processor's word for an owner who must confirm.
const authentication = "authentication_required"

// declined is what follows from a card's refusal: another try some time later, none with this card,
// or the owner's turn.
func (w *worker) declined(d rental.Decline, attempt string) rental.Result {
	r := w.inState(rental.Failed)
	r.AttemptID, r.DeclineCode = attempt, d.Code
	switch {
	case d.Action:
		r.State, r.DeclineCode = rental.RequiresAction, authentication
	case d.Hard:
		r.Declined, r.Hard = true, true
	default:
		r.Declined = true
		if wait, ok := retryAfter(w.job.Declines + 1); ok {
			r.State, r.NextAttempt = rental.Declined, w.Now().Add(wait)
		}
	}
	return w.withActivity(r)
}

// noCard is a charge that waits for the client to add a card.
func (w *worker) noCard() rental.Result {
	r := w.inState(rental.Declined)
	if w.job.State == rental.Failed {
		r.State = rental.Failed
	}
	if r.DeclineCode == noCard && w.job.State == r.State {
		return r
	}
	r.DeclineCode = noCard
	return w.withActivity(r)
}
