package alerts

import (
	"encoding/json"
	"time"

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

// changed is the JSON of an alert in an event.
type changed struct {
	Change Change `json:"change"`
	Alert
}

// Event returns the event of a change of an alert, which is as it is after the change.
func (a Alert) Event(change Change, at time.Time) telematics.Event {
	text, _ := json.Marshal(changed{change, a}) // facts come from JSON
	return telematics.Event{Kind: telematics.AlertEvent, Vehicle: a.Vehicle, Agency: a.Agency, At: at.UTC(), Alert: text}
}

// FromEvent returns the alert of an event, and its change.
func FromEvent(e telematics.Event) (Alert, Change) {
	var c changed
	_ = json.Unmarshal(e.Alert, &c) // of another version of the program: what it has
	c.Agency, c.Vehicle = e.Agency, e.Vehicle
	return c.Alert, c.Change
}
