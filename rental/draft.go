package rental

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// Draft is a requested booking.
type Draft struct {
	// The client requests it itself: the agency's rules for that apply. Otherwise an administrator.
	Self    bool
	Agency  telematics.AgencyID
	Client  string // subject of its token
	Vehicle telematics.VehicleID
	Start   time.Time
	End     time.Time
	Pickup  telematics.StationID
	Dropoff telematics.StationID
	Method  MethodID // zero: the default
	// QuoteID names a quote of the client, by whose price the booking is made. Vehicle and times
	// that are zero are those of the quote. Nil: none.
	QuoteID uuid.UUID
}

// Facts is the stored data that decides about a draft.
type Facts struct {
	Terms   Terms
	Plan    *Plan               // the tariff of the vehicle's category; nil: the vehicle's rate
	Rate    *Rate               // of the vehicle; nil: without a plan it is not for rent
	Vehicle telematics.Vehicle  // zero: there is none with the id
	Pickup  *telematics.Station // nil: there is none with the id
	Dropoff *telematics.Station // nil: there is none with the id
	Client  ClientID
	Methods []MethodID // of the client
	// NotOpened reports that no client may open the vehicle, by a rule of its agency.
	NotOpened bool
	Lacking   bool   // the vehicle, a command that a rental Needs
	Taken     bool   // by another booking in that time
	Open      int    // upcoming and active bookings of the client
	GivenUp   int    // bookings of the vehicle that it made in GivenUpFor, and gave up
	Owed      int    // payments of the client that were refused, or wait for the card's owner
	Quote     *Quote // of the client, that the draft names; nil: there is none
}

// MaxGivenUp is how many bookings of one vehicle a client can make within GivenUpFor that are
// cancelled, by itself or since it has not come: else it keeps the vehicle from others for nothing.
// Half: who mistook a button twice has no vehicle. Double: one vehicle is kept for hours each day.
const (
	MaxGivenUp = 5
	GivenUpFor = 24 * time.Hour
)

// MaxLate is how far in the past the start of a new booking may be: filling in a form takes time.
// A booking that a client makes for a start that is not farther ahead than that is immediate: it is
// kept for Rules.HoldFor, and another one for Rules.NoShow after its start.
const MaxLate = 5 * time.Minute

func (b Booking) isImmediate() bool { return !b.Start.After(b.Created.Add(MaxLate)) }

// Book returns the requested booking at the current price, or that of its quote. The store assigns
// an id and a reference. Book fails with
//
//   - a *FieldError for a time or a station that is not valid,
//   - telematics.VehicleNotFound for a vehicle that is unknown, or another agency's: the message is
//     the same,
//   - VehicleNotAvailable for a vehicle that is withdrawn, has neither a tariff nor a rate, that its
//     client could not open or, where it books itself, not return, or that is taken,
//   - MethodRequired for a client without a card, and MethodInvalid for a card that is not the
//     client's,
//   - BookingLimit and UnpaidLimit for a client that may not make another one itself.
func (d Draft) Book(now time.Time, f Facts) (Booking, error) {
	d.Start, d.End = truncateToMillis(d.Start), truncateToMillis(d.End)
	if err := d.check(now, f); err != nil {
		return Booking{}, err
	}
	b := Booking{
		State: Upcoming, Agency: d.Agency, Client: f.Client, VehicleID: d.Vehicle, PickupID: d.Pickup, DropoffID: d.Dropoff,
		Start: d.Start, End: d.End, Method: d.Method, Created: now,
	}
	var err error
	if f.Quote != nil {
		b.Price, b.Plan = f.Quote.Booking.Price, f.Quote.Booking.Plan
	} else if b, err = f.priced(b); err != nil {
		return Booking{}, errTooExpensive
	}
	since, kept := b.Start, f.Terms.Rules.NoShow
	if b.isImmediate() {
		since, kept = now, f.Terms.Rules.HoldFor
	}
	if d.Self && kept > 0 {
		b.ReservedUntil = truncateToMillis(since.Add(kept.Duration()))
	}
	return b, nil
}

