package rental

import (
	"context"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// Request is the caller, audit log entry and idempotency key of a change of a booking.
type Request struct {
	Booking BookingID
	Actor   telematics.Actor
	// The audit log entry; the store adds the booking, its agency and vehicle.
	Activity telematics.Activity
	Key      *telematics.IdempotencyKey // nil: a repetition is a new request
	Now      time.Time
	// The vehicle whose data the decision needs, in BookingDetails.MoveTo; zero: none.
	MoveTo telematics.VehicleID
}

// Decision returns the change of a booking, or an error. The booking's row is locked during the
// call.
type Decision func(BookingDetails) (Change, error)

// Job is a due charge that one worker has leased. The worker's results are stored only while it has
// the lease.
type Job struct {
	Charge
	Lease     uuid.UUID
	QueryOnly bool // query only: it is due because of a notice or QueryAt, not for an attempt
	Tries     int  // consecutive tries that changed nothing
	Client    ClientID
	Customer  string // the processor's id
	// To try now, without what the client's list has in addition; never one that must not be
	// retried; nil: none.
	Card      *Method
	Default   MethodID // the client's default when the card was chosen; zero: none
	Payment   string   // of a refund: the processor's id of the payment to refund
	Reference string   // of the booking
	// Of an extension that can be taken back: since it was refused, or since the client has chosen
	// another card, the client has this long to mend its payment.
	MendFor *time.Duration
	// The end of that, when it is taken back; zero: it was not refused, or is not the last one.
	MendBy  time.Time
	Agency  telematics.AgencyID
	Vehicle telematics.VehicleID

	Installation string // its id; the processor gets it with each payment
}

// Result is what a worker stores about a charge.
type Result struct {
	State       ChargeState
	Intent      string // the processor's id; empty: unchanged
	AttemptID   string // the attempt whose outcome this is; empty: unchanged
	Settled     Minor
	DeclineCode string
	Hard        bool   // the card that was tried must not be tried again
	RefusedCard string // token of a card that the processor no longer accepts
	// No other card would help: a new default card does not make it due again.
	NotRetryable bool
	CountAttempt bool      // an attempt is about to be made, or the next one needs another key
	Card         *Method   // for the attempt about to be made; nil: unchanged
	Declined     bool      // another decline of this card
	NoChange     bool      // a try that changed nothing
	NextAttempt  time.Time // zero: none
	QueryAt      time.Time // when to query the processor, even if no attempt is due; zero: never
	PaidAt       time.Time
	Activity     *telematics.Activity // the audit log entry; nil: none
}

// Ledger stores charges as jobs for workers. A change of state that Charge.MayBecome forbids is an
// error.
//
// A charge may change while a worker has it: a new default card, another goal. The worker's result
// must not hide that: WriteCharge returns false, and SettleCharge makes the charge due again
// immediately, with the new card, unless the result is not retryable.
type Ledger interface {
	// TakeCharges leases up to limit due charges. A charge whose worker died is due again when its
	// lease has expired.
	TakeCharges(ctx context.Context, limit int, lease time.Duration) ([]Job, error)
	// WriteCharge stores an intermediate result, and renews the lease for its initial length. It
	// returns false if the lease was lost, or the charge has changed: then the result was not
	// stored, and the worker must do nothing more. A changed charge is due again immediately.
	WriteCharge(ctx context.Context, job Job, r Result) (bool, error)
	// SettleCharge stores the result, and ends the lease. It returns false if the lease was lost:
	// then nothing was written.
	SettleCharge(ctx context.Context, job Job, r Result) (bool, error)
	// WakeCharge makes the charge of a processor's object due for a query. It returns the charge's
	// state, empty if there is no charge, and whether it will be queried: a final one will not,
	// except for a refund, which may still fail.
	WakeCharge(ctx context.Context, object string) (state ChargeState, woken bool, err error)
	// Dispute writes an audit log entry about the charge of a processor's object, which it adds,
	// unless there is one with the same notice_id. It returns false if there is no charge.
	Dispute(ctx context.Context, object string, entry telematics.Activity) (known bool, err error)
}

// PaymentRecord compares the processor's payments with the charges on record.
type PaymentRecord interface {
	// Installation returns the id of the installation.
	Installation(ctx context.Context) (string, error)
	// WithoutCharge returns those of the identities (Charge.PaymentID) that no charge has.
	WithoutCharge(ctx context.Context, payments []uuid.UUID) ([]uuid.UUID, error)
	// RefundedLess returns those of the identities whose charges have less refunded on record than
	// the given amounts, each with the amount on record. Deposits are left out.
	RefundedLess(ctx context.Context, refunded map[uuid.UUID]Minor) (map[uuid.UUID]Minor, error)
	// ListUnrecorded replaces the listed payments that were created at a time or later, and returns
	// those that were not listed before.
	ListUnrecorded(ctx context.Context, since time.Time, found []ListedIntent) (added []ListedIntent, err error)
	// OldestUnrecorded returns when the oldest listed payment was created; zero: none is listed.
	OldestUnrecorded(ctx context.Context) (time.Time, error)
}

// Notices stores the notices of the processor until they are handled.
type Notices interface {
	// Keep stores a notice; a repetition changes nothing.
	Keep(ctx context.Context, n Notice) error
	// TakeNotices leases up to limit due notices.
	TakeNotices(ctx context.Context, limit int, lease time.Duration) ([]Notice, error)
	// Handled ends the lease of a notice, which is then handled, or, if again is not zero, due
	// again at that time.
	Handled(ctx context.Context, id string, again time.Time) error
}

// Cards stores the payment methods of clients. Changes for one client are serialised.
type Cards interface {
	// Client returns the client, and creates it at first use.
	Client(ctx context.Context, agency telematics.AgencyID, subject string) (Client, error)
	// SetCustomer stores the processor's id of a client, unless there is one already, and
	// returns the client as it is then.
	SetCustomer(ctx context.Context, id ClientID, customer string) (Client, error)
	// Methods returns the client's payment methods, newest first.
	Methods(ctx context.Context, id ClientID) ([]Method, error)
	// AddMethod stores a card. If the client has the same card already (fingerprint), that one is
	// returned; if the expiry differs, it gets the new token and expiry. The first card becomes
	// the default. It fails with MethodLimit, and, if the key is in use, as AddedUnder does.
	AddMethod(ctx context.Context, a Addition) (Added, error)
	// AddedUnder returns the current state of the method that an earlier request with an
	// idempotency key added; false: there was none. It fails with the stored decline, with
	// IdempotencyMismatch, or with MethodNotFound if the method was removed since.
	AddedUnder(ctx context.Context, id ClientID, key telematics.IdempotencyKey) (Added, bool, error)
	// KeepDecline stores a decline as the result of an idempotency key, unless the key is in use.
	KeepDecline(ctx context.Context, key telematics.IdempotencyKey, decline *telematics.Error) error
	// RemoveMethod removes a payment method, and returns it. It fails with MethodNotFound,
	// DefaultMethod or MethodInUse.
	RemoveMethod(ctx context.Context, id ClientID, method MethodID, entry telematics.Activity) (Method, error)
	// SetDefault makes a payment method the default, and declined charges due with it. It returns
	// true if an earlier request with the same key did so. It fails with MethodNotFound.
	SetDefault(
		ctx context.Context, id ClientID, method MethodID, entry telematics.Activity, key *telematics.IdempotencyKey,
	) (Method, bool, error)
	// DropCard removes the payment method with a token that the processor no longer holds. If it
	// was the default, the newest remaining one becomes the default. An unknown token is no error.
	DropCard(ctx context.Context, token string, entry telematics.Activity) error
	// DetachLater stores that a card of a client is to be detached at the processor after a time,
	// unless it is a payment method then. RemoveMethod and AddMethod do so for a card that is no
	// method any more, and AddMethod ends it for the one that it stores.
	DetachLater(ctx context.Context, client ClientID, token string, after time.Duration) error
	// TakeDetachments returns up to limit cards that are to be detached now. They are due again
	// after a time, unless Detached is called.
	TakeDetachments(ctx context.Context, limit int, again time.Duration) ([]Detachment, error)
	// Detached stores that a card needs no detaching any more.
	Detached(ctx context.Context, token string) error
	// RefreshCard stores changes of a card at the processor, such as its expiry and last digits.
	RefreshCard(ctx context.Context, card Card) error
}

// Detachment is a card to be detached at the processor, if it still is the client's.
type Detachment struct {
	Client   ClientID
	Customer string // the processor's id of the client; empty: there is none
	Token    string
}

// Addition is a card to be stored.
type Addition struct {
	Client   ClientID
	Card     Card
	Default  bool
	Key      *telematics.IdempotencyKey
	Activity telematics.Activity
	Now      time.Time
}

// Added is the result of an addition.
type Added struct {
	Method   Method
	Existed  bool   // the client had the card already
	Replayed bool   // it was added by an earlier request under the same key
	Unused   string // token that is no longer needed, to be detached; empty: none
}
