package telematics

import "time"

// EventKind is what an event is about.
type EventKind string

const (
	CommandEvent  EventKind = "command"  // a command was accepted, or its state has changed
	StatusEvent   EventKind = "status"   // the vehicle reports something else than before
	PresenceEvent EventKind = "presence" // the vehicle's connectivity has changed
	// ResetEvent says that events may be missing before this one: subscribers must
	// read again what they show. It is of no vehicle.
	ResetEvent EventKind = "reset"
)

// EventKinds lists those of a vehicle.
var EventKinds = []EventKind{CommandEvent, StatusEvent, PresenceEvent}

// Event is a change that is published to subscribers when it happens; a read returns the same.
type Event struct {
	ID      string // its position in the stream; assigned when it is published
	Kind    EventKind
	Vehicle VehicleID
	Agency  AgencyID
	At      time.Time // of a status: the vehicle's time; else ours
	Command *Command  // of a command event
	Change  *Change   // of a status: its Fields; of a presence: its Presence and LastSeen
}

// Event returns the event of a command that has entered its state. The command must not change after that.
func (c *Command) Event(at time.Time) Event {
	return Event{Kind: CommandEvent, Vehicle: c.Vehicle, Agency: c.Agency, At: at, Command: c}
}

// Events returns the events of a change. Fields that the vehicle's powertrain cannot have
// are left out.
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