// priced returns the booking with its price and plan. It fails if it costs more than can be
// charged.
func (f Facts) priced(b Booking) (Booking, error) {
	b.Price, b.Plan = Price{Tariff: Tariff{Currency: f.Terms.Currency, Tax: f.Terms.Tax}}, f.Plan
	if f.Plan == nil { // the rates of a plan are its own
		b.Price.HourlyRate, b.Price.Deposit = f.Rate.Hourly, f.Rate.Deposit
	}
	var err error
	b.Price, err = b.over(b.End)
	return b, err
}

var errTooExpensive = newFieldError("end_date", "makes the booking cost more than can be charged")

func (d Draft) check(now time.Time, f Facts) error {
	ofAgency := func(s *telematics.Station) bool { return s != nil && s.AgencyID == d.Agency }
	if f.Quote != nil {
		now = f.Quote.Created // the start was checked then
	}
	if err := d.checkTimes(now, f); err != nil {
		return err
	}
	if err := d.CheckVehicle(f); err != nil { // first: a client's stations default to the vehicle's
		return err
	}
	if !ofAgency(f.Pickup) {
		return newFieldError("pickup_station_id", "must be a station of the agency")
	}
	if !ofAgency(f.Dropoff) {
		return newFieldError("dropoff_station_id", "must be a station of the agency")
	}
	switch {
	case len(f.Methods) == 0:
		return NoMethod()
	case d.Method != 0 && !slices.Contains(f.Methods, d.Method):
		return NotTheirMethod(d.Method)
	case d.Self:
		return d.checkRules(f)
	}
	return nil
}

func (d Draft) checkTimes(now time.Time, f Facts) error {
	var shortest time.Duration
	if d.Self {
		shortest = f.Terms.Rules.Shortest()
	}
	return Span{d.Start, d.End}.Check(now, shortest, "start_date", "end_date")
}

// CheckVehicle fails as Book does where the vehicle cannot be booked in the time of the draft.
func (d Draft) CheckVehicle(f Facts) error {
	switch {
	case f.Vehicle.ID != d.Vehicle || f.Vehicle.AgencyID != d.Agency:
		return telematics.NoSuchVehicle(d.Vehicle)
	case f.Vehicle.Withdrawn():
		return NotAvailable(fmt.Sprintf("The vehicle is out of service (%s).", f.Vehicle.Status))
	case f.Rate == nil && f.Plan == nil:
		return NotAvailable("The vehicle has no rate; it is not for rent.")
	case f.NotOpened && d.Self:
		return NotAvailable("Clients cannot open the vehicle; choose another one.")
	case f.NotOpened:
		return NotAvailable("Clients cannot open the vehicle: its unit checks no expiry, and the agency does not allow that. " +
			"Set best_effort_unlock of the agency to allow if you accept late openings, or choose another vehicle.")
	case f.Lacking && d.Self: // staff begin and end a rental without the vehicle
		return withoutCommands()
	case f.Taken:
		return Taken()
	}
	return nil
}

func withoutCommands() *telematics.Error {
	return NotAvailable("Clients can neither open nor return the vehicle without staff; choose another one.")
}

// checkRules checks a booking that a client requests itself by the agency's rules.
func (d Draft) checkRules(f Facts) error {
	switch r := f.Terms.Rules; {
	case r.MaxOpenBookings > 0 && f.Open >= r.MaxOpenBookings:
		return &telematics.Error{Code: BookingLimit,
			Message: fmt.Sprintf("There are %d upcoming and active bookings already, the maximum; cancel or end one first.", f.Open)}
	case r.MaxOpenBookings > 0 && f.GivenUp >= MaxGivenUp:
		return &telematics.Error{Code: BookingLimit, Message: fmt.Sprintf("%d bookings of the vehicle within %d hours were cancelled, "+
			"the maximum; choose another vehicle, or try again tomorrow.", f.GivenUp, GivenUpFor/time.Hour)}
	case r.MaxUnpaid > 0 && f.Owed >= r.MaxUnpaid:
		return &telematics.Error{Code: UnpaidLimit,
			Message: "A payment of another booking is owed, or waits for your confirmation. " +
				"Confirm it, or set another default payment method, then book."}
	}
	return nil
}

// truncateToMillis returns a time in UTC with the precision of Postgres and the interface, so that
// the price is that of the stored time.
func truncateToMillis(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// FieldError is an error of one field of a request.
type FieldError = telematics.FieldError

func newFieldError(field, message string) *FieldError {
	return &FieldError{Field: field, Message: message}
}
