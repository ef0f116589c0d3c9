package httpapi

import (
	"context"

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

// newActivityParameters returns the parameters of the request, or nil.
func newActivityParameters(a telematics.Activity) any {
	switch {
	case a.Attention != nil:
		return newAttentionBody(a.Attention)
	case a.Details != nil:
		return a.Details
	}
	return nil
}

// activities answers with the audit log.
type activities struct{ fleet Fleet }

// list answers GET /admin/activity.
func (a activities) list(c *call) error {
	p := c.page("activity")
	found, err := a.fleet.Activities(c.ctx(), telematics.ActivityQuery{
		Agency:  c.actor.Agency,
		Vehicle: telematics.VehicleID(c.queryInteger("vehicle_id")),
		Booking: c.queryInteger("booking_id"),
		Actor:   c.QueryParam("actor"),
		Action:  c.QueryParam("action"),
		Outcome: telematics.Outcome(c.QueryParam("outcome")),
		From:    c.queryTime("from"),
		To:      c.queryTime("to"),
		Page:    p.query(),
	})
	if err != nil {
		return err
	}
	entries, meta := cut(p, found, func(a telematics.Activity) int64 { return a.ID })
	return c.answerWith(plural(len(entries), "entry"), bodies(entries, newActivityBody), meta)
}

// audit adds the entries of requests to the audit log [LAW-9].
type audit struct {
	history  History
	refusals Refusals
	limits   *limits
}

// read records a read before it is answered: it returns when the entry is durable.
func (a *audit) read(c *call, entry telematics.Activity) error {
	return a.history.Add(c.ctx(), entry)
}

// note records what needs not be durable before the answer.
func (a *audit) note(ctx context.Context, entry telematics.Activity) {
	a.refusals.Record(context.WithoutCancel(ctx), entry)
}

// limit records a refusal, as many a minute as the actor may make requests: entries cannot be
// deleted.
func (a *audit) limit(ctx context.Context, entry telematics.Activity) {
	if a.limits.refusals.take(entry.Actor, a.limits.now(), a.limits.of(entry.Actor)) {
		a.refusals.Record(ctx, entry)
	} else {
		a.refusals.Omit(ctx, entry)
	}
}

// notChanged returns the outcome of a change that failed.
func notChanged(code telematics.Code) telematics.Outcome {
	if code == serviceUnavailable || code == telematics.Internal {
		return telematics.MayHave // the change may have been written before the error
	}
	return telematics.NotExecuted
}

// commandsRead records an answer with commands, where one of them has what its unit reported. The
// entry says which ones were requested.
func (a *audit) commandsRead(c *call, commands []telematics.Command, entry telematics.Activity) error {
	vehicles := map[telematics.VehicleID]bool{}
	for _, command := range commands {
		if command.Reported != nil {
			vehicles[command.Vehicle] = true
		}
	}
	if len(vehicles) == 0 {
		return nil
	}
	entry.Outcome = telematics.Executed
	if entry.Details == nil {
		entry.Details = map[string]any{}
	}
	entry.Details["vehicles"] = len(vehicles)
	return a.read(c, entry)
}
