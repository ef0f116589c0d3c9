package telematics

import "time"

// EventKind is what an event tells of.
type EventKind string

const (
	CommandEvent  EventKind = "command"  // a command was accepted, or its state has changed
	StatusEvent   EventKind = "status"   // the vehicle reports something else than before
	PresenceEvent EventKind = "presence" // the vehicle's connectivity has changed
	// ResetEvent says that events may be missing before this one: whoever follows must
	// look anew. It is of no vehicle.
	ResetEvent EventKind = "reset"
)

// EventKinds lists those that tell of a vehicle.
var EventKinds = []EventKind{CommandEvent, StatusEvent, PresenceEvent}

// Event tells at once what whoever looks would find.
type Event struct {
	ID      string // its place among all events; given to it when it is told
	Kind    EventKind
	Vehicle VehicleID
	Agency  AgencyID
	At      time.Time // of a status: the vehicle's time; else ours
	Command *Command  // of a command event
	Change  *Change   // of a status: its Fields; of a presence: its Presence and LastSeen
}

// Event returns the event of a command that has come into its state. Nobody may change the command after that.
func (c *Command) Event(at time.Time) Event {
	return Event{Kind: CommandEvent, Vehicle: c.Vehicle, Agency: c.Agency, At: at, Command: c}
}

// Events returns what a change tells: of what the vehicle's powertrain can have, whatever
// its unit sent.
func (c Change) Events(now time.Time) []Event {
	var events []Event
	if c.Presence != "" {
		presence := c
		presence.Fields = nil
		events = append(events, Event{Kind: PresenceEvent, Vehicle: c.Vehicle, Agency: c.Agency, At: now, Change: &presence})
	}
	if fields := c.Fields.For(c.Powertrain); fields.IsNews() {
		status := c
		status.Fields, status.Presence = fields, ""
		events = append(events, Event{Kind: StatusEvent, Vehicle: c.Vehicle, Agency: c.Agency, At: fields.latest(), Change: &status})
	}
	return events
}

// latest returns the newest vehicle time.
func (s Snapshot) latest() time.Time {
	var latest time.Time
	for _, reading := range s {
		if reading.At.After(latest) {
			latest = reading.At
		}
	}
	return latest
}
