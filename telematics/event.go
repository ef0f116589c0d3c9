package telematics

import "time"

// EventKind is what an event tells of.
type EventKind string

const (
	CommandEvent  EventKind = "command"  // a command was accepted, or its state has changed
	StatusEvent   EventKind = "status"   // the vehicle reports something else than before
	PresenceEvent EventKind = "presence" // the vehicle's connectivity has changed
)

// Event tells at once what whoever looks would find.
type Event struct {
	ID      string // its place among all events; given to it when it is told
	Kind    EventKind
	Vehicle VehicleID
	Agency  AgencyID
	At      time.Time // of a status: the vehicle's time; else ours
	Command *Command  // of a command event
	Change  *Change   // of the others
}
