package rental

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// Processor holds cards and moves money. Its errors are *ProcessorError. It is safe for concurrent
// use.
//
// A key is the idempotency key of a request: a request with the same key has no further effect, and
// gets the first response again, even if that was an internal error of the processor.
type Processor interface {
	// CreateCustomer creates a customer, and returns the processor's id.
	CreateCustomer(ctx context.Context, key string, c Client) (string, error)
	// Attach binds a payment method to a customer, and returns the card with the token to use from
	// then on. If it is bound to the customer already, that is no error.
	Attach(ctx context.Context, customer, token string) (Card, error)
	// Detach makes a payment method permanently unusable. If it is already, that is no error.
	Detach(ctx context.Context, token string) error
	// Card returns a payment method as it is now, and the customer that it is bound to, empty for
	// none.
	Card(ctx context.Context, token string) (Card, string, error)

	// CreateIntent prepares a payment. No money moves.
	CreateIntent(ctx context.Context, key string, p IntentRequest) (Intent, error)
	// Confirm executes a payment with a card, in the absence of its owner. A refusal is a
	// ProcessorError of the kind CardRefused.
	Confirm(ctx context.Context, key, intent, token string) (Intent, error)
	// Intent returns a payment as it is now.
	Intent(ctx context.Context, intent string) (Intent, error)
	// IntentOf returns a customer's payment with the identity of a request (Charge.PaymentID);
	// false: there is none. If there are several, one that moved money takes precedence. It may
	// have been created for another amount or currency: see Intent.Requested.
	IntentOf(ctx context.Context, r IntentRequest) (Intent, bool, error)
	// Intents returns a page of the payments that were created at a time or later, newest first,
	// and the cursor of the next page, empty after the last one. The first page has the cursor "".
	Intents(ctx context.Context, since time.Time, cursor string) (page []ListedIntent, next string, err error)
	// Capture takes a part of a held amount, or all of it. The rest is released.
	Capture(ctx context.Context, key, intent string, amount Minor, c Currency) (Intent, error)
	// Cancel cancels a payment that has taken no money, and releases what it holds.
	Cancel(ctx context.Context, key, intent string) (Intent, error)

	// Refund refunds a payment, in part or whole.
	Refund(ctx context.Context, key string, r RefundRequest) (Refund, error)
	// RefundOf returns the refund of a payment with an identity; false: there is none.
	RefundOf(ctx context.Context, intent string, refund uuid.UUID) (Refund, bool, error)
	// RefundByID returns a refund as it is now.
	RefundByID(ctx context.Context, id string) (Refund, error)
}

// IntentRequest is a payment to be prepared.
type IntentRequest struct {
	Payment     uuid.UUID // its identity
	Customer    string
	Amount      Minor
	Currency    Currency
	Hold        bool // hold the money, to be captured later or released
	Description string
	Metadata    map[string]string
}

// IntentStatus is the state of a payment at the processor.
type IntentStatus string

const (
	// Waits for a card, or for Confirm; no money has moved.
	IntentPrepared   IntentStatus = "prepared"
	IntentAction     IntentStatus = "requires_action" // waits for the card's owner
	IntentProcessing IntentStatus = "processing"
	IntentHeld       IntentStatus = "held" // authorised, not captured
	IntentSucceeded  IntentStatus = "succeeded"
	IntentCanceled   IntentStatus = "canceled"
)

// Intent is a payment at the processor.
type Intent struct {
	ID        string
	Status    IntentStatus
	Requested Minor // what it was created for; of IntentOf, before rounding
	Currency  Currency
	Amount    Minor    // held, or received
	Attempt   string   // the processor's id of the last attempt; empty: none
	Secret    string   // for the card's owner, to confirm; never logged
	Decline   *Decline // of the last attempt; nil: it was not declined
}

// ListedIntent is a payment in a list of the processor.
type ListedIntent struct {
	Intent
	Payment  uuid.UUID // its identity; zero: none that Motorpool has made
	Customer string
	Refunded Minor
	Created  time.Time
	Metadata map[string]string
}

