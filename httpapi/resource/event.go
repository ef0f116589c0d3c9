package resource

import (
	"maps"
	"strings"
	"time"

	"motorpool/alerts"
	"motorpool/telematics"
)

// CommandEvent is the data of a command event.
type CommandEvent struct {
	VehicleID int64    `json:"vehicle_id"`
	At        string   `json:"at"`
	Command   *Command `json:"command"`
}

// PresenceEvent is the data of a presence event.
type PresenceEvent struct {
	VehicleID    int64        `json:"vehicle_id"`
	At           string       `json:"at"`
	Connectivity UnitPresence `json:"connectivity"`
}

// AlarmEvent is the data of an alarm event.
type AlarmEvent struct {
	VehicleID int64  `json:"vehicle_id"`
	At        string `json:"at"`
	Alarm     Alarm  `json:"alarm"`
}

// AlertEvent is the data of an alert event.
type AlertEvent struct {
	VehicleID *int64        `json:"vehicle_id"` // null: the alert is about a person
	At        string        `json:"at"`
	Change    alerts.Change `json:"change"`
	Alert     AlertState    `json:"alert"`
}

// HaltEvent is the data of a halt event.
type HaltEvent struct {
	VehicleID *int64    `json:"vehicle_id"` // always null
	At        string    `json:"at"`
	InForce   bool      `json:"in_force"` // false: it was lifted
	Halt      NamedHalt `json:"halt"`
}

// RentalEvent is the data of a rental event.
type RentalEvent struct {
	VehicleID  int64            `json:"vehicle_id"`
	At         string           `json:"at"`
	BookingID  int64            `json:"booking_id"`
	Reference  string           `json:"reference"`
	Status     string           `json:"status"`
	Transition TransitionChange `json:"transition"`
}

// BookingEvent is the data of a booking event.
type BookingEvent struct {
	VehicleID int64  `json:"vehicle_id"`
	At        string `json:"at"`
	BookingID int64  `json:"booking_id"`
	Reference string `json:"reference"`
	Status    string `json:"status"`
}

// TransitionChange is what an event says of a transition.
type TransitionChange struct {
	ID         string           `json:"id"`
	Kind       string           `json:"kind"`
	State      string           `json:"state"`
	Step       string           `json:"step"`
	Code       *telematics.Code `json:"code"`
	NeedsStaff bool             `json:"needs_staff"`
}

type Alarm struct {
	Kind string  `json:"kind"`
	Text *string `json:"text"`
}

// NewEvent returns the data of an event, and nil for a reset. See stream.Config.
func NewEvent(e telematics.Event) any {
	switch e.Kind {
	case telematics.CommandEvent:
		return CommandEvent{VehicleID: int64(e.Vehicle), At: Timestamp(e.At), Command: NewCommand(e.Command)}
	case telematics.PresenceEvent:
		return PresenceEvent{VehicleID: int64(e.Vehicle), At: Timestamp(e.At), Connectivity: UnitPresence{
			Status: e.Change.Presence, LastSeen: TimestampOrNull(e.Change.LastSeen),
		}}
	case telematics.AlarmEvent:
		return AlarmEvent{VehicleID: int64(e.Vehicle), At: Timestamp(e.At), Alarm: Alarm{Kind: e.Alarm.Kind, Text: OrNull(e.Alarm.Text)}}
	case telematics.AlertEvent:
		alert, change := alerts.FromEvent(e)
		return AlertEvent{VehicleID: OrNull(int64(e.Vehicle)), At: Timestamp(e.At), Change: change, Alert: newAlertState(alert)}
	case telematics.HaltEvent:
		return HaltEvent{At: Timestamp(e.At), InForce: e.Halt.InForce, Halt: NewNamedHalt(e.Halt.Halt)}
	case telematics.RentalEvent:
		r := e.Rental
		return RentalEvent{
			VehicleID: int64(e.Vehicle), At: Timestamp(e.At), BookingID: r.Booking, Reference: r.Reference, Status: r.Status,
			Transition: TransitionChange{
				ID: r.Transition, Kind: r.Kind, State: r.State, Step: r.Step, Code: OrNull(r.Code), NeedsStaff: r.NeedsStaff,
			},
		}
	case telematics.BookingEvent:
		r := e.Rental
		return BookingEvent{
			VehicleID: int64(e.Vehicle), At: Timestamp(e.At), BookingID: r.Booking, Reference: r.Reference, Status: r.Status,
		}
	case telematics.StatusEvent:
		body := newChanged(e.Change.Fields)
		body["vehicle_id"], body["at"] = int64(e.Vehicle), Timestamp(e.At)
		if len(e.Change.Large) > 0 {
			body["too_large"] = e.Change.Large
		}
		return body
	default:
		return nil
	}
}

// newChanged returns those parts of a vehicle status whose values are new.
func newChanged(fields telematics.Snapshot) map[string]any {
	body := map[string]any{}
	if fields.Has(telematics.OEMData) { // first: raw values may replace members
		own, _ := fields.Of(telematics.OEMData).Value.(map[string]any)
		maps.Copy(group(body, telematics.OEMData.String()), own)
	}
	for field, reading := range fields.All() {
		switch field {
		case telematics.OEMData:
		case telematics.RSRP:
			group(body, "connectivity")["signal_quality"] = telematics.SignalQuality(fields.Number(telematics.RSRP))
		default:
			path := strings.Split(field.String(), ".")
			last := len(path) - 1
			group(body, path[:last]...)[path[last]] = jsonValue(reading.Value)
		}
	}
	return body
}

// group returns the object at a path, and creates it if there is none.
func group(body map[string]any, path ...string) map[string]any {
	for _, name := range path {
		inner, ok := body[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			body[name] = inner
		}
		body = inner
	}
	return body
}

func jsonValue(value any) any {
	if at, ok := value.(time.Time); ok {
		return Timestamp(at)
	}
	return value
}
