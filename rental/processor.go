package rental

import (
	"context"
	"fmt"
	"log/slog"

	"motorpool/telematics"
)

// Processor holds cards and moves money. Its errors are *ProcessorError. It is safe for concurrent
// use.
//
// A key names a request to the processor: the same key again makes nothing new, and is answered
// as the first time was, even where that was an error of the processor's own.
type Processor interface {
	// CreateCustomer makes a customer, and returns the processor's id.
	CreateCustomer(ctx context.Context, key string, c Client) (string, error)
	// Attach binds a payment method to a customer, and returns the card with the token that it has
	// from now on.
	Attach(ctx context.Context, customer, token string) (Card, error)
	// Detach makes a payment method useless for ever. One that is useless already is no error.
	Detach(ctx context.Context, token string) error
	// Card returns a payment method as it is now, and the customer that it is bound to, empty for
	// none.
	Card(ctx context.Context, token string) (Card, string, error)

	// CreateIntent prepares a payment. No money moves.
	CreateIntent(ctx context.Context, key string, p IntentRequest) (Intent, error)
	// Confirm carries a payment out with a card, in the absence of its owner. A refusal is a
	// ProcessorError of the kind CardRefused.
	Confirm(ctx context.Context, key, intent, token string) (Intent, error)
	// Intent returns a payment as it is now.
	Intent(ctx context.Context, intent string) (Intent, error)
	// Capture takes a part of what is held. The rest is released.
	Capture(ctx context.Context, key, intent string, amount Minor, c Currency) (Intent, error)
	// Cancel gives up a payment that has moved nothing, and releases what it holds.
	Cancel(ctx context.Context, key, intent string) (Intent, error)

	// Refund gives back a part of a payment.
	Refund(ctx context.Context, key string, r RefundRequest) (Refund, error)
	// RefundOf returns the refund of a payment that was made for a charge; false: there is none.
	RefundOf(ctx context.Context, intent string, charge ChargeID) (Refund, bool, error)
	// RefundByID returns a refund as it is now.
	RefundByID(ctx context.Context, id string) (Refund, error)
}

// IntentRequest is a payment to be prepared.
type IntentRequest struct {
	Charge      ChargeID
	Customer    string
	Amount      Minor
	Currency    Currency
	Hold        bool // hold the money, to be captured later or released
	Description string
	Metadata    map[string]string
}

// IntentStatus is where a payment is, at the processor.
type IntentStatus string

const (
	// Waits for a card, or to be confirmed; moved nothing.
	IntentPrepared   IntentStatus = "prepared"
	IntentAction     IntentStatus = "requires_action" // waits for the card's owner
	IntentProcessing IntentStatus = "processing"
	IntentHeld       IntentStatus = "held" // authorised, not captured
	IntentSucceeded  IntentStatus = "succeeded"
	IntentCanceled   IntentStatus = "canceled"
)

// Intent is a payment at the processor.
type Intent struct {
	ID      string
	Status  IntentStatus
	Amount  Minor    // held, or received
	Attempt string   // the processor's id of the last attempt; empty: none
	Secret  string   // with which the card's owner confirms; never logged
	Decline *Decline // of the last attempt; nil: it was not declined
}

// String leaves the secret out.
func (i Intent) String() string {
	decline := ""
	if i.Decline != nil {
		decline = " declined: " + i.Decline.Code
	}
	return fmt.Sprintf("%s %s %d%s", i.ID, i.Status, i.Amount, decline)
}

// GoString leaves the secret out.
func (i Intent) GoString() string { return i.String() }

// LogValue leaves the secret out.
func (i Intent) LogValue() slog.Value { return slog.StringValue(i.String()) }

// RefundRequest is money to give back.
type RefundRequest struct {
	Charge   ChargeID // of the refund
	Intent   string   // of the payment
	Amount   Minor
	Currency Currency
}

// RefundStatus is where a refund is, at the processor.
type RefundStatus string

const (
	RefundPending   RefundStatus = "pending"
	RefundSucceeded RefundStatus = "succeeded"
	RefundFailed    RefundStatus = "failed"
)

// Refund is money given back.
type Refund struct {
	ID     string
	Status RefundStatus
	Amount Minor
	Why    string // of one that failed
}

// Decline is a card's refusal.
type Decline struct {
	Code    string // such as insufficient_funds; authentication_required: the owner must act
	Message string // for a person
	Hard    bool   // the same card must not be tried again: stolen, lost, do-not-try-again
	Action  bool   // the card's owner must confirm
}

// Notice is a processor's message about a change. The change is to be queried: notices
// come in any order, more than once.
type Notice struct {
	ID     string // of the notice
	Type   string // the processor's word
	Object string // id of what changed
	Kind   NoticeKind
	Live   bool // about real money

	Attempts int // how often it was taken to be handled
}

// NoticeKind is what kind of object a notice is about.
type NoticeKind string

const (
	AboutIntent NoticeKind = "intent"
	AboutRefund NoticeKind = "refund"
	AboutCard   NoticeKind = "card"
	AboutOther  NoticeKind = "other" // nothing that we keep
)

// ProcessorFailure is what is certain after a call to the processor failed.
type ProcessorFailure string

const (
	CardRefused ProcessorFailure = "card_refused" // the card was declined; Decline says why
	NotKnown    ProcessorFailure = "not_known"    // there is no such object
	// The request makes no sense to the processor, now or ever; nothing happened.
	Refused ProcessorFailure = "refused"
	// The object is in another state than the request needs: look at it.
	WrongState ProcessorFailure = "wrong_state"
	// Busy, or too many requests: nothing happened, the same again is safe.
	NotDone ProcessorFailure = "not_done"
	// No answer in time: the same again with the same key is safe.
	MayHaveHappened ProcessorFailure = "may_have"
	// An error of the processor's own: it may have happened, and the key answers this for ever.
	BrokenThere ProcessorFailure = "broken_there"
	NotOurs     ProcessorFailure = "not_ours" // our credentials are refused
)

// ProcessorError is why a call to the processor failed.
type ProcessorError struct {
	Kind    ProcessorFailure
	Decline *Decline // with CardRefused
	Intent  *Intent  // as the processor returns it with a refusal; nil: it does not
	Cause   error
}

// Error returns the kind, with the cause.
func (e *ProcessorError) Error() string {
	if e.Decline != nil {
		return fmt.Sprintf("payment processor: %s (%s)", e.Kind, e.Decline.Code)
	}
	return fmt.Sprintf("payment processor: %s: %v", e.Kind, e.Cause)
}

// Unwrap returns the cause.
func (e *ProcessorError) Unwrap() error { return e.Cause }

// plainRefusal is the refusal without a reason.
const plainRefusal = "generic_decline"

// secretRefusals are reasons that the user of the card must not learn: the owner has reported it,
// or the bank suspects fraud (https://docs.stripe.com/declines/codes).
var secretRefusals = map[string]bool{
	"fraudulent": true, "lost_card": true, "stolen_card": true, "pickup_card": true, "restricted_card": true, "merchant_blacklist": true,
}

// Refusal returns the error for the card that a client wanted to add.
func (d Decline) Refusal() *telematics.Error {
	if secretRefusals[d.Code] {
		d.Code, d.Message = plainRefusal, "Your card was declined."
	}
	return &telematics.Error{Code: CardDeclined, Reason: d.Code, Message: "The card was refused: " + d.Message}
}

// Refusal returns what the client reads about a refused card.
func (e *ProcessorError) Refusal() *telematics.Error {
	if e.Decline == nil {
		return Decline{Message: "the bank gives no reason."}.Refusal()
	}
	return e.Decline.Refusal()
}
