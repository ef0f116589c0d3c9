package telematics

import (
	"maps"
	"reflect"
	"slices"
	"time"
)

// EventKind is what an event is about.
type EventKind string

const (
	CommandEvent  EventKind = "command"  // a command was accepted, or its state has changed
	StatusEvent   EventKind = "status"   // a value that the vehicle reports has changed
	PresenceEvent EventKind = "presence" // the vehicle's connectivity has changed
	AlarmEvent    EventKind = "alarm"    // the vehicle's unit has raised an alarm
	// HaltEvent: a halt was put in force, changed or lifted. It belongs to no vehicle. A halt of
	// all agencies belongs to no agency, and every subscriber gets its event.
	HaltEvent EventKind = "halt"
	// RentalEvent: a start, pause, resumption or end of a rental has begun, has ended, or needs a
	// person.
	RentalEvent EventKind = "rental"
	// BookingEvent: a booking was made or changed, or its state has.
	BookingEvent EventKind = "booking"
	// AlertEvent: an alert has opened, its severity has risen, or it was acknowledged or cleared.
	// One about a person belongs to no vehicle, and perhaps to no agency.
	AlertEvent EventKind = "alert"
	// ResetEvent: events before this one may be missing, so subscribers must reload
	// their state. It belongs to no vehicle.
	ResetEvent EventKind = "reset"
)

// Event is a change that is published to subscribers when it happens.
type Event struct {
	ID      string // its position in the stream; assigned when it is published
	Kind    EventKind
	Vehicle VehicleID
	Agency  AgencyID
	At      time.Time // of a status: the vehicle's time; else Motorpool's
	Command *Command  // of a command event
	Change  *Change   // of a status: its Fields; of a presence: its Presence and LastSeen
	Alarm   *Alarm    // of an alarm
	Halt    *HaltChange
	Rental  *RentalChange // of a rental event; of a booking event, without a transition
	Alert   *AlertChange
}

// AlertChange is an alert after a change, in the words of package alerts.
type AlertChange struct {
	ID       string
	Change   string // opened, raised, acknowledged, cleared
	Rule     string
	Severity string
	Plate    string
	Person   string
	Booking  int64
	Command  string
	Facts    map[string]any
	Since    time.Time
	Opened   time.Time
	Cleared  time.Time // zero: it is open
	SeenBy   string    // who has acknowledged it
	SeenAt   time.Time
	SeenNote string
}

// RentalChange is a start, pause, resumption or end of a rental, in the words of package rental.
type RentalChange struct {
	Booking    int64
	Reference  string
	Status     string // of the booking
	Transition string // its id
	Kind       string
	State      string
	Step       string
	Code       Code // why it failed; empty: it has not
	NeedsStaff bool
}

// Event returns the event of a command that has entered its state. It refers to c, which must not
// change afterwards.
func (c *Command) Event(at time.Time) Event {
	return Event{Kind: CommandEvent, Vehicle: c.Vehicle, Agency: c.Agency, At: at, Command: c}
}

// Events returns the events of a change, with now as the time of presence and alarms. Fields
// that the vehicle's powertrain cannot have are left out.
func (c Change) Events(now time.Time) []Event {
	var events []Event
	if c.Presence != "" {
		presence := c
		presence.Fields = nil
		events = append(events, Event{Kind: PresenceEvent, Vehicle: c.Vehicle, Agency: c.Agency, At: now, Change: &presence})
	}
	if fields := c.Fields.For(c.Powertrain); fields.HasVisibleChange() {
		status := c
		status.Fields, status.Presence = fields, ""
		events = append(events, Event{Kind: StatusEvent, Vehicle: c.Vehicle, Agency: c.Agency, At: fields.Latest(), Change: &status})
	}
	for _, alarm := range c.Alarms {
		events = append(events, Event{Kind: AlarmEvent, Vehicle: c.Vehicle, Agency: c.Agency, At: now, Alarm: &alarm})
	}
	return events
}

// Latest returns the newest vehicle time.
func (s Snapshot) Latest() time.Time {
	var latest time.Time
	for _, reading := range s.All() {
		if reading.At.After(latest) {
			latest = reading.At
		}
	}
	return latest
}

// Change is what observations have changed of one vehicle.
type Change struct {
	Vehicle    VehicleID
	Agency     AgencyID
	Powertrain Powertrain
	Fields     Snapshot       // with a new value; nil: none
	Large      []string       // fields that have also changed, but too large for the event log
	Presence   PresenceStatus // its new connectivity; empty: as before
	LastSeen   time.Time      // by our clock
	Alarms     []Alarm        // raised
}

// Empty reports whether nothing has changed.
func (c Change) Empty() bool { return c.Fields.Empty() && len(c.Alarms) == 0 && c.Presence == "" }

// Same reports whether two values of a field look the same to a reader of the interface. Of
// RSRP it shows only the quality.
func (f Field) Same(a, b any) bool {
	if f == RSRP {
		a, aIs := a.(float64)
		b, bIs := b.(float64)
		return aIs == bIs && (!aIs || *SignalQuality(&a) == *SignalQuality(&b))
	}
	return SameValue(a, b)
}

// HasVisibleChange reports whether the new values in s change what a reader sees. A new time
// of an unchanged position alone does not.
func (s Snapshot) HasVisibleChange() bool {
	n := s.Len()
	return n > 1 || n == 1 && !s.Has(LocatedAt)
}

// SameValue reports whether two values of a field are the same.
func SameValue(a, b any) bool {
	switch a := a.(type) {
	case float64, string, bool, nil:
		return a == b
	case time.Time:
		b, ok := b.(time.Time)
		return ok && a.Equal(b)
	case []string:
		b, ok := b.([]string)
		return ok && slices.Equal(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, SameValue)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, SameValue)
	default: // of no field
		return reflect.DeepEqual(a, b)
	}
}
