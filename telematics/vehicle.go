package telematics

import (
	"slices"
	"time"
)

// VehicleID identifies a vehicle on the platform. It never appears on the wire.
type VehicleID int64

// VehicleStatus is the platform's view of a vehicle. Loss of contact is not a status,
// but connectivity.
type VehicleStatus string

const (
	Available   VehicleStatus = "available"   // may be booked
	Booked      VehicleStatus = "booked"      // reserved for an upcoming booking
	InUse       VehicleStatus = "in_use"      // a client is using it
	Maintenance VehicleStatus = "maintenance" // withdrawn for a while
	Inactive    VehicleStatus = "inactive"    // withdrawn permanently
)

// VehicleStatuses lists every status.
var VehicleStatuses = []VehicleStatus{Available, Booked, InUse, Maintenance, Inactive}

// Powertrain decides which energy fields a vehicle can have.
type Powertrain string

const (
	Combustion   Powertrain = "combustion"
	Electric     Powertrain = "electric"
	PlugInHybrid Powertrain = "plug_in_hybrid"
)

// Powertrains lists every powertrain.
var Powertrains = []Powertrain{Combustion, Electric, PlugInHybrid}

// Burns reports whether the vehicle has a fuel tank.
func (p Powertrain) Burns() bool { return p != Electric }

// PlugsIn reports whether the vehicle has a traction battery that is charged from outside.
func (p Powertrain) PlugsIn() bool { return p != Combustion }

// Vehicle is a vehicle as it is stored.
type Vehicle struct {
	ID       VehicleID
	AgencyID AgencyID
	Unit     Unit     // empty: none is built in
	Protocol Protocol // that the unit speaks; empty: DefaultProtocol
	// How the unit is built in; nil: no settings.
	Installation Installation
	Status       VehicleStatus
	Powertrain   Powertrain
	Plate        string
	Brand        string
	Model        string
	Year         int
	Color        string
	Category     string
	Image        string // URL
	Features     []string
	// Zero: it is not in maintenance, or nothing is recorded of that.
	Maintenance MaintenanceDetails
	// Actions are the stored abilities of the vehicle. Those that the unit declares
	// ([PRE-3]) replace them: see Twin.Commands.
	Actions []Action
}

// MaintenanceDetails are why a vehicle is in maintenance, and until when.
type MaintenanceDetails struct {
	Reason string
	Until  time.Time // then it returns to service; zero: a person returns it
	Since  time.Time // zero: not recorded
	By     string    // subject; empty: not recorded
}

// Twin is a vehicle with its current contact and snapshot.
type Twin struct {
	Vehicle
	Contact  Contact
	Snapshot Snapshot
	// Postgres does not have all of the reported state yet: where Redis is lost, later reads may
	// return less.
	Unstored bool
	// Its agency allows commands that open it even if its unit checks no expiry, and so may execute
	// them late.
	BestEffortUnlock bool
	// When its unit was assigned to it, or it to its agency, whichever was later; zero: neither has
	// changed. Older reports of the unit belong to another vehicle or agency.
	MovedAt time.Time
	// When its unit was assigned to it; zero: not recorded. What a unit that has come back reported
	// before is not of this vehicle's state any more.
	UnitMovedAt time.Time
	// Version of the stored fields that an order depends on: it changes with any of them. Zero: not
	// read.
	Version int64
}

// ForOrders returns a copy with only the fields that an order depends on, which Version covers, and
// with the last contact.
func (t *Twin) ForOrders() Twin {
	return Twin{
		Vehicle: Vehicle{
			ID: t.ID, AgencyID: t.AgencyID, Unit: t.Unit, Protocol: t.Protocol, Installation: t.Installation,
			Powertrain: t.Powertrain, Actions: t.Actions,
		},
		Contact: Contact{
			Status: t.Contact.Status, Session: t.Contact.Session, ChangedAt: t.Contact.ChangedAt, LastSeen: t.Contact.LastSeen,
			Actions: t.Contact.Actions,
		},
		MovedAt: t.MovedAt, UnitMovedAt: t.UnitMovedAt, Version: t.Version,
	}
}

// Commands returns the actions of the vehicle: those that its unit declared, else
// those stored for the vehicle [PRE-3].
func (t Twin) Commands() []Action {
	if t.Contact.Actions != nil {
		return t.Contact.Actions
	}
	return t.Actions // those stored
}

// Supports reports whether the vehicle has the action a. ReportState always counts as
// supported; whether the protocol has a message for it is up to Dialects.Supports.
func (t Twin) Supports(a Action) bool {
	return a == ReportState || slices.Contains(t.Commands(), a)
}

// Withdrawn reports whether the vehicle is withdrawn from rental: Maintenance or Inactive.
func (v Vehicle) Withdrawn() bool { return v.Status == Maintenance || v.Status == Inactive }

// Page selects a part of a list, newest first.
type Page struct {
	Limit  int   // at most this many
	Before int64 // only entries older than this position; zero: from the newest
}

// AgencyQuery selects entries of an agency, newest (highest id) first; zero: of all agencies.
type AgencyQuery struct {
	Agency AgencyID
	Page
}

// VehicleQuery selects vehicles. Zero fields select everything.
type VehicleQuery struct {
	Agency       AgencyID    // that owns them
	IDs          []VehicleID // only these; nil: all
	Status       VehicleStatus
	Connectivity PresenceStatus
	Text         string // part of plate, brand, model or unit; case-insensitive
	Page
}

// FleetEdit adds or changes a vehicle or a station, or changes tariffs or rental rules of an
// agency, by the rules of a fleet file.
type FleetEdit struct {
	Vehicle VehicleID // one of these three
	Station StationID
	Agency  AgencyID // the fields are its tariffs or rental_rules
	New     bool     // it is not on record yet; otherwise it is
	Fields  []byte   // JSON: the object of a fleet file, without its id
	Entry   Activity // for the audit log, without its agency and what has changed
}

// FleetEdited is what a change of the fleet's record has changed.
type FleetEdited struct {
	Changes []string // in words, such as "vehicle 42: unit none → 358240051111110"
	Station Station  // as it is now; zero: the edit is about a vehicle
	// Those in the time of the vehicle's maintenance; nil: it is not in maintenance.
	Bookings *int
}
