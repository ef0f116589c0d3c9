package alerts

import (
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// Change is what has happened to an alert.
type Change string

// What happens to alerts.
const (
	HasOpened    Change = "opened"
	HasRisen     Change = "raised" // its severity
	Acknowledged Change = "acknowledged"
	HasCleared   Change = "cleared"
)

// Event returns the event of a change of an alert, which is as it is after the change.
func (a Alert) Event(change Change, at time.Time) telematics.Event {
	c := &telematics.AlertChange{
		ID: a.ID.String(), Change: string(change), Rule: string(a.Rule), Severity: string(a.Severity), Plate: a.Plate,
		Person: a.Person, Booking: a.Booking, Facts: a.Facts, Since: a.Since, Opened: a.Opened, Cleared: a.Cleared,
	}
	if a.Command != uuid.Nil {
		c.Command = a.Command.String()
	}
	if a.Seen != nil {
		c.SeenBy, c.SeenAt, c.SeenNote = a.Seen.By, a.Seen.At, a.Seen.Note
	}
	return telematics.Event{Kind: telematics.AlertEvent, Vehicle: a.Vehicle, Agency: a.Agency, At: at.UTC(), Alert: c}
}

// FromEvent returns the alert of an event, and its change.
func FromEvent(e telematics.Event) (Alert, Change) {
	c := e.Alert
	a := Alert{
		Rule: Rule(c.Rule), Severity: Severity(c.Severity), Agency: e.Agency, Vehicle: e.Vehicle, Plate: c.Plate,
		Person: c.Person, Booking: c.Booking, Facts: c.Facts, Since: c.Since, Opened: c.Opened, Cleared: c.Cleared,
	}
	a.ID, _ = uuid.Parse(c.ID)
	a.Command, _ = uuid.Parse(c.Command) // empty: none
	if !c.SeenAt.IsZero() {
		a.Seen = &Acknowledgement{By: c.SeenBy, At: c.SeenAt, Note: c.SeenNote}
	}
	return a, Change(c.Change)
}
