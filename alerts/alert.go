package alerts

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// Alert is that a rule has held for its time. It is open until Cleared. Its JSON is that of events.
type Alert struct {
	ID uuid.UUID `json:"id"`
	// Ascending in the order in which they opened: the position of a page.
	No       int64    `json:"-"`
	Rule     Rule     `json:"rule"`
	Severity Severity `json:"severity"` // the highest that it has reached

	Agency  telematics.AgencyID  `json:"-"` // zero: of no agency alone (MassAccess)
	Vehicle telematics.VehicleID `json:"-"` // zero: none
	Plate   string               `json:"plate,omitzero"`
	Person  string               `json:"person,omitzero"` // MassAccess: who
	// The booking that has the vehicle, or that the rule is about; zero: none.
	Booking int64     `json:"booking,omitzero"`
	Command uuid.UUID `json:"command,omitzero"`
	// Who has the vehicle now; nil: no booking of it by the agency is active.
	Holder *Holder `json:"-"`

	// Facts are what the rule saw, by name: {"volts": 11.7}, {"kind": "towing"}.
	Facts map[string]any `json:"facts,omitempty"`

	Since   time.Time        `json:"since"` // the condition has held since then
	Opened  time.Time        `json:"opened,omitzero"`
	Cleared time.Time        `json:"cleared,omitzero"` // zero: open
	Seen    *Acknowledgement `json:"seen,omitzero"`
}

// Holder is who has a vehicle: its active booking.
type Holder struct {
	Booking   int64
	Reference string
	Client    string
}

// Acknowledgement is that a member of staff has seen an alert.
type Acknowledgement struct {
	By   string    `json:"by"`
	At   time.Time `json:"at"`
	Note string    `json:"note,omitzero"`
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
