package telematics

import (
	"github.com/google/uuid"
)

// Role is what an actor may do.
type Role string

const (
	Admin  Role = "admin"
	Client Role = "client"
	System Role = "system" // Motorpool itself, when it settles a command without a waiter
)

// Actor is who asks for something.
type Actor struct {
	Subject string
	Role    Role
	Agency  AgencyID // zero: not bound to one
}

// Sees reports whether the actor may know of what belongs to an agency.
func (a Actor) Sees(owner AgencyID) bool { return a.Agency == 0 || a.Agency == owner }

// AgencyID identifies an agency, the tenant that owns vehicles. Zero means none:
// an administrator without one sees every agency.
type AgencyID int64

// ListedAgency is an agency with how much it owns.
type ListedAgency struct {
	Agency
	Vehicles, Stations int
}

// Agency is a tenant of the platform.
type Agency struct {
	ID   AgencyID
	Code string // short, unique, such as "MUC"
	Name string
	// Commands that open a vehicle go to units that check no expiry, too.
	BestEffortUnlock bool
}

// Author is who changes something that is no vehicle's, as the activity history names it.
type Author struct {
	Actor
	RequestID uuid.UUID // of the request that did; zero: there was none
}

// OperatorAt is an author who works on the record itself, past the service.
func OperatorAt(account string) Author {
	return Author{Actor: Actor{Subject: account, Role: System}}
}
