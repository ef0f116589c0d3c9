package charging

import (
	"context"

	"motorpool/rental"
)

// Reasons for a charge's state that Motorpool adds to the processor's.
const (
	noCard       = "no_card"   // the client has none that may be tried
	cardGone     = "card_gone" // the processor does not take it any more
	holdExpired  = "expired"   // the processor gave the hold up by itself
	notAccepted  = "refused"   // the request makes no sense to the processor
	givenUpThere = "canceled"  // the payment was cancelled at the processor
)

// payment carries a payment or a deposit on from where it is. What the processor knows of is looked at first, whatever
// the state: only what was prepared a moment ago is carried out without [MON-3].
func (h *worker) payment(ctx context.Context) (rental.Result, error) {
	if h.job.Intent == "" {
		return h.prepare(ctx)
	}
	return h.look(ctx)
}

// look asks how the payment is now, and goes on from there.
func (h *worker) look(ctx context.Context) (rental.Result, error) {
	in, err := h.intent(ctx)
	if err != nil {
		return h.again(), nil
	}
	return h.judge(ctx, in)
}

// intent returns the payment as the processor has it now. Where it has none, the error says why.
func (h *worker) intent(ctx context.Context) (rental.Intent, error) {
	bounded, cancel := h.call(ctx)
	defer cancel()
	in, err := h.Processor.Intent(bounded, h.job.Intent)
	if err != nil {
		return rental.Intent{}, h.why("look", err)
	}
	return in, nil
}

// judge goes on from how the payment is at the processor.
func (h *worker) judge(ctx context.Context, in rental.Intent) (rental.Result, error) {
	if h.job.Kind == rental.DepositCharge {
		return h.judgeDeposit(ctx, in)
	}
	switch in.Status {
	case rental.IntentSucceeded:
		r := h.settled(rental.Paid)
		r.Settled, r.Seen = in.Amount, in.Attempt
		return h.withActivity(r), nil
	case rental.IntentCanceled:
		return h.givenUp(), nil
	case rental.IntentPrepared, rental.IntentAction:
		return h.judgeAttempt(ctx, in)
	default:
		return h.undecided(), nil
	}
}

// givenUp is a payment that can never be carried out any more.
func (h *worker) givenUp() rental.Result {
	r := h.as(rental.Failed)
	r.Hopeless = true
	if h.job.State == rental.Failed && h.job.DeclineCode == givenUpThere {
		return r
	}
	r.DeclineCode = givenUpThere
	return h.withActivity(r)
}

// undecided is a payment about which the processor has not decided yet.
func (h *worker) undecided() rental.Result {
	if !h.job.Look {
		h.job.State = rental.Unknown
	}
	return h.again()
}

// judgeAttempt goes on with a payment that has moved nothing: its last attempt was declined, waits for the card's owner,
// or never came to be.
func (h *worker) judgeAttempt(ctx context.Context, in rental.Intent) (rental.Result, error) {
	isNews := in.Attempt != h.job.Seen ||
		in.Attempt == "" && in.Decline != nil && in.Decline.Code != h.job.DeclineCode // refused before it was made an attempt
	switch {
	case in.Status == rental.IntentAction && (isNews || h.acted || h.job.DeclineCode != authentication):
		return h.declined(rental.Decline{Code: authentication, Action: true}, in.Attempt), nil
	case in.Decline != nil && isNews:
		return h.declined(*in.Decline, in.Attempt), nil
	case h.acted:
		return h.again(), nil
	case h.job.Look:
		return h.unchanged(), nil
	}
	return h.confirm(ctx, in.ID)
}

// prepare makes the payment at the processor, and carries it out. Until its id is written down nothing can move, so one that
// was made and never heard of does no harm.
func (h *worker) prepare(ctx context.Context) (rental.Result, error) {
	switch {
	case h.job.Goal == rental.Release || h.job.Goal == rental.Capture:
		return h.withActivity(h.settled(rental.Released)), nil
	case h.job.Look:
		return h.unchanged(), nil
	case h.job.Card == nil:
		return h.noCard(), nil
	}
	bounded, cancel := h.call(ctx)
	in, err := h.Processor.CreateIntent(bounded, h.firstKey(h.job.Attempts), h.request())
	cancel()
	if err == nil {
		return h.confirm(ctx, in.ID)
	}
	switch h.why("prepare", err).Kind {
	case rental.Refused, rental.NotKnown, rental.CardRefused:
		r := h.as(rental.Failed)
		r.DeclineCode, r.Hopeless = notAccepted, true
		return h.withActivity(r), nil
	case rental.BrokenThere:
		r := h.again()
		r.Asked = true // the next try needs another name
		return r, nil
	default:
		return h.again(), nil
	}
}

