package telematics

import (
	"github.com/google/uuid"
)

// Role decides what an actor may do.
type Role string

const (
	Admin  Role = "admin"
	Client Role = "client"
	System Role = "system" // Motorpool itself, when it settles a command without a waiter
)

// Actor is the caller of a request, or Motorpool itself.
type Actor struct {
	Subject string
	Role    Role
	Agency  AgencyID // zero: not bound to one
}

// Sees reports whether the actor may see vehicles and commands of an agency.
func (a Actor) Sees(owner AgencyID) bool { return a.Agency == 0 || a.Agency == owner }

// AgencyID identifies an agency, the tenant that owns vehicles. Zero means none:
// an administrator without one sees every agency.
type AgencyID int64

// NoAgency is an id that no agency has: a query for what belongs to it finds nothing.
const NoAgency AgencyID = -1

// ListedAgency is an agency with the numbers of its vehicles and stations.
type ListedAgency struct {
	Agency
	Vehicles, Stations int
}

// Agency is a tenant of the platform.
type Agency struct {
	ID   AgencyID
	Code string // short, unique, such as "MUC"
	Name string
	// Commands that open a vehicle are sent even to units that check no expiry.
	BestEffortUnlock bool
}

// Author is the actor of a change that concerns no vehicle, as the audit log names it.
type Author struct {
	Actor
	RequestID uuid.UUID // of the request that made the change; zero: none
}

// OperatorAt returns the author of changes made directly in the database, with an account's name.
func OperatorAt(account string) Author {
	return Author{Actor: Actor{Subject: account, Role: System}}
}
