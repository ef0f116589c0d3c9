package telematics

import (
	"slices"
	"time"
)

// VehicleID identifies a vehicle on the platform. It never appears on the wire.
type VehicleID int64

// VehicleStatus is the platform's view of a vehicle. Loss of contact is not one:
// that is connectivity.
type VehicleStatus string

const (
	Available   VehicleStatus = "available"   // may be booked
	Booked      VehicleStatus = "booked"      // reserved for an upcoming booking
	InUse       VehicleStatus = "in_use"      // in a client's hands
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

// Vehicle is the record of a vehicle.
type Vehicle struct {
	ID       VehicleID
	AgencyID AgencyID
	Unit     Unit     // empty: none is built in
	Protocol Protocol // that the unit speaks; empty: DefaultProtocol
	// How the unit is built in; nil: as its protocol expects, or has it.
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
	// Actions are those that the record grants. What the unit itself declares
	// ([PRE-3]) replaces them: see Twin.Commands.
	Actions []Action
}

// Twin is a vehicle's record with what is known of the vehicle now.
type Twin struct {
	Vehicle
	Contact  Contact
	Snapshot Snapshot
	// Its agency lets commands that open it go to a unit that checks no expiry and may start them
	// late.
	BestEffortUnlock bool
	// When its unit came to it, or it to its agency, whichever was later; zero: neither was
	// elsewhere before. Reports of the unit from before are of another one.
	MovedAt time.Time
	// Version of what the record says that an order depends on: another one, where anything of that
	// has changed. Zero: not read.
	Version int64
}

// ForOrders returns what an order depends on, which Version covers, and the last sign of life.
func (t *Twin) ForOrders() Twin {
	return Twin{
		Vehicle: Vehicle{ID: t.ID, AgencyID: t.AgencyID, Unit: t.Unit, Protocol: t.Protocol, Installation: t.Installation, Powertrain: t.Powertrain, Actions: t.Actions},
		Contact: Contact{
			Status: t.Contact.Status, Session: t.Contact.Session, ChangedAt: t.Contact.ChangedAt, LastSeen: t.Contact.LastSeen,
			Actions: t.Contact.Actions,
		},
		MovedAt: t.MovedAt, Version: t.Version,
	}
}

// Commands returns the actions of the vehicle: what its unit declared, else
// what its record grants [PRE-3].
func (t Twin) Commands() []Action {
	if t.Contact.Actions != nil {
		return t.Contact.Actions
	}
	return t.Actions // the record's
}

// Supports reports whether the vehicle has the action a. Every unit of
// protocol v1 can report its state.
func (t Twin) Supports(a Action) bool {
	return a == ReportState || slices.Contains(t.Commands(), a)
}

// Withdrawn reports whether the vehicle is kept from clients.
func (v Vehicle) Withdrawn() bool { return v.Status == Maintenance || v.Status == Inactive }

// Page asks for a part of a list, newest first.
type Page struct {
	Limit  int   // at most this many
	Before int64 // only what is older than this position; zero: from the newest
}

// AgencyQuery selects what belongs to an agency, newest (highest id) first; zero: to any.
type AgencyQuery struct {
	Agency AgencyID
	Page
}

// VehicleQuery selects vehicles. Zero fields select everything.
type VehicleQuery struct {
	Agency       AgencyID // that owns them
	Status       VehicleStatus
	Connectivity PresenceStatus
	Text         string // part of plate, brand, model or unit, in any case
	Page
}