func (h *worker) request() rental.IntentRequest {
	return rental.IntentRequest{
		Charge: h.job.ID, Customer: h.job.Customer, Amount: h.job.Amount, Currency: h.job.Currency, Hold: h.job.Kind == rental.DepositCharge,
		Description: h.job.Reference + " " + string(h.job.Kind),
		Metadata:    map[string]string{"charge": h.job.ID.String(), "booking": h.job.Reference, "kind": string(h.job.Kind)},
	}
}

// confirm carries the payment out with the card.
func (h *worker) confirm(ctx context.Context, intent string) (rental.Result, error) {
	if h.job.Card == nil {
		r := h.noCard()
		r.Intent = intent
		return r, nil
	}
	about := h.about()
	about.Intent, about.Card = intent, h.job.Card
	if err := h.write(ctx, about); err != nil {
		return rental.Result{}, err
	}
	h.acted = true
	bounded, cancel := h.call(ctx)
	in, err := h.Processor.Confirm(bounded, h.key("confirm"), intent, h.job.Card.Token)
	cancel()
	if err == nil {
		return h.judge(ctx, in)
	}
	failure := h.why("confirm", err)
	switch failure.Kind {
	case rental.CardRefused:
		if failure.Decline != nil && failure.Intent != nil && failure.Intent.Attempt != "" {
			return h.declined(*failure.Decline, failure.Intent.Attempt), nil
		}
		return h.lookUpRefusal(ctx, failure.Decline)
	case rental.WrongState:
		return h.look(ctx)
	case rental.Refused, rental.NotKnown:
		return h.withoutCard(ctx)
	default:
		return h.again(), nil
	}
}

// withoutCard goes on after the processor found no sense in carrying a payment out: where the payment is as it was, it is
// the card that is gone, and the next one is tried.
func (h *worker) withoutCard(ctx context.Context) (rental.Result, error) {
	in, err := h.intent(ctx)
	if err != nil {
		return h.again(), nil
	}
	if in.Status != rental.IntentPrepared && in.Status != rental.IntentAction || in.Attempt != h.job.Seen {
		return h.judge(ctx, in)
	}
	return h.cardGone(), nil
}

// cardGone is a charge that continues immediately with the next card.
func (h *worker) cardGone() rental.Result {
	r := h.as(rental.Declined)
	r.DeclineCode, r.Gone, r.NextAttempt = cardGone, h.job.Card.Token, h.Now()
	return h.withActivity(r)
}

// lookUpRefusal asks which attempt it was that the processor has just told of as declined.
func (h *worker) lookUpRefusal(ctx context.Context, d *rental.Decline) (rental.Result, error) {
	in, err := h.intent(ctx)
	if err != nil {
		return h.again(), nil
	}
	if d == nil || in.Status != rental.IntentPrepared && in.Status != rental.IntentAction {
		return h.judge(ctx, in)
	}
	if d.Hard && in.Attempt == h.job.Seen {
		return h.cardGone(), nil // it never was an attempt
	}
	return h.declined(*d, in.Attempt), nil
}

// authentication is the processor's word for an owner who must confirm.
const authentication = "authentication_required"

// declined is what follows from a card's refusal: another try some time later, none with this card, or the owner's turn.
func (h *worker) declined(d rental.Decline, attempt string) rental.Result {
	r := h.as(rental.Failed)
	r.Seen, r.DeclineCode = attempt, d.Code
	switch {
	case d.Action:
		r.State, r.DeclineCode = rental.RequiresAction, authentication
	case d.Hard:
		r.Declined, r.Hard = true, true
	default:
		r.Declined = true
		if wait, ok := retryAfter(h.job.Declines + 1); ok {
			r.State, r.NextAttempt = rental.Declined, h.Now().Add(wait)
		}
	}
	return h.withActivity(r)
}

// noCard is a charge that waits for the client to add a card.
func (h *worker) noCard() rental.Result {
	r := h.as(rental.Declined)
	if h.job.State == rental.Failed {
		r.State = rental.Failed
	}
	if r.DeclineCode == noCard && h.job.State == r.State {
		return r
	}
	r.DeclineCode = noCard
	return h.withActivity(r)
}
