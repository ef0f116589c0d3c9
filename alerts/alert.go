package alerts

import (
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// Alert is that a rule has held for its time. It is open until Cleared.
type Alert struct {
	ID       uuid.UUID
	No       int64 // ascending in the order in which they opened: the position of a page
	Rule     Rule
	Severity Severity // the highest that it has reached

	Agency  telematics.AgencyID  // zero: of no agency alone (MassAccess)
	Vehicle telematics.VehicleID // zero: none
	Plate   string
	Person  string // MassAccess: who
	Booking int64  // zero: none; the booking that has the vehicle, or that the rule is about
	Command uuid.UUID

	// Facts are what the rule saw, by name: {"volts": 11.7}, {"kind": "tow"}.
	Facts map[string]any

	Since   time.Time // the condition has held since then
	Opened  time.Time
	Cleared time.Time // zero: open
	Seen    *Acknowledgement
}

// Acknowledgement is that a member of staff has seen an alert.
type Acknowledgement struct {
	By   string
	At   time.Time
	Note string
}

// State filters alerts.
type State string

const (
	Open    State = "open"
	Cleared State = "cleared"
)

// Query selects alerts, the newest first. An empty field selects all.
type Query struct {
	telematics.Page
	State    State
	Severity Severity
	Rule     Rule
	Agency   telematics.AgencyID
	Vehicle  telematics.VehicleID
	ID       uuid.UUID
	// Everyones includes alerts of no agency, which only administrators of all agencies see.
	Everyones bool
}
