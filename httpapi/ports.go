package httpapi

import (
	"context"
	"io"
	"net/http"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/telematics/samples"
)

// Controller sends commands to vehicles. Its errors are *telematics.Error. It checks that the
// vehicle exists and the actor may see it, and adds the audit log entry of each command and
// refusal; but not of an order to many whose vehicle does not exist: the caller adds one entry for
// all of those. An order that repeats an earlier one, by its idempotency key, is answered with the
// result of that one.
type Controller interface {
	// Send blocks until the command is settled, and returns it. It fails where the vehicle did not
	// execute it; there is no command where the order was refused before there was one.
	Send(context.Context, *delivery.Order) (delivery.Receipt, error)
	// Start returns once the command is accepted.
	Start(context.Context, *delivery.Order) (delivery.Receipt, error)
	// SendMany starts a command for each vehicle of an order, and returns what became of each so
	// far. It reports true where the order repeats an earlier one.
	SendMany(context.Context, *delivery.BulkOrder) (telematics.Bulk, bool, error)
}

// Halts is the kill switch.
type Halts interface {
	// Halts returns the halts in force, that of all agencies first.
	Halts(context.Context) (telematics.Halts, error)
	// Halt returns once the halt holds at every instance. It reports false where there is no such
	// agency.
	Halt(context.Context, telematics.Halt, telematics.Author) (telematics.Halt, bool, error)
	// Effects counts what each of the halts stops now, in their order.
	Effects(context.Context, telematics.Halts) ([]telematics.HaltEffect, error)
	// Resume lifts the halt of an agency, or, for zero, that of all. It reports false where there
	// is none.
	Resume(context.Context, telematics.AgencyID, telematics.Author) (bool, error)
}

// Bulks has the orders to many vehicles.
type Bulks interface {
	// Bulk returns the order with the state of each vehicle, or a *telematics.Error with
	// BulkNotFound.
	Bulk(context.Context, telematics.BulkID) (telematics.Bulk, error)
	// FindByKey returns the command or the bulk that was made under an idempotency key.
	FindByKey(context.Context, telematics.IdempotencyKey) (delivery.KeyResult, bool, error)
}

// Fleet has vehicles, their commands and the audit log. An error with a method Unavailable() bool
// that returns true becomes 503.
type Fleet interface {
	// Twin returns the vehicle with its reported state, or a *telematics.Error with
	// VehicleNotFound.
	Twin(context.Context, telematics.VehicleID) (telematics.Twin, error)
	// Record is Twin without the reported state.
	Record(context.Context, telematics.VehicleID) (telematics.Twin, error)
	// Belongs reports whether a vehicle belongs to an agency. A true may be outdated: after a move
	// to another agency it is possible until a claim reads the record again. Do not authorise a
	// command or a read by it alone.
	Belongs(context.Context, telematics.VehicleID, telematics.AgencyID) (bool, error)
	// Twins returns vehicles by descending id, which is the position of a page.
	Twins(context.Context, telematics.VehicleQuery) ([]telematics.Twin, error)
	// Markers calls a function with what a map shows of each vehicle, by ascending id, and returns
	// its first error.
	Markers(context.Context, telematics.MarkerQuery, func(telematics.Marker) error) error
	// CountVehicles returns how many vehicles an agency, or all for zero, has; with a vehicle that
	// is not zero, whether that is one of them, as 0 or 1.
	CountVehicles(context.Context, telematics.AgencyID, telematics.VehicleID) (int, error)
	// Command returns the command, or a *telematics.Error with CommandNotFound.
	Command(context.Context, telematics.CommandID) (telematics.Command, error)
	// VehicleCommands returns the commands that an agency, or any for zero, gave a vehicle, by
	// falling Seq, which is the position of a page.
	VehicleCommands(context.Context, telematics.VehicleID, telematics.AgencyID, telematics.Page) ([]telematics.Command, error)
	// List returns commands by descending id, which is the position of a page.
	List(context.Context, telematics.CommandQuery) ([]telematics.Command, error)
	// Activities returns audit log entries by descending id, which is the position of a page.
	Activities(context.Context, telematics.ActivityQuery) ([]telematics.Activity, error)
}

// Agencies has the agencies with what they own. Lists come by descending id, which is the position
// of a page.
type Agencies interface {
	Agencies(context.Context, telematics.AgencyQuery) ([]telematics.ListedAgency, error)
	ListStations(context.Context, telematics.AgencyQuery) ([]telematics.Station, error)
}

