package rental

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// BookingID identifies a booking; zero: none.
type BookingID int64

// BookingState is the state of a booking: upcoming → active → completed, or upcoming → cancelled.
type BookingState string

const (
	Upcoming  BookingState = "upcoming"  // the vehicle is reserved
	Active    BookingState = "active"    // the client has the vehicle
	Completed BookingState = "completed" // the client has returned the vehicle
	Cancelled BookingState = "cancelled" // before it began, or since it was not started in time
)

// BookingStates lists every state.
var BookingStates = []BookingState{Upcoming, Active, Completed, Cancelled}

// IsLive reports whether the booking occupies its vehicle: it is upcoming or active.
func (s BookingState) IsLive() bool { return s == Upcoming || s == Active }

// MaxExtensions is how many times a booking may be extended.
const MaxExtensions = 3

// MaxLength is how long a booking may be, extensions included.
const MaxLength = 366 * 24 * time.Hour

// Booking reserves one vehicle for one client and a time.
type Booking struct {
	ID          BookingID
	Reference   string    // BK-2026-00001
	Identity    uuid.UUID // derived from its cause; never shown
	State       BookingState
	Agency      telematics.AgencyID
	Client      ClientID
	VehicleID   telematics.VehicleID
	PickupID    telematics.StationID
	DropoffID   telematics.StationID
	Start, End  time.Time // as agreed
	ActualStart time.Time // zero: not begun
	ActualEnd   time.Time // zero: not ended
	Price       Price
	Plan        *Plan    // the tariff by which it was made; nil: the hourly rate of its price
	Method      MethodID // named for it; zero: the default at the time of a charge
	Extensions  int
	Created     time.Time

	PausedSince   time.Time     // zero: it is not paused
	PausedFor     time.Duration // by earlier pauses
	StartMetres   int64         // by the odometer; 0: not known
	EndMetres     int64
	ReservedUntil time.Time // see KeptUntil; zero: its end
	// When others returned the vehicle, or their start was undone, between the agreed start and the
	// actual one; zero: before.
	FreeSince time.Time
}

// KeptUntil returns when a booking lapses unless it is started; zero: at its end, as each does.
func KeptUntil(b Booking) time.Time { return earlier(b.ReservedUntil, b.End) }

// Reference returns the reference by which people name a booking: that of the nth booking made in a
// year, counted from 1.
func Reference(year int, n int64) string { return fmt.Sprintf("BK-%04d-%05d", year, n) }

// BookingQuery selects bookings, newest (highest id) first. Zero fields select everything.
type BookingQuery struct {
	Agency    telematics.AgencyID
	Reference string
	Client    string // subject
	States    []BookingState
	Vehicle   telematics.VehicleID
	// Bookings whose time overlaps it: the actual time, else the agreed one; an overdue rental runs
	// until now. Zero: open.
	From, To time.Time
	telematics.Page
}

// Use is for how long a vehicle was rented within a time: from the start of each rental to its end,
// or till now, with its pauses.
type Use struct {
	Vehicle telematics.VehicleID
	Rented  time.Duration
}

// BookingDetails is a booking with all data that is needed to show it and to decide about it.
type BookingDetails struct {
	Booking
	AgencyCode string
	Terms      Terms
	Subject    string // of its client's token
	Vehicle    telematics.Vehicle
	Pickup     telematics.Station
	Dropoff    telematics.Station
	// When the vehicle got its unit; zero: before it was rented, or it has none.
	UnitSince time.Time
	// The card that pays: of the last attempted charge that was not taken back, else the booking's,
	// else the default; nil: there is none.
	Card    *Card
	Charges []Charge // by creation
	// The newest transition; nil: there was none.
	Transition *Transition
	// When the vehicle's next booking begins, after this one's start; zero: there is none.
	Next    time.Time
	InOther bool // the vehicle is in use by another booking now, or is being opened for it
	Before  bool // another booking occupies the vehicle between now and the start of this one
	// About the vehicle to which the booking is to move, in its time; zero: none was requested. It
	// is Lacking only where the present one is not.
	MoveTo Facts
}

// VisibleTo reports whether an actor may read the booking: its client, or an administrator with
// access to its agency.
func (d BookingDetails) VisibleTo(a telematics.Actor) bool {
	if a.Role == telematics.Client {
		return a.Agency == d.Agency && a.Subject == d.Subject
	}
	return a.Role != "" && a.Sees(d.Agency)
}

// Change is the result of a decision about a booking. The store writes it in one transaction.
type Change struct {
	Booking Booking        // the new version
	Charges []Charge       // new ones; the store assigns numbers and ids
	Amended []Charge       // existing charges with a new goal, due immediately
	Details map[string]any // for the audit log; nil: none
	Note    string         // free text from a person, for the audit log
}
