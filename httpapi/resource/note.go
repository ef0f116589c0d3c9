package resource

import "motorpool/telematics"

// Note is what a person has noted on a vehicle or a booking.
type Note struct {
	At        string `json:"at"`
	By        string `json:"by"`
	VehicleID int64  `json:"vehicle_id"`
	BookingID *int64 `json:"booking_id"` // null: it is on the vehicle
	Text      string `json:"text"`
}

// NewNote returns the note of an audit log entry.
func NewNote(a telematics.Activity) Note {
	return Note{
		At: Timestamp(a.At), By: a.Actor.Subject, VehicleID: int64(a.Vehicle), BookingID: OrNull(a.Booking), Text: a.Note,
	}
}
