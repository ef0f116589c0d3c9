package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"motorpool/alerts"
	"motorpool/httpapi/request"
	"motorpool/rental"
	"motorpool/rental/areas"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/telematics/samples"
)

// Controller sends commands to vehicles. Its errors are *telematics.Error. It checks that the
// vehicle exists and the actor may see it, and adds the audit log entry of each command and
// refusal; but not for missing vehicles of an order to many: the caller adds one entry for
// all of those. An order that repeats an earlier one, by its idempotency key, gets the result of
// that one.
type Controller interface {
	// Send blocks until the command is settled, and returns it. It fails if the vehicle did not
	// execute it; Receipt.Command is nil if the order was refused before there was a command.
	Send(context.Context, *delivery.Order) (delivery.Receipt, error)
	// Start returns once the command is accepted.
	Start(context.Context, *delivery.Order) (delivery.Receipt, error)
	// SendMany starts a command for each vehicle of an order, and returns the state of each. It
	// returns true if the order repeats an earlier one.
	SendMany(context.Context, *delivery.BulkOrder) (telematics.Bulk, bool, error)
}

// Halts puts halts in force, and lifts them.
type Halts interface {
	// Halts returns the halts in force, that of all agencies first.
	Halts(context.Context) (telematics.Halts, error)
	// Halt stores a halt, which every instance applies within Config.HaltWithin. It returns false
	// if there is no such agency.
	Halt(context.Context, telematics.Halt, telematics.Author) (telematics.Halt, bool, error)
	// Effects returns the effect of each of the halts now, in their order.
	Effects(context.Context, telematics.Halts) ([]telematics.HaltEffect, error)
	// Resume lifts the halt of an agency, or, for zero, that of all. It returns false if there is
	// none.
	Resume(_ context.Context, _ telematics.AgencyID, why string, by telematics.Author) (bool, error)
}

// Bulks reads orders to many vehicles, and the results of idempotency keys.
type Bulks interface {
	request.Keys
	// Bulk returns the order with the state of each vehicle, or a *telematics.Error with
	// BulkNotFound.
	Bulk(context.Context, telematics.BulkID) (telematics.Bulk, error)
	// Bulks returns orders by descending id, which is the position of a page.
	Bulks(context.Context, telematics.BulkQuery) ([]telematics.CountedBulk, error)
}

// Fleet reads vehicles with their reported state. An error of a port with a method Unavailable()
// bool that returns true is answered with 503.
type Fleet interface {
	request.Vehicles
	// DurableTwin returns the vehicle with its reported state, or a *telematics.Error with
	// VehicleNotFound. No later read returns less.
	DurableTwin(context.Context, telematics.VehicleID) (telematics.Twin, error)
	// Record is DurableTwin without the reported state.
	Record(context.Context, telematics.VehicleID) (telematics.Twin, error)
	// Twins returns vehicles by descending id, which is the position of a page.
	Twins(context.Context, telematics.VehicleQuery) ([]telematics.Twin, error)
}

// Map reads all vehicles.
type Map interface {
	// Markers calls a function with the map marker of each vehicle, by ascending id, and returns
	// its first error.
	Markers(context.Context, telematics.MarkerQuery, func(telematics.Marker) error) error
	// CountVehicles returns the number of vehicles of an agency, or of all for zero. If the vehicle
	// is not zero, only that one is counted: 0 or 1.
	CountVehicles(context.Context, telematics.AgencyID, telematics.VehicleID) (int, error)
}

// Commands reads commands.
type Commands interface {
	// Command returns the command, or a *telematics.Error with CommandNotFound.
	Command(context.Context, telematics.CommandID) (telematics.Command, error)
	// VehicleCommands returns the commands of an agency, or of any for zero, to a vehicle, by
	// descending Seq, which is the position of a page.
	VehicleCommands(context.Context, telematics.VehicleID, telematics.AgencyID, telematics.Page) ([]telematics.Command, error)
	// List returns commands by descending id, which is the position of a page.
	List(context.Context, telematics.CommandQuery) ([]telematics.Command, error)
}

// Activities reads the audit log.
type Activities interface {
	// Activities returns entries by descending id, which is the position of a page.
	Activities(context.Context, telematics.ActivityQuery) ([]telematics.Activity, error)
}

// Agencies lists agencies and their stations, by descending id, which is the position of a page.
type Agencies interface {
	Agencies(context.Context, telematics.AgencyQuery) ([]telematics.ListedAgency, error)
	ListStations(context.Context, telematics.AgencyQuery) ([]telematics.Station, error)
}

