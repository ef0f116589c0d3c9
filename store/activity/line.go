package activity

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// line is an entry as seals and exports have it: a JSON object with the members in this order.
// Members that are null are omitted, so a column that is added later leaves the lines of earlier
// entries as they are. Any other change here contradicts the seals of all entries.
type line struct {
	ID            int64           `db:"id" json:"id"`
	At            time.Time       `db:"at" json:"at"`
	ActorSubject  string          `db:"actor_subject" json:"actor_subject"`
	ActorRole     string          `db:"actor_role" json:"actor_role"`
	ActorAgencyID *int64          `db:"actor_agency_id" json:"actor_agency_id,omitempty"`
	AgencyID      *int64          `db:"agency_id" json:"agency_id,omitempty"`
	VehicleID     *int64          `db:"vehicle_id" json:"vehicle_id,omitempty"`
	BookingID     *int64          `db:"booking_id" json:"booking_id,omitempty"`
	Action        string          `db:"action" json:"action"`
	Parameters    *string         `db:"parameters" json:"-"`
	Requested     json.RawMessage `db:"-" json:"parameters,omitempty"`
	Outcome       string          `db:"outcome" json:"outcome"`
	Code          string          `db:"code" json:"code"`
	CommandID     *uuid.UUID      `db:"command_id" json:"command_id,omitempty"`
	RequestID     *uuid.UUID      `db:"request_id" json:"request_id,omitempty"`
	LatencyUS     int64           `db:"latency_us" json:"latency_us"`
	Late          bool            `db:"late" json:"late"`
	Note          string          `db:"note" json:"note"`
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
