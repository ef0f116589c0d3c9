package alerts

import (
	"fmt"
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
	Holder  *Holder // who has the vehicle now; nil: no booking of it by the agency is active

	// Facts are what the rule saw, by name: {"volts": 11.7}, {"kind": "towing"}.
	Facts map[string]any

	Since   time.Time // the condition has held since then
	Opened  time.Time
	Cleared time.Time // zero: open
	Seen    *Acknowledgement
}

// Holder is who has a vehicle: its active booking.
type Holder struct {
	Booking   int64
	Reference string
	Client    string
}

// Acknowledgement is that a member of staff has seen an alert.
type Acknowledgement struct {
	By   string
	At   time.Time
	Note string
}

// Names of activities in the audit log.
const (
	Acknowledge = "alert.acknowledge"
	RulesChange = "alert_rules.change"
)

// NotFound is the code of NoSuchAlert.
const NotFound telematics.Code = "alert_not_found"

// NoSuchAlert is the error for an alert that does not exist, or that the caller may not see.
func NoSuchAlert(id uuid.UUID) *telematics.Error {
	return &telematics.Error{Code: NotFound, Message: fmt.Sprintf("There is no alert %s.", id)}
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
	Agency   telematics.AgencyID // zero: of any, and of none
	Vehicle  telematics.VehicleID
	ID       uuid.UUID
	// Persons includes alerts about persons, which only administrators see.
	Persons bool
}