// Remains returns the amount that the payment holds or has taken, and that is not refunded.
func (i ListedIntent) Remains() Minor {
	if i.Status != IntentHeld && i.Status != IntentSucceeded {
		return 0
	}
	return i.Amount - i.Refunded
}

// The metadata of a payment.
const (
	MetaInstallation = "installation" // that made it
	MetaBooking      = "booking"      // its reference
	MetaKind         = "kind"         // of the charge
)

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

// RefundRequest is a refund to be created.
type RefundRequest struct {
	Refund   uuid.UUID // its identity
	Intent   string    // of the payment
	Amount   Minor
	Currency Currency
}

// RefundStatus is the state of a refund at the processor.
type RefundStatus string

const (
	RefundPending   RefundStatus = "pending"
	RefundSucceeded RefundStatus = "succeeded"
	RefundFailed    RefundStatus = "failed"
)

// Refund is a refund at the processor.
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

// Notice is a processor's message that an object has changed. The object must be queried: notices
// come in any order, and more than once.
type Notice struct {
	ID     string // of the notice
	Type   string // as the processor names it; of a dispute, and its status: … lost
	Object string // id of what changed
	Kind   NoticeKind
	Live   bool // real money, not test mode

	Attempts int // how often it was leased
}

// NoticeKind is the kind of object that a notice is about.
type NoticeKind string

const (
	AboutIntent NoticeKind = "intent"
	AboutRefund NoticeKind = "refund"
	AboutCard   NoticeKind = "card"
	// The owner of a card disputes a payment, whose id is the object: only people can answer.
	AboutDispute NoticeKind = "dispute"
	AboutOther   NoticeKind = "other" // nothing that Motorpool stores
)

// ProcessorFailure is what is known after a failed call to the processor.
type ProcessorFailure string

const (
	CardRefused ProcessorFailure = "card_refused" // the card was declined; see Decline
	NotKnown    ProcessorFailure = "not_known"    // there is no such object
	// The request is invalid, now and always; nothing happened.
	Refused ProcessorFailure = "refused"
	// The amount is less than the processor takes; nothing happened.
	TooSmall ProcessorFailure = "too_small"
	// The object's state does not allow the request: query it.
	WrongState ProcessorFailure = "wrong_state"
	// Busy, or too many requests: nothing happened, a retry is safe.
	NotDone ProcessorFailure = "not_done"
	// No answer in time: a retry with the same key is safe.
	MayHaveHappened ProcessorFailure = "may_have"
	// An internal error of the processor: it may have happened; the key always returns this error.
	BrokenThere ProcessorFailure = "broken_there"
	NotOurs     ProcessorFailure = "not_ours" // our credentials were rejected
)

// ProcessorError is why a call to the processor failed.
type ProcessorError struct {
	Kind    ProcessorFailure
	Decline *Decline // with CardRefused
	Intent  *Intent  // if the processor returns it with a refusal; else nil
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

// plainRefusal is the decline code that gives no reason.
const plainRefusal = "generic_decline"

// secretRefusals are decline codes that the user of the card must not learn: the owner has reported
// the card, or the bank suspects fraud (https://docs.stripe.com/declines/codes).
var secretRefusals = map[string]bool{
	"fraudulent": true, "lost_card": true, "stolen_card": true, "pickup_card": true, "restricted_card": true, "merchant_blacklist": true,
}

// ReasonForClient returns the decline code that a client may read for one.
func ReasonForClient(declineCode string) string {
	if secretRefusals[declineCode] {
		return plainRefusal
	}
	return declineCode
}

// Refusal returns the error for a client whose card was declined; it hides secret reasons.
func (d Decline) Refusal() *telematics.Error {
	if code := ReasonForClient(d.Code); code != d.Code {
		d.Code, d.Message = code, "Your card was declined."
	}
	return &telematics.Error{Code: CardDeclined, Reason: d.Code, Message: "The card was refused: " + d.Message}
}

// Refusal returns the error for a client whose card was declined.
func (e *ProcessorError) Refusal() *telematics.Error {
	if e.Decline == nil {
		return Decline{Message: "the bank gives no reason."}.Refusal()
	}
	return e.Decline.Refusal()
}
