package httpapi

import (
	"context"

	"motorpool/httpapi/resource"
	"motorpool/telematics"
)

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
	return c.answerWith(plural(len(entries), "entry"), resource.List(entries, resource.NewActivity), meta)
}

// audit adds the entries of requests to the audit log [LAW-9].
type audit struct {
	history  History
	refusals Refusals
	limits   *limits
}

// recordDurably adds an entry, and blocks until it is durable. Call it before the answer to a read.
func (a *audit) recordDurably(c *call, entry telematics.Activity) error {
	return a.history.Add(c.ctx(), entry)
}

// recordList adds the entry of a read of a list of vehicles or units, with its filter and the
// number of things in the answer. It blocks until the entry is durable.
func (a *audit) recordList(c *call, agency telematics.AgencyID, visible bool, things string, n int, filters ...string) error {
	filter := map[string]any{}
	for _, name := range filters {
		if value := c.QueryParam(name); value != "" {
			filter[name] = value
		}
	}
	entry := c.entry(telematics.VehiclesRead, 0)
	if agency != 0 {
		filter["agency_id"] = int64(agency)
	}
	if visible {
		entry.Agency = agency
	}
	entry.Outcome, entry.Details = telematics.Executed, map[string]any{"filter": filter, things: n}
	return a.recordDurably(c, entry)
}

// recordLater adds an entry that need not be durable before the answer.
func (a *audit) recordLater(ctx context.Context, entry telematics.Activity) {
	a.refusals.Record(context.WithoutCancel(ctx), entry)
}

// recordLimited adds the entry of a refusal, unless the actor had more refusals in a minute than it
// may make requests: entries cannot be deleted.
func (a *audit) recordLimited(ctx context.Context, entry telematics.Activity) {
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

// commandsRead records a read of commands, if one of them includes a report of its unit. The entry
// states which commands were requested.
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
	return a.recordDurably(c, entry)
}
