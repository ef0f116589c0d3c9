package resource

import "motorpool/telematics"

// Activity is one entry of the audit log.
type Activity struct {
	ID         int64               `json:"id"`
	At         string              `json:"at"`
	Actor      string              `json:"actor"`
	Role       telematics.Role     `json:"role"`
	AgencyID   *int64              `json:"agency_id"`
	VehicleID  *int64              `json:"vehicle_id"`
	BookingID  *int64              `json:"booking_id"`
	Action     string              `json:"action"`
	Parameters any                 `json:"parameters"` // null: none
	Outcome    *telematics.Outcome `json:"outcome"`
	Code       *telematics.Code    `json:"code"`
	CommandID  *string             `json:"command_id"`
	RequestID  *string             `json:"request_id"`
	LatencyMS  int64               `json:"latency_ms"`
	Late       bool                `json:"late"`
	Note       *string             `json:"note"`
}

// NewActivity returns an entry of the audit log.
func NewActivity(a telematics.Activity) Activity {
	body := Activity{
		ID: a.ID, At: Timestamp(a.At), Actor: a.Actor.Subject, Role: a.Actor.Role,
		AgencyID: OrNull(int64(a.Agency)), VehicleID: OrNull(int64(a.Vehicle)),
		BookingID: OrNull(a.Booking), Action: a.Action, Parameters: newActivityParameters(a),
		Outcome: OrNull(a.Outcome), Code: OrNull(a.Code),
		LatencyMS: a.Latency.Milliseconds(), Late: a.Late, Note: OrNull(a.Note),
	}
	if a.Command != telematics.NoCommand {
		body.CommandID = OrNull(a.Command.String())
	}
	if a.RequestID != telematics.NoCommand {
		body.RequestID = OrNull(a.RequestID.String())
	}
	return body
}

// newActivityParameters returns the parameters of the request, or nil.
func newActivityParameters(a telematics.Activity) any {
	switch {
	case a.Attention != nil:
		return NewAttention(a.Attention)
	case a.Details != nil:
		return a.Details
	}
	return nil
}
