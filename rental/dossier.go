package rental

import (
	"time"

	"motorpool/telematics"
)

// Dossier is everything that is known of a booking: enough to show it, and to decide about it.
type Dossier struct {
	Booking
	AgencyCode string
	Terms      Terms
	Subject    string             // of its client's token
	Vehicle    telematics.Vehicle // its record
	Pickup     telematics.Station
	Dropoff    telematics.Station
	Card       *Card     // that pays: of the last charge that was tried, else the booking's, else the default; nil: there is none
	Charges    []Charge  // by creation
	Next       time.Time // when the vehicle's next booking begins, after this one's start; zero: there is none
	InOther    bool      // the vehicle is in the hands of another booking now
	Before     bool      // another booking claims the vehicle between now and the start of this one
}

// VisibleTo reports whether an actor may know of the booking: its client, and administrators of its agency.
func (d Dossier) VisibleTo(a telematics.Actor) bool {
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