// Telemetry has samples of what vehicles reported.
type Telemetry interface {
	// TelemetryDays is for how many days samples are kept; 0: there are none.
	TelemetryDays() int
	// Telemetry returns the buckets that have samples, the oldest first.
	Telemetry(context.Context, samples.Query) ([]samples.Bucket, error)
}

// noTelemetry is for an API without Telemetry.
type noTelemetry struct{}

func (noTelemetry) TelemetryDays() int { return 0 }
func (noTelemetry) Telemetry(context.Context, samples.Query) ([]samples.Bucket, error) {
	return nil, nil
}

// Places has the addresses of positions.
type Places interface {
	// Address returns the address of a position of an agency's vehicle, or "". It does not block.
	Address(telematics.AgencyID, telematics.Position) string
}

// Units has what is known of units, whatever their vehicles.
type Units interface {
	// ListUnits returns units of vehicles by descending id of the vehicle, which is the position of
	// a page.
	ListUnits(context.Context, telematics.UnitQuery) ([]telematics.ListedUnit, error)
	// UnknownUnits returns those without a vehicle by descending No, which is the position of a
	// page.
	UnknownUnits(context.Context, telematics.Page) ([]telematics.UnknownUnit, error)
	// KeyHolders counts those with a vehicle by whether they hold one of the fleet's public keys.
	KeyHolders(ctx context.Context, key string) (telematics.KeyHolders, error)
}

// Limiter counts requests against limits, for all instances together.
type Limiter interface {
	// Take takes from limits in their order, and stops at the first that has too little left, from
	// which it takes nothing. It returns the quotas of the limits up to that one. An error says
	// that not all were counted; it comes within a fraction of a second.
	Take(context.Context, ...telematics.Limit) ([]telematics.Quota, error)
}

// Watches has units report often while their vehicles are watched. It does not block.
type Watches interface {
	// Begin begins to watch a vehicle's unit, until the returned function is called.
	Begin(telematics.Vehicle) (end func())
	// Briefly watches it for a minute.
	Briefly(telematics.Vehicle)
}

// notWatched is for an API without Watches.
type notWatched struct{}

func (notWatched) Begin(telematics.Vehicle) func() { return func() {} }
func (notWatched) Briefly(telematics.Vehicle)      {}

// History adds audit log entries of reads.
type History interface {
	// Add returns when the entry is durable.
	Add(context.Context, telematics.Activity) error
}

// Refusals adds audit log entries of requests that are refused before the controller gets them.
type Refusals interface {
	// Record adds the entry, now or as soon as the audit log is available.
	Record(context.Context, telematics.Activity)
	// Omit counts an entry that is not added, because its actor was refused too often.
	Omit(context.Context, telematics.Activity)
}

// Bookings stores bookings and their charges. One that the actor may not see does not exist for it:
// a *telematics.Error with rental.BookingNotFound.
type Bookings interface {
	// BookingDetails returns a booking with all that belongs to it.
	BookingDetails(context.Context, rental.BookingID) (rental.BookingDetails, error)
	// FindBookings returns bookings by descending id, which is the position of a page.
	FindBookings(context.Context, rental.BookingQuery) ([]rental.BookingDetails, error)
	// FindCharges returns charges by descending id, which is the position of a page.
	FindCharges(context.Context, rental.ChargeQuery) ([]rental.BookedCharge, error)
	// OpenBooking makes a booking. It reports true where an earlier request under the same
	// idempotency key has made it.
	OpenBooking(context.Context, rental.Draft, rental.Request) (rental.BookingDetails, bool, error)
	// Amend changes a booking as it is decided while it is locked, and returns it as it is then. It
	// reports true where an earlier request under the same idempotency key did.
	Amend(context.Context, rental.Request, rental.Decision) (rental.BookingDetails, bool, error)
}

// Wallet stores the payment methods of clients.
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

// Payments reads payments from the payment processor.
type Payments interface {
	// Intent returns the current state of a payment.
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

// Pages serves pages and the files that they load.
type Pages interface {
	http.Handler
	// Has reports whether there is something at a path.
	Has(path string) bool
}

// Streets is the file of streets that the console's map draws.
type Streets interface {
	// Open returns the file as it is now, and a strong entity tag of its content. The caller closes
	// it.
	Open() (content io.ReadSeekCloser, etag string, err error)
}

// Webhooks receives notices of the payment processor.
type Webhooks interface {
	// Read returns the notice that a signed request carries, or an error where the signature is not
	// the processor's.
	Read(header http.Header, body []byte) (rental.Notice, error)
	// Keep stores a notice, once.
	Keep(context.Context, rental.Notice) error
}
