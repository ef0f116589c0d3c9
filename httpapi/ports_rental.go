package httpapi

import (
	"context"
	"net/http"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

// Bookings keeps bookings and what is charged for them. What an actor may not see does not
// exist for it: a *telematics.Error with rental.BookingNotFound.
type Bookings interface {
	// Dossier returns what is known of a booking.
	Dossier(context.Context, rental.BookingID) (rental.Dossier, error)
	// Dossiers returns bookings by falling id, which is the position of a page.
	Dossiers(context.Context, rental.BookingQuery) ([]rental.Dossier, error)
	// OpenBooking makes a booking. It reports true where an earlier request under the same idempotency key
	// has made it.
	OpenBooking(context.Context, rental.Draft, rental.Request) (rental.Dossier, bool, error)
	// Amend changes a booking as it is decided while it is locked, and returns it as it is then. It
	// reports true where an earlier request under the same idempotency key did.
	Amend(context.Context, rental.Request, rental.Decision) (rental.Dossier, bool, error)
}

// Wallet keeps the payment methods of clients.
type Wallet interface {
	// List returns the client's payment methods, newest first.
	List(context.Context, telematics.Actor) ([]rental.Method, error)
	// Add attaches a card to the client.
	Add(context.Context, rental.NewCard) (rental.Added, error)
	// Remove removes a payment method.
	Remove(context.Context, rental.MethodRequest) error
	// SetDefault makes a payment method the default. It reports true where an earlier request under the same
	// idempotency key did.
	SetDefault(context.Context, rental.MethodRequest) (rental.Method, bool, error)
}

// Payments looks at payments where they are made.
type Payments interface {
	// Intent returns a payment as the processor has it now.
	Intent(ctx context.Context, intent string) (rental.Intent, error)
}

// AgencyKeyRegistry changes the keys that agencies' apps sign requests with. A change returns once it holds at every instance.
type AgencyKeyRegistry interface {
	// List returns the keys of all agencies, without their secrets.
	List(context.Context) ([]rental.AgencyKey, error)
	// Add makes a key, and returns it with its secret. It reports false where there is no such agency.
	Add(ctx context.Context, agency telematics.AgencyID, by telematics.Author) (rental.AgencyKey, bool, error)
	// Retire lets a key end at a time. It reports false where the agency has no such key, or it is revoked.
	Retire(ctx context.Context, agency telematics.AgencyID, id string, until time.Time, by telematics.Author) (rental.AgencyKey, bool, error)
	// Revoke ends a key permanently. It reports false where the agency has no such key.
	Revoke(ctx context.Context, agency telematics.AgencyID, id string, by telematics.Author) (rental.AgencyKey, bool, error)
}

// Webhooks takes what the payment processor tells unasked.
type Webhooks interface {
	// Read returns the notice that a signed request carries, or an error where the signature is not the processor's.
	Read(header http.Header, body []byte) (rental.Notice, error)
	// Keep writes a notice down, once.
	Keep(context.Context, rental.Notice) error
}
