package resource

import (
	"maps"

	"motorpool/alerts"
	"motorpool/telematics"
)

// about begins the data of an event of a vehicle.
type about struct {
	VehicleID int64  `json:"vehicle_id"`
	At        string `json:"at"`
}

// CommandEvent is the data of a command event.
type CommandEvent struct {
	about
	Command *Command `json:"command"`
}

// PresenceEvent is the data of a presence event.
type PresenceEvent struct {
	about
	Connectivity UnitPresence `json:"connectivity"`
}

// AlarmEvent is the data of an alarm event.
type AlarmEvent struct {
	about
	Alarm Alarm `json:"alarm"`
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

// BookingEvent is the data of a booking event.
type BookingEvent struct {
	about
	BookingID int64  `json:"booking_id"`
	Reference string `json:"reference"`
	Status    string `json:"status"`
}

// RentalEvent is the data of a rental event.
type RentalEvent struct {
	BookingEvent
	Transition TransitionChange `json:"transition"`
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
	of := about{int64(e.Vehicle), Timestamp(e.At)}
	switch e.Kind {
	case telematics.CommandEvent:
		return CommandEvent{of, NewCommand(e.Command)}
	case telematics.PresenceEvent:
		return PresenceEvent{of, UnitPresence{Status: e.Change.Presence, LastSeen: TimestampOrNull(e.Change.LastSeen)}}
	case telematics.AlarmEvent:
		return AlarmEvent{of, Alarm{Kind: e.Alarm.Kind, Text: OrNull(e.Alarm.Text)}}
	case telematics.AlertEvent:
		alert, change := alerts.FromEvent(e)
		return AlertEvent{VehicleID: OrNull(of.VehicleID), At: of.At, Change: change, Alert: newAlertState(alert)}
	case telematics.HaltEvent:
		return HaltEvent{At: of.At, InForce: e.Halt.InForce, Halt: NewNamedHalt(e.Halt.Halt)}
	case telematics.BookingEvent:
		return newBookingEvent(of, e.Rental)
	case telematics.RentalEvent:
		r := e.Rental
		return RentalEvent{newBookingEvent(of, r), TransitionChange{
			ID: r.Transition, Kind: r.Kind, State: r.State, Step: r.Step, Code: OrNull(r.Code), NeedsStaff: r.NeedsStaff,
		}}
	case telematics.StatusEvent:
		body := newChanged(e.Change.Fields)
		body["vehicle_id"], body["at"] = of.VehicleID, of.At
		if len(e.Change.Large) > 0 {
			body["too_large"] = e.Change.Large
		}
		return body
	default:
		return nil
	}
}

func newBookingEvent(of about, r *telematics.RentalChange) BookingEvent {
	return BookingEvent{about: of, BookingID: r.Booking, Reference: r.Reference, Status: r.Status}
}

// newChanged returns those parts of a vehicle status whose values are new.
func newChanged(fields telematics.Snapshot) Section {
	body := Section{}
	if fields.Has(telematics.OEMData) { // first: raw values may replace members
		own, _ := fields.Of(telematics.OEMData).Value.(map[string]any)
		maps.Copy(group(body, telematics.OEMData.String()), own)
	}
	for field, reading := range fields.All() {
		switch field {
		case telematics.OEMData:
		case telematics.RSRP:
			body.put(nameInStatus(field), telematics.SignalQuality(fields.Number(field)))
		default:
			body.put(field.String(), reading.Value)
		}
	}
	return body
}