// FleetEditor changes the record of agencies, vehicles and stations by the rules of fleet files.
type FleetEditor interface {
	// RentalTerms returns the tariffs of an agency by category, and its currency and rental rules;
	// or a *telematics.Error with AgencyNotFound.
	RentalTerms(context.Context, telematics.AgencyID) ([]rental.Plan, rental.Terms, error)
	// Rate returns what a vehicle costs, nil where it is not for rent, and in which currency; or a
	// *telematics.Error with VehicleNotFound.
	Rate(context.Context, telematics.VehicleID) (*rental.Rate, rental.Currency, error)
	// Edit carries out an edit, with its audit log entry, or changes nothing. Its error is a
	// *telematics.Error, or one or several *rental.FieldError. The caller checks what the actor may
	// change, except that the actor sees the vehicle, station or agency.
	Edit(context.Context, telematics.FleetEdit) (telematics.FleetEdited, error)
}

// Telemetry reads the samples of vehicles' reports.
type Telemetry interface {
	// TelemetryDays returns for how many days samples are kept; 0: there are none.
	TelemetryDays() int
	// Telemetry returns the buckets that have samples, the oldest first.
	Telemetry(context.Context, samples.Query) ([]samples.Bucket, error)
}

// Places returns the addresses of positions.
type Places interface {
	// Address returns the address of a position of an agency's vehicle, or "". It does not block:
	// that of a place where a vehicle stands is requested, for later reads.
	Address(agency telematics.AgencyID, p telematics.Position, stands bool) string
}

// Units reads units and their health.
type Units interface {
	// ListUnits returns units of vehicles by descending id of the vehicle, which is the position of
	// a page.
	ListUnits(context.Context, telematics.UnitQuery) ([]telematics.ListedUnit, error)
	// UnknownUnits returns units without a vehicle by descending No, which is the position of a
	// page.
	UnknownUnits(context.Context, telematics.Page) ([]telematics.UnknownUnit, error)
	// KeyHolders counts units of vehicles by whether they hold one of the fleet's public keys.
	KeyHolders(ctx context.Context, key string) (telematics.KeyHolders, error)
}

// Watches makes units report often while their vehicles are watched. Its methods do not block.
type Watches interface {
	// Begin watches a vehicle's unit until end is called.
	Begin(telematics.Vehicle) (end func())
	// Briefly watches a vehicle's unit for a minute.
	Briefly(telematics.Vehicle)
}

// Bookings stores bookings and their charges. A booking that is missing, or that the actor may not
// see, is a *telematics.Error with rental.BookingNotFound.
type Bookings interface {
	// BookingDetails returns a booking with its charges, client, vehicle and stations.
	BookingDetails(context.Context, rental.BookingID) (rental.BookingDetails, error)
	// FindBookings returns bookings by descending id, which is the position of a page.
	FindBookings(context.Context, rental.BookingQuery) ([]rental.BookingDetails, error)
	// Utilisation returns for how long each vehicle of an agency (zero: of all) that is in service
	// was rented within a time.
	Utilisation(_ context.Context, _ telematics.AgencyID, from, to time.Time) ([]rental.Use, error)
	// FindFree returns the bookings for a time that staff can make, one of each vehicle of an
	// agency (zero: of all), with their prices.
	FindFree(_ context.Context, _ telematics.AgencyID, _ rental.Span, now time.Time) ([]rental.Booking, error)
	// FindCharges returns charges by descending id, which is the position of a page.
	FindCharges(context.Context, rental.ChargeQuery) ([]rental.BookedCharge, error)
	// FindClients returns clients of an agency (zero: of all) whose subject has a text in it, by
	// their subjects; at most limit.
	FindClients(_ context.Context, _ telematics.AgencyID, text string, limit int) ([]rental.Client, error)
	// ClientMethods returns the payment methods of a client of an agency, newest first; a client
	// that is not on record has none.
	ClientMethods(_ context.Context, _ telematics.AgencyID, client string) ([]rental.Method, error)
	// OpenBooking creates a booking. It returns true if an earlier request with the same
	// idempotency key has created it. It fails as rental.Draft.Book does, and with
	// rental.VehicleNotAvailable where the vehicle has another booking in that time.
	OpenBooking(context.Context, rental.Draft, rental.Request) (rental.BookingDetails, bool, error)
	// Amend calls the decision with the locked booking, stores its change, and returns the changed
	// booking. It returns true if an earlier request with the same idempotency key did so. It
	// fails with the errors of the decision.
	Amend(context.Context, rental.Request, rental.Decision) (rental.BookingDetails, bool, error)
}

// Offers finds what clients can book. Its errors about a field are *rental.FieldError.
type Offers interface {
	// FindOffers returns offers by their distance, then id: their rental.OfferMark is the position
	// of a page. It may return fewer than wanted, and the mark from which to go on.
	FindOffers(context.Context, rental.OfferQuery) ([]rental.Offer, rental.OfferMark, error)
	// FreeTimes returns when a vehicle of an agency is free within a time, or a *telematics.Error
	// with VehicleNotFound.
	FreeTimes(_ context.Context, _ telematics.AgencyID, _ telematics.VehicleID, within rental.Span, now time.Time) ([]rental.Span, error)
	// Quote stores and returns the price of a vehicle for a time.
	Quote(context.Context, rental.QuoteRequest) (rental.Quote, error)
}

