package rental

import (
	"fmt"
	"time"

	"motorpool/telematics"
)

// BookingID identifies a booking; zero: none.
type BookingID int64

// BookingState is where a booking is in its life: upcoming → active → completed, or upcoming →
// cancelled.
type BookingState string

const (
	Upcoming  BookingState = "upcoming"  // the vehicle is reserved
	Active    BookingState = "active"    // the vehicle is in the client's hands
	Completed BookingState = "completed" // the vehicle is back
	Cancelled BookingState = "cancelled" // given up before it began
)

// BookingStates lists every state.
var BookingStates = []BookingState{Upcoming, Active, Completed, Cancelled}

// IsLive reports whether the booking claims its vehicle.
func (s BookingState) IsLive() bool { return s == Upcoming || s == Active }

// MaxExtensions is how many times a booking may be extended.
const MaxExtensions = 3

// MaxLength is how long a booking may be, extensions included.
const MaxLength = 366 * 24 * time.Hour

// Booking is one client's use of one vehicle for a time.
type Booking struct {
	ID          BookingID
	Reference   string // BK-2026-00001
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
	Method      MethodID // that was named for it; zero: the default at the moment of a charge
	Extensions  int
	Created     time.Time
}

// Reference is the name of a booking between people: that of the nth one that was made in a year,
// counted from 1.
func Reference(year int, n int64) string { return fmt.Sprintf("BK-%04d-%05d", year, n) }

// BookingQuery selects bookings, newest (highest id) first. Zero fields select everything.
type BookingQuery struct {
	Agency    telematics.AgencyID
	Reference string
	Client    string // subject
	State     BookingState
	Vehicle   telematics.VehicleID
	telematics.Page
}

// BookingDetails is everything that is known of a booking: enough to show it, and to decide about
// it.
type BookingDetails struct {
	Booking
	AgencyCode string
	Terms      Terms
	Subject    string             // of its client's token
	Vehicle    telematics.Vehicle // its record
	Pickup     telematics.Station
	Dropoff    telematics.Station
	// The card that pays: of the last charge that was tried, else the booking's, else the default;
	// nil: there is none.
	Card    *Card
	Charges []Charge // by creation
	// When the vehicle's next booking begins, after this one's start; zero: there is none.
	Next    time.Time
	InOther bool // the vehicle is in the hands of another booking now
	Before  bool // another booking claims the vehicle between now and the start of this one
}

// VisibleTo reports whether an actor may know of the booking: its client, and administrators of its
// agency.
func (d BookingDetails) VisibleTo(a telematics.Actor) bool {
	if a.Role == telematics.Client {
		return a.Agency == d.Agency && a.Subject == d.Subject
	}
	return a.Role != "" && a.Sees(d.Agency)
}

// Change is what a decision makes of a booking. The record writes all of it, or nothing.
type Change struct {
	Booking Booking        // as it is from now on
	Charges []Charge       // new ones; the record numbers them, and gives them ids
	Amended []Charge       // charges that exist, with another goal, due immediately
	Details map[string]any // for the history; nil: nothing
	Note    string         // a person's words, for the history
}
