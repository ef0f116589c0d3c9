package activity

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// line is the form of an entry that seals hash and exports contain: a JSON object with the members
// in this order. Null members are omitted, so a column that is added later does not change the
// lines of earlier entries. Any other change here invalidates the seals of all entries.
type line struct {
	ID            int64           `json:"id"`
	At            time.Time       `json:"at"`
	ActorSubject  string          `json:"actor_subject"`
	ActorRole     string          `json:"actor_role"`
	ActorAgencyID *int64          `json:"actor_agency_id,omitempty"`
	AgencyID      *int64          `json:"agency_id,omitempty"`
	VehicleID     *int64          `json:"vehicle_id,omitempty"`
	BookingID     *int64          `json:"booking_id,omitempty"`
	Action        string          `json:"action"`
	Parameters    *string         `json:"-"`
	Requested     json.RawMessage `json:"parameters,omitempty"`
	Outcome       string          `json:"outcome"`
	Code          string          `json:"code"`
	CommandID     *uuid.UUID      `json:"command_id,omitempty"`
	RequestID     *uuid.UUID      `json:"request_id,omitempty"`
	LatencyUS     int64           `json:"latency_us"`
	Late          bool            `json:"late"`
	Note          string          `json:"note"`
}

const lineColumns = `id, at, actor_subject, actor_role, actor_agency_id, agency_id, vehicle_id, booking_id, action, parameters,
	outcome, code, command_id, request_id, latency_us, late, note`

// text returns the line with its newline.
func (l line) text() ([]byte, error) {
	l.At = l.At.UTC()
	if l.Parameters != nil {
		l.Requested = json.RawMessage(*l.Parameters)
	}
	text, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("entry %d: %w", l.ID, err)
	}
	return append(text, '\n'), nil
}

// month returns the month of an instant, as 2026-11.
func month(at time.Time) string { return at.UTC().Format("2006-01") }
