package charging

import (
	"context"

	"motorpool/rental"
)

// payment takes the next steps of a payment or a deposit. If the processor has an object for it,
// that is queried first, in any state; only one that was just prepared is confirmed without a query
// [MON-3].
func (w *worker) payment(ctx context.Context) (rental.Result, error) {
	if w.job.Intent == "" {
		return w.prepare(ctx)
	}
	return w.query(ctx)
}

// query reads the payment from the processor, and continues from its state.
func (w *worker) query(ctx context.Context) (rental.Result, error) {
	in, err := w.intent(ctx)
	if err != nil {
		return w.retryLater(), nil
	}
	return w.continueFrom(ctx, in)
}

// intent returns the payment's current state at the processor.
func (w *worker) intent(ctx context.Context) (rental.Intent, error) {
	bounded, cancel := w.call(ctx)
	defer cancel()
	in, err := w.Processor.Intent(bounded, w.job.Intent)
	if err != nil {
		return rental.Intent{}, w.failure("look", err)
	}
	return in, nil
}

// continueFrom takes the next step from the payment's state at the processor.
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
		if w.job.Goal == rental.Release {
			return w.withActivity(w.settled(rental.Released)), nil
		}
		if w.isClients() {
			return w.takenBack(), nil
		}
		return w.canceled(), nil
	case rental.IntentPrepared, rental.IntentAction:
		if w.job.Goal == rental.Release {
			return w.release(ctx)
		}
		return w.continueAttempt(ctx, in)
	default:
		return w.undecided(), nil
	}
}

// canceled returns the result for a payment that was cancelled, so it can never be executed.
func (w *worker) canceled() rental.Result {
	r := w.inState(rental.Failed)
	r.NotRetryable = true
	if w.job.State == rental.Failed && w.job.DeclineCode == rental.CodeCanceled {
		return r
	}
	r.DeclineCode = rental.CodeCanceled
	return w.withActivity(r)
}

// undecided returns the result for a payment that the processor is still processing.
func (w *worker) undecided() rental.Result {
	if !w.job.QueryOnly {
		w.job.State = rental.Unknown
	}
	return w.retryLater()
}

// continueAttempt continues a payment that has moved no money: its last attempt was declined, or
// waits for the card's owner, or there was none.
func (w *worker) continueAttempt(ctx context.Context, in rental.Intent) (rental.Result, error) {
	isNewAttempt := in.Attempt != w.job.AttemptID ||
		// Declined before the processor created an attempt.
		in.Attempt == "" && in.Decline != nil && in.Decline.Code != w.job.DeclineCode
	switch {
	case in.Status == rental.IntentAction && (isNewAttempt || w.acted || w.job.DeclineCode != authentication):
		return w.declined(rental.Decline{Code: authentication, Action: true}, in.Attempt), nil
	case in.Decline != nil && isNewAttempt:
		return w.declined(*in.Decline, in.Attempt), nil
	case w.acted:
		return w.retryLater(), nil
	case w.isLapsed():
		// A cancelled payment takes nothing, even if an earlier request arrives later.
		return w.release(ctx)
	case w.job.QueryOnly:
		return w.unchanged(), nil
	}
	return w.confirm(ctx, in.ID)
}

// prepare creates the payment at the processor, and confirms it. No money can move before its id
// is stored, so a created payment whose response was lost does no harm. It searches for the payment
// first: the record may have lost it.
func (w *worker) prepare(ctx context.Context) (rental.Result, error) {
	if w.job.QueryOnly && !w.isLapsed() {
		return w.unchanged(), nil
	}
	switch in, found, err := w.intentOf(ctx); {
	case err != nil:
		return w.retryLater(), nil
	case found:
		return w.recover(ctx, in)
	case w.job.Goal == rental.Release || w.job.Goal == rental.Capture:
		return w.withActivity(w.settled(rental.Released)), nil
	case w.isLapsed():
		return w.takenBack(), nil
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
	case rental.TooSmall:
		return w.waived(), nil
	case rental.Refused, rental.NotKnown, rental.CardRefused:
		return w.refused(), nil
	case rental.BrokenThere:
		r := w.retryLater()
		r.CountAttempt = true // the next try needs another key
		return r, nil
	default:
		return w.retryLater(), nil
	}
}

// intentOf searches the processor for a payment that the record does not have. One of another
// amount or currency is not the charge's payment.
func (w *worker) intentOf(ctx context.Context) (in rental.Intent, found bool, err error) {
	if w.job.Customer == "" {
		return rental.Intent{}, false, nil
	}
	bounded, cancel := w.call(ctx)
	defer cancel()
	if in, found, err = w.Processor.IntentOf(bounded, w.request()); err != nil {
		return rental.Intent{}, false, w.failure("search", err)
	}
	if found && (in.Requested != w.job.Amount || in.Currency != w.job.Currency) {
		w.log.Error(
			"payment found at the processor has another amount than its charge: not taken as its payment",
			"intent", in.ID, "status", string(in.Status), "amount", int64(in.Requested),
			"currency", string(in.Currency), "charge_amount", int64(w.job.Amount),
			"charge_currency", string(w.job.Currency),
		)
		return rental.Intent{}, false, nil
	}
	return in, found, nil
}

