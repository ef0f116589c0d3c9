package httpapi

import (
	"github.com/labstack/echo/v4"

	"motorpool/telematics"
)

// activityBody is one entry of the audit log.
type activityBody struct {
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

func newActivityBody(a telematics.Activity) activityBody {
	body := activityBody{
		ID: a.ID, At: timestamp(a.At), Actor: a.Actor.Subject, Role: a.Actor.Role,
		AgencyID: orNull(int64(a.Agency)), VehicleID: orNull(int64(a.Vehicle)),
		BookingID: orNull(a.Booking), Action: a.Action, Parameters: newActivityParameters(a),
		Outcome: orNull(a.Outcome), Code: orNull(a.Code),
		LatencyMS: a.Latency.Milliseconds(), Late: a.Late, Note: orNull(a.Note),
	}
	if a.Command != telematics.NoCommand {
		body.CommandID = orNull(a.Command.String())
	}
	if a.RequestID != telematics.NoCommand {
		body.RequestID = orNull(a.RequestID.String())
	}
	return body
}

// newActivityParameters returns what was asked for, or nil.
func newActivityParameters(a telematics.Activity) any {
	switch {
	case a.Attention != nil:
		return newAttentionBody(a.Attention)
	case a.Details != nil:
		return a.Details
	}
	return nil
}

// activity answers GET /admin/activity.
func (s *server) activity(c echo.Context) error {
	p, err := pageOf(c, "activity")
	if err != nil {
		return err
	}
	vehicle, err := integerQuery(c, "vehicle_id")
	if err != nil {
		return err
	}
	booking, err := integerQuery(c, "booking_id")
	if err != nil {
		return err
	}
	from, err := timeQuery(c, "from")
	if err != nil {
		return err
	}
	to, err := timeQuery(c, "to")
	if err != nil {
		return err
	}
	found, err := s.Fleet.Activities(c.Request().Context(), telematics.ActivityQuery{
		Agency:  callOf(c).actor.Agency,
		Vehicle: telematics.VehicleID(vehicle),
		Booking: booking,
		Actor:   c.QueryParam("actor"),
		Action:  c.QueryParam("action"),
		Outcome: telematics.Outcome(c.QueryParam("outcome")),
		From:    from,
		To:      to,
		Page:    p.query(),
	})
	if err != nil {
		return err
	}
	entries, meta := cut(p, found, func(a telematics.Activity) int64 { return a.ID })
	return s.answerWith(c, counted(len(entries), "entry"), bodies(entries, newActivityBody), meta)
}
