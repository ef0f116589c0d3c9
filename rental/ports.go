package rental

import (
	"context"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// Request is who asks for a change of a booking, and how it is stored.
type Request struct {
	Booking BookingID
	Actor   telematics.Actor
	// The audit log entry; the record adds the booking, its agency and vehicle.
	Activity telematics.Activity
	Key      *telematics.IdempotencyKey // nil: a repetition is a new request
	Now      time.Time
}

// Decision is made about a booking that is locked meanwhile.
type Decision func(BookingDetails) (Change, error)

// Job is a charge that is due, taken by one worker for a while. What the worker learns is written
// only while it has the lease.
type Job struct {
	Charge
	Lease     uuid.UUID
	QueryOnly bool // only to be queried: the processor sent a notice, and it is not due otherwise
	Tries     int  // consecutive ones that changed nothing
	Client    ClientID
	Customer  string   // the processor's id
	Card      *Method  // to try now, never one that must not be tried again; nil: there is none
	Default   MethodID // the client's, when the card was chosen; zero: there was none
	Payment   string   // of a refund: the processor's id of the payment that it gives back
	Reference string   // of the booking
	Agency    telematics.AgencyID
	Vehicle   telematics.VehicleID
}

// Result is what a worker learned about a charge.
type Result struct {
	State       ChargeState
	Intent      string // the processor's id; empty: unchanged
	AttemptID   string // the attempt whose outcome this is; empty: unchanged
	Settled     Minor
	DeclineCode string
	Hard        bool   // the card that was tried must not be tried again
	RefusedCard string // token of a card that the processor does not take any more
	// No other card would help: a new default card does not make it due again.
	NotRetryable bool
	CountAttempt bool      // an attempt is about to be made, or the next one needs another key
	Card         *Method   // with which it is about to be made; nil: unchanged
	Declined     bool      // another decline of this card
	NoChange     bool      // a try that changed nothing
	NextAttempt  time.Time // zero: nothing is to be done
	QueryAt      time.Time // of the processor, also if nothing else is due; zero: no need
	PaidAt       time.Time
	Activity     *telematics.Activity // the audit log entry; nil: none
}

// Ledger keeps the charges that are to be carried out. A change of state that ChargeState.MayBecome
// forbids is an error.
//
// Something may happen to a charge while a worker is at it: a new default card, another goal. Then
// what the worker stores does not hide it: WriteCharge refuses, SettleCharge makes the charge
// due again immediately, with the new card, unless the result is not retryable.
type Ledger interface {
	// TakeCharges takes up to limit charges that are due, for the length of a lease. One whose
	// worker died is taken again once its lease has run out.
	TakeCharges(ctx context.Context, limit int, lease time.Duration) ([]Job, error)
	// WriteCharge stores what is known now, keeps the job, and makes its lease as long as it
	// was. It reports false where the job is no longer the worker's, or is another one by now: then
	// nothing was written, and the worker must do nothing more.
	WriteCharge(ctx context.Context, job Job, r Result) (bool, error)
	// SettleCharge stores what was learned, and gives the job back. It reports false where it
	// was no longer the worker's.
	SettleCharge(ctx context.Context, job Job, r Result) (bool, error)
	// WakeCharge has the charge looked at that a processor's object belongs to. It returns its
	// state, empty where there is none, and whether it is looked at: what was paid, taken or
	// released stays so; a refund may still come back.
	WakeCharge(ctx context.Context, object string) (state ChargeState, woken bool, err error)
}

// Notices keeps the notices of the processor until they are handled.
type Notices interface {
	// Keep writes a notice down, once: a repetition changes nothing.
	Keep(ctx context.Context, n Notice) error
	// TakeNotices takes up to limit notices that are due, for the length of a lease.
	TakeNotices(ctx context.Context, limit int, lease time.Duration) ([]Notice, error)
	// Handled gives a notice back: done with, or, for a time that is not zero, to be taken again
	// then.
	Handled(ctx context.Context, id string, again time.Time) error
}

// Cards keeps the payment methods of clients. Changes of one client go one after another.
type Cards interface {
	// Client returns the client, which is made at first use.
	Client(ctx context.Context, agency telematics.AgencyID, subject string) (Client, error)
	// SetCustomer stores the processor's id of a client, unless there is one already, and
	// returns the client as it is then.
	SetCustomer(ctx context.Context, id ClientID, customer string) (Client, error)
	// Methods returns the client's payment methods, newest first.
	Methods(ctx context.Context, id ClientID) ([]Method, error)
	// AddMethod writes a card down. Where the client has the same card already (fingerprint), that
	// one is returned, with the new card's token and expiry where the expiry differs. The first
	// card becomes the default. It fails with MethodLimit, and, where the key is in use, as
	// AddedUnder does.
	AddMethod(ctx context.Context, a Addition) (Added, error)
	// AddedUnder returns what an earlier addition under an idempotency key has led to, as it is
	// now; false: there was none. It fails with the decline that was kept, with
	// IdempotencyMismatch, or with MethodNotFound where the method was removed since.
	AddedUnder(ctx context.Context, id ClientID, key telematics.IdempotencyKey) (Added, bool, error)
	// KeepDecline stores under an idempotency key, unless it is in use, that the card was
	// declined.
	KeepDecline(ctx context.Context, key telematics.IdempotencyKey, decline *telematics.Error) error
	// RemoveMethod removes a payment method, and returns it. It fails with MethodNotFound,
	// DefaultMethod or MethodInUse.
	RemoveMethod(ctx context.Context, id ClientID, method MethodID, entry telematics.Activity) (Method, error)
	// SetDefault makes a payment method the default, and charges that were declined due with it. It
	// fails with MethodNotFound.
	SetDefault(ctx context.Context, id ClientID, method MethodID, entry telematics.Activity, key *telematics.IdempotencyKey) (Method, bool, error)
	// DropCard removes the payment method with a token that the processor no longer holds; where it
	// was the default, the newest remaining one becomes it. One that is unknown is no error.
	DropCard(ctx context.Context, token string, entry telematics.Activity) error
	// RefreshCard stores what the processor changed of a card: its expiry and last digits.
	RefreshCard(ctx context.Context, card Card) error
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

// Added is what became of an addition.
type Added struct {
	Method   Method
	Existed  bool   // the client had the card already
	Replayed bool   // it was added by an earlier request under the same key
	Unused   string // token that is of no use now, to be detached; empty: none
}