// Rentals starts, pauses, resumes and ends rentals.
type Rentals interface {
	// Open begins a transition, which goes on in the background. It returns true if an earlier
	// request with the same idempotency key has begun or joined it. It fails with a
	// *telematics.Error, a *rental.FieldError, or a *rental.ReturnRefusal.
	Open(context.Context, rental.TransitionRequest) (rental.Transition, bool, error)
	// Await waits until a transition has ended, for at most a time, and returns it as it is then.
	Await(context.Context, rental.TransitionID, time.Duration) (rental.Transition, error)
	// Cancel gives up a start, and returns it. It returns true if an earlier request with the same
	// idempotency key did so. A start that has failed is returned as it is.
	Cancel(context.Context, rental.Request, rental.TransitionID) (rental.Transition, bool, error)
	// Transition returns a transition, or a *telematics.Error with rental.TransitionNotFound.
	Transition(context.Context, rental.TransitionID) (rental.Transition, error)
	// OfBooking returns the transitions of a booking, the newest first.
	OfBooking(context.Context, rental.BookingID) ([]rental.Transition, error)
}

// Wallet stores the payment methods of clients.
type Wallet interface {
	// List returns the client's payment methods, newest first.
	List(context.Context, telematics.Actor) ([]rental.Method, error)
	// Add attaches a card to the client.
	Add(context.Context, rental.NewCard) (rental.Added, error)
	// Remove removes a payment method.
	Remove(context.Context, rental.MethodRequest) error
	// SetDefault makes a payment method the default. It returns true if an earlier request with the
	// same idempotency key did so.
	SetDefault(context.Context, rental.MethodRequest) (rental.Method, bool, error)
}

// Payments reads payments from the payment processor.
type Payments interface {
	// Intent returns the current state of a payment.
	Intent(ctx context.Context, intent string) (rental.Intent, error)
}

// AgencyKeyRegistry changes the keys with which agencies' apps sign requests. Every instance
// applies a change within Config.KeysWithin.
type AgencyKeyRegistry interface {
	// List returns the keys of all agencies, without their secrets.
	List(context.Context) ([]rental.AgencyKey, error)
	// Add creates a key, and returns it with its secret. It returns false if there is no such
	// agency.
	Add(ctx context.Context, agency telematics.AgencyID, by telematics.Author) (rental.AgencyKey, bool, error)
	// Retire sets the time when a key ends. It returns false if the agency has no such key, or the
	// key is revoked.
	Retire(
		ctx context.Context, agency telematics.AgencyID, id string, until time.Time, by telematics.Author,
	) (rental.AgencyKey, bool, error)
	// Revoke ends a key immediately, for ever. It returns false if the agency has no such key.
	Revoke(ctx context.Context, agency telematics.AgencyID, id string, by telematics.Author) (rental.AgencyKey, bool, error)
}

// AreaRegistry changes the areas of agencies.
type AreaRegistry interface {
	// List returns the areas of an agency by name, or, with a name, that one; or a
	// *telematics.Error with AgencyNotFound.
	List(ctx context.Context, agency telematics.AgencyID, name string) ([]areas.Placed, error)
	// Put stores a change, which every instance applies within Config.AreasWithin. It returns the
	// area as it is now, and whether it is new. Its error is a *telematics.Error for a change that
	// the record forbids.
	Put(ctx context.Context, change areas.Change) (now areas.Placed, added bool, err error)
}

// Alerts stores alerts, and how agencies want their rules.
type Alerts interface {
	// Find returns alerts by descending No, which is the position of a page.
	Find(context.Context, alerts.Query) ([]alerts.Alert, error)
	// Acknowledge notes that a member of staff has seen an alert of an agency, or of any for zero,
	// with its audit log entry, and returns the alert. A repetition changes nothing. It fails with
	// a *telematics.Error where there is no such alert.
	Acknowledge(_ context.Context, id uuid.UUID, _ telematics.AgencyID, note string, by telematics.Author) (alerts.Alert, error)
	// Settings returns the settings of an agency for all rules, or a *telematics.Error with
	// AgencyNotFound.
	Settings(context.Context, telematics.AgencyID) ([]alerts.Setting, error)
	// SetSettings replaces the settings of an agency, which are valid, with its audit log entry. It
	// fails with a *telematics.Error with AgencyNotFound.
	SetSettings(context.Context, telematics.AgencyID, []alerts.Setting, telematics.Author) error
}

// Pages serves pages and the files that they load.
type Pages interface {
	http.Handler
	// Has reports whether a path is that of a page or a file.
	Has(path string) bool
}

// Webhooks receives notices of the payment processor.
type Webhooks interface {
	// Read returns the notice in a signed request, or an error if the signature is not the
	// processor's.
	Read(header http.Header, body []byte) (rental.Notice, error)
	// Keep stores a notice, once.
	Keep(context.Context, rental.Notice) error
}