// recover continues with a payment that the record did not have: its creation had no response, or a
// commit was lost.
func (w *worker) recover(ctx context.Context, in rental.Intent) (rental.Result, error) {
	w.metrics.recovered.Inc()
	w.log.Warn(
		"payment found at the processor that was not on record", "intent", in.ID, "status", string(in.Status),
		"amount", int64(in.Amount),
	)
	w.job.Intent = in.ID
	r, err := w.continueFrom(ctx, in)
	r.Intent = in.ID
	return r, err
}

// waived returns the result for an amount that is less than the processor takes.
func (w *worker) waived() rental.Result {
	r := w.inState(rental.Waived)
	r.DeclineCode = rental.CodeTooSmall
	return w.withActivity(r)
}

// refused returns the result for a request that the processor rejects for a reason that no card can
// change.
func (w *worker) refused() rental.Result {
	r := w.inState(rental.Failed)
	r.DeclineCode, r.NotRetryable = rental.CodeRefused, true
	return w.withActivity(r)
}

func (w *worker) request() rental.IntentRequest {
	return rental.IntentRequest{
		Payment: w.job.PaymentID(), Customer: w.job.Customer, Amount: w.job.Amount, Currency: w.job.Currency,
		Hold:        w.job.Kind == rental.DepositCharge,
		Description: w.job.Reference + " " + string(w.job.Kind),
		Metadata: map[string]string{
			rental.MetaInstallation: w.job.Installation, rental.MetaBooking: w.job.Reference,
			rental.MetaKind: string(w.job.Kind),
		},
	}
}

// confirm stores the intention [MON-2], then executes the payment with the card.
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
	case rental.TooSmall:
		return w.waived(), nil
	case rental.Refused, rental.NotKnown:
		return w.queryRefused(ctx)
	default:
		return w.retryLater(), nil
	}
}

// queryRefused queries the processor for a payment whose confirmation it has rejected as invalid,
// not because of the card.
func (w *worker) queryRefused(ctx context.Context) (rental.Result, error) {
	in, err := w.intent(ctx)
	if err != nil {
		return w.retryLater(), nil
	}
	if in.Status != rental.IntentPrepared && in.Status != rental.IntentAction || in.Attempt != w.job.AttemptID {
		return w.continueFrom(ctx, in)
	}
	return w.refused(), nil
}

// cardGone returns the result for a missing card: the charge is due immediately, with another card.
func (w *worker) cardGone() rental.Result {
	r := w.inState(rental.Declined)
	r.DeclineCode, r.RefusedCard, r.NextAttempt = rental.CodeCardGone, w.job.Card.Token, w.Now()
	return w.withActivity(r)
}

// queryDecline queries the processor for the attempt that it has just declined.
func (w *worker) queryDecline(ctx context.Context, d *rental.Decline) (rental.Result, error) {
	in, err := w.intent(ctx)
	if err != nil {
		return w.retryLater(), nil
	}
	if d == nil || in.Status != rental.IntentPrepared && in.Status != rental.IntentAction {
		return w.continueFrom(ctx, in)
	}
	if d.Hard && in.Attempt == w.job.AttemptID {
		return w.cardGone(), nil // no attempt was created
	}
	return w.declined(*d, in.Attempt), nil
}

// isClients reports whether the charge is an extension whose payment was refused, and that is taken
// back unless the client mends it.
func (w *worker) isClients() bool {
	return !w.job.MendBy.IsZero() && w.job.DeclineCode != "" && rental.RemedyOf(w.job.DeclineCode) == rental.ByClient
}

// isLapsed reports whether the client has not mended the payment of an extension in time.
func (w *worker) isLapsed() bool { return w.isClients() && !w.Now().Before(w.job.MendBy) }

// takenBack returns the result for an extension that was not paid in time. It keeps the reason.
func (w *worker) takenBack() rental.Result {
	r := w.settled(rental.Released)
	r.DeclineCode = w.job.DeclineCode
	return w.withActivity(r)
}

// authentication is the processor's decline code when the card's owner must confirm.
const authentication = "authentication_required"

// declined returns the result for a card's refusal: a later retry, none with this card, or a wait
// for the card's owner.
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

// noCard returns the result for a charge that waits until the client adds a card.
func (w *worker) noCard() rental.Result {
	r := w.inState(rental.Declined)
	if w.job.State == rental.Failed {
		r.State = rental.Failed
	}
	if r.DeclineCode == rental.CodeNoCard && w.job.State == r.State {
		return r
	}
	r.DeclineCode = rental.CodeNoCard
	return w.withActivity(r)
}
