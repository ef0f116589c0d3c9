package httpapi

import (
	"context"
	"net/http"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Controller carries orders to vehicles. Its errors are *telematics.Error. Whether the vehicle
// exists, and is the actor's to see, is checked there, and every refusal leaves its audit log entry
// there, except that a vehicle of an order to many does not exist: its caller adds one line for all
// of them. An order that repeats an earlier one, by its idempotency key, is answered from what that
// one made.
type Controller interface {
	// Send blocks until the command is settled, and returns it. It fails where the vehicle
	// did not do it; there is no command where it was refused before there was one.
	Send(context.Context, *delivery.Order) (delivery.Receipt, error)
	// Start returns once the command is on its way.
	Start(context.Context, *delivery.Order) (delivery.Receipt, error)
}

// Halts is the kill switch.
type Halts interface {
	// Halts returns the halts in force, that of all agencies first.
	Halts(context.Context) (telematics.Halts, error)
	// Halt puts a halt in force, and returns it once it holds at every instance. It reports false
	// where there is no such agency.
	Halt(context.Context, telematics.Halt, telematics.Author) (telematics.Halt, bool, error)
	// Resume lifts the halt of an agency, or, for zero, that of all. It reports false where there
	// is none.
	Resume(context.Context, telematics.AgencyID, telematics.Author) (bool, error)
}

// Bulks keeps orders to many vehicles.
type Bulks interface {
	// OpenBulk writes an order down. Where its idempotency key is in use it reports true and
	// does nothing.
	OpenBulk(context.Context, telematics.Bulk) (keyTaken bool, err error)
	// RefuseBulk notes why there is no command for some of the vehicles.
	RefuseBulk(context.Context, telematics.BulkID, []telematics.BulkItem) error
	// Bulk returns the order with what has become of each vehicle, or a *telematics.Error
	// with BulkNotFound.
	Bulk(context.Context, telematics.BulkID) (telematics.Bulk, error)
	// Made returns what was made under an idempotency key.
	Made(context.Context, telematics.IdempotencyKey) (delivery.Made, bool, error)
}

// Fleet is what is known of vehicles and what was done to them. An error that has
// a method Unavailable() bool returning true reads as 503.
type Fleet interface {
	// Twin returns the vehicle, or a *telematics.Error with VehicleNotFound.
	Twin(context.Context, telematics.VehicleID) (telematics.Twin, error)
	// Belongs reports whether a vehicle is an agency's. Of one that came to another agency it may
	// still say so, until an order has found out: nothing may be sent, nor read, because of its
	// answer alone.
	Belongs(context.Context, telematics.VehicleID, telematics.AgencyID) (bool, error)
	// Twins returns vehicles by falling id, which is the position of a page.
	Twins(context.Context, telematics.VehicleQuery) ([]telematics.Twin, error)
	// CountVehicles returns how many vehicles an agency, or all for zero, has; with a vehicle that
	// is not zero, whether that is one of them, as 0 or 1.
	CountVehicles(context.Context, telematics.AgencyID, telematics.VehicleID) (int, error)
	// Command returns the command, or a *telematics.Error with CommandNotFound.
	Command(context.Context, telematics.CommandID) (telematics.Command, error)
	// VehicleCommands returns the commands that an agency, or any for zero, gave a vehicle, by
	// falling Seq, which is the position of a page.
	VehicleCommands(context.Context, telematics.VehicleID, telematics.AgencyID, telematics.Page) ([]telematics.Command, error)
	// Activities returns audit log entries by falling id, which is the position of a page.
	Activities(context.Context, telematics.ActivityQuery) ([]telematics.Activity, error)
}

// Places says where vehicles stand, in words.
type Places interface {
	// Address returns the address of a vehicle of an agency that stands somewhere, or "". It
	// answers from memory, immediately.
	Address(telematics.AgencyID, telematics.Position) string
}

// UnknownUnits has the units without a vehicle.
type UnknownUnits interface {
	// Strangers returns them by descending No, which is the position of a page.
	Strangers(context.Context, telematics.Page) ([]telematics.UnknownUnit, error)
}

// Limiter counts requests against limits, for all instances together.
type Limiter interface {
	// Take takes from limits in their order, and stops at the first that has too little left, from
	// which it takes nothing. It returns the quotas of the limits up to that one. An error says
	// that not all were counted; it comes within a fraction of a second.
	Take(context.Context, ...telematics.Limit) ([]telematics.Quota, error)
}

// History takes activity entries of reads of what vehicles reported.
type History interface {
	// Add returns when the line is durable.
	Add(context.Context, telematics.Activity) error
}

// Refusals takes lines for what is turned away before the controller hears of it.
type Refusals interface {
	// Note adds the line to the history, now or as soon as it takes it.
	Note(context.Context, telematics.Activity)
	// Omit counts a line that is not added, because its actor was refused too often.
	Omit(context.Context, telematics.Activity)
}

// Bookings keeps bookings and what is charged for them. What an actor may not see does not
// exist for it: a *telematics.Error with rental.BookingNotFound.
type Bookings interface {
	// Dossier returns what is known of a booking.
	Dossier(context.Context, rental.BookingID) (rental.Dossier, error)
	// Dossiers returns bookings by falling id, which is the position of a page.
	Dossiers(context.Context, rental.BookingQuery) ([]rental.Dossier, error)
	// OpenBooking makes a booking. It reports true where an earlier request under the same
	// idempotency key has made it.
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
	// SetDefault makes a payment method the default. It reports true where an earlier request under
	// the same idempotency key did.
	SetDefault(context.Context, rental.MethodRequest) (rental.Method, bool, error)
}

// Payments looks at payments where they are made.
type Payments interface {
	// Intent returns a payment as the processor has it now.
	Intent(ctx context.Context, intent string) (rental.Intent, error)
}

// AgencyKeyRegistry changes the keys that agencies' apps sign requests with. A change returns once
// it holds at every instance.
type AgencyKeyRegistry interface {
	// List returns the keys of all agencies, without their secrets.
	List(context.Context) ([]rental.AgencyKey, error)
	// Add makes a key, and returns it with its secret. It reports false where there is no such
	// agency.
	Add(ctx context.Context, agency telematics.AgencyID, by telematics.Author) (rental.AgencyKey, bool, error)
	// Retire lets a key end at a time. It reports false where the agency has no such key, or it is
	// revoked.
	Retire(ctx context.Context, agency telematics.AgencyID, id string, until time.Time, by telematics.Author) (rental.AgencyKey, bool, error)
	// Revoke ends a key permanently. It reports false where the agency has no such key.
	Revoke(ctx context.Context, agency telematics.AgencyID, id string, by telematics.Author) (rental.AgencyKey, bool, error)
}

// Webhooks takes what the payment processor tells unasked.
type Webhooks interface {
	// Read returns the notice that a signed request carries, or an error where the signature is not
	// the processor's.
	Read(header http.Header, body []byte) (rental.Notice, error)
	// Keep writes a notice down, once.
	Keep(context.Context, rental.Notice) error
}
