package httpapi

import (
	"sync"
	"time"

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

// actorBound bounds how many entries of each actor an instance adds to the audit log, which cannot be deleted from: refusals, as many a
// minute as the actor may make requests, and changes that no other limit bounds. It counts in memory, so that it also holds while Redis
// is unavailable, and costs a flood no trip. The zero value is ready; it is safe for concurrent use.
type actorBound struct {
	mu   sync.Mutex
	next map[telematics.Actor]time.Time // when all that the actor used is there again
}

// take reports whether one more of the actor is let through. What is unused adds up, to a minute's worth.
func (b *actorBound) take(actor telematics.Actor, now time.Time, perMinute int) bool {
	if perMinute == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(map[telematics.Actor]time.Time)
	}
	next, known := b.next[actor]
	if next.Before(now) {
		next = now
	}
	next = next.Add(time.Minute / time.Duration(perMinute))
	if next.Sub(now) > time.Minute || !known && !b.hasRoom(now) {
		return false
	}
	b.next[actor] = next
	return true
}

// hasRoom forgets actors that have used nothing for a while, where there are too many.
func (b *actorBound) hasRoom(now time.Time) bool {
	if len(b.next) < maxBoundActors {
		return true
	}
	for actor, next := range b.next {
		if !next.After(now) {
			delete(b.next, actor)
		}
	}
	return len(b.next) < maxBoundActors
}

// recordVehiclesRead adds the activity entry of a list of vehicles, with the filter and the number of vehicles in the
// answer: one entry for each request, before it is answered [LAW-9].
func (s *server) recordVehiclesRead(c echo.Context, q telematics.VehicleQuery, visible bool, n int) error {
	filter := map[string]any{}
	if q.Agency != 0 {
		filter["agency_id"] = int64(q.Agency)
	}
	for name, value := range map[string]string{"status": string(q.Status), "connectivity": string(q.Connectivity), "q": q.Text} {
		if value != "" {
			filter[name] = value
		}
	}
	entry := callOf(c).line(telematics.VehiclesRead, 0, s.Now())
	entry.Outcome = telematics.Executed
	if visible {
		entry.Agency = q.Agency
	}
	entry.Details = map[string]any{"filter": filter, "vehicles": n}
	return s.History.Add(c.Request().Context(), entry)
}

// recordCommandsRead adds the activity entry of an answer with commands, where one of them has what its unit reported.
// The entry says which ones were asked for.
func (s *server) recordCommandsRead(c echo.Context, commands []telematics.Command, entry telematics.Activity) error {
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
	return s.History.Add(c.Request().Context(), entry)
}
