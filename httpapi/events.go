package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/stream"
	"motorpool/telematics"
)

// events streams events.
type events struct {
	feed       *stream.Feed
	fleet      Fleet
	identify   func(*http.Request) (auth.Identity, error)
	audit      *audit
	watches    Watches
	readBudget time.Duration // of recording the subscription
}

// follow answers GET /admin/events: a stream that lasts until its caller hangs up or is too slow,
// its token is not valid any more, or this process ends. It records the subscription first [LAW-9].
func (e events) follow(c *call) error {
	filter := eventFilterOf(c)
	release, refusal := e.feed.Admit(c.ctx(), c.actor)
	if refusal == nil {
		defer release()
	}
	var limit *stream.LimitError
	if errors.As(refusal, &limit) {
		refusal = &telematics.Error{Code: rateLimited, Retryable: true, RetryAfter: retryUnavailable,
			Message: fmt.Sprintf("You have %d streams open at this instance, as many as one administrator may; close one first.", limit.Open)}
	}
	if err := e.record(c, filter, refusal); err != nil {
		return err
	}
	if refusal != nil {
		return refusal
	}
	defer e.watch(c, filter)()
	return e.feed.Serve(c.ctx(), streamWriter{c.Response()}, stream.Subscription{
		Filter: filter, LastID: c.Request().Header.Get("Last-Event-ID"), Until: c.tokenUntil, Now: c.now,
		Refused: func(ctx context.Context) bool { // the keys may have changed meanwhile
			_, err := e.identify(c.Request().WithContext(ctx))
			return err != nil && asError(err).Code == auth.Unauthenticated
		},
	})
}

// watch watches the vehicle to which a stream is limited. A stream of many vehicles watches none:
// it is not known which of them is looked at.
func (e events) watch(c *call, f stream.Filter) (end func()) {
	if f.Vehicle != 0 && !f.Nothing && (f.Kinds == nil || slices.Contains(f.Kinds, telematics.StatusEvent)) {
		ctx, cancel := context.WithTimeout(c.ctx(), e.readBudget)
		defer cancel()
		twin, err := e.fleet.Record(ctx, f.Vehicle)
		if err == nil && (f.Agency == 0 || f.Agency == twin.AgencyID) {
			return e.watches.Begin(twin.Vehicle)
		}
	}
	return func() {}
}

// streamWriter returns errors of flushing, which Echo's response does not.
type streamWriter struct{ *echo.Response }

// FlushError is called by http.ResponseController.
func (w streamWriter) FlushError() error { return http.NewResponseController(w.Writer).Flush() }

func (e events) record(c *call, filter stream.Filter, refusal error) error {
	ctx, cancel := context.WithTimeout(c.ctx(), e.readBudget)
	defer cancel()
	entry := c.entry(telematics.EventsRead, filter.Vehicle)
	if refusal != nil {
		entry.Outcome, entry.Code = telematics.NotExecuted, asError(refusal).Code
		return e.audit.history.Add(ctx, entry)
	}
	vehicles := 0
	if !filter.Nothing {
		entry.Agency = cmp.Or(filter.Agency, entry.Agency)
		var err error
		if vehicles, err = e.fleet.CountVehicles(ctx, filter.Agency, filter.Vehicle); err != nil {
			return err
		}
	}
	entry.Outcome = telematics.Executed
	entry.Details = map[string]any{"filter": describeFilter(filter), "vehicles": vehicles}
	return e.audit.history.Add(ctx, entry)
}

// describeFilter returns the filter as the audit log has it.
func describeFilter(f stream.Filter) map[string]any {
	described := map[string]any{}
	if f.Agency != 0 {
		described["agency_id"] = int64(f.Agency)
	}
	if f.Vehicle != 0 {
		described["vehicle_id"] = int64(f.Vehicle)
	}
	if f.Kinds != nil {
		described["event"] = f.Kinds
	}
	return described
}

func eventFilterOf(c *call) stream.Filter {
	agency, visible := c.queryAgency()
	filter := stream.Filter{Agency: agency, Vehicle: telematics.VehicleID(c.queryInteger("vehicle_id")), Nothing: !visible}
	if kinds := c.QueryParam("event"); kinds != "" {
		for kind := range strings.SplitSeq(kinds, ",") {
			filter.Kinds = append(filter.Kinds, telematics.EventKind(kind))
		}
	}
	return filter
}

// commandEventBody is the data of a command event.
type commandEventBody struct {
	VehicleID int64       `json:"vehicle_id"`
	At        string      `json:"at"`
	Command   commandBody `json:"command"`
}

// presenceEventBody is the data of a presence event.
type presenceEventBody struct {
	VehicleID    int64                    `json:"vehicle_id"`
	At           string                   `json:"at"`
	Connectivity presenceConnectivityBody `json:"connectivity"`
}

type presenceConnectivityBody struct {
	Status   telematics.PresenceStatus `json:"status"`
	LastSeen *string                   `json:"last_seen"`
}

// alarmEventBody is the data of an alarm event.
type alarmEventBody struct {
	VehicleID int64     `json:"vehicle_id"`
	At        string    `json:"at"`
	Alarm     alarmBody `json:"alarm"`
}

// haltEventBody is the data of a halt event.
type haltEventBody struct {
	VehicleID *int64        `json:"vehicle_id"` // always null
	At        string        `json:"at"`
	InForce   bool          `json:"in_force"` // false: it was lifted
	Halt      haltNamedBody `json:"halt"`
}

type alarmBody struct {
	Kind string  `json:"kind"`
	Text *string `json:"text"`
}

// EventBody returns the data of an event, and nil for a reset. See stream.Config.
func EventBody(e telematics.Event) any {
	switch e.Kind {
	case telematics.CommandEvent:
		return commandEventBody{VehicleID: int64(e.Vehicle), At: timestamp(e.At), Command: newCommandBody(*e.Command)}
	case telematics.PresenceEvent:
		return presenceEventBody{VehicleID: int64(e.Vehicle), At: timestamp(e.At), Connectivity: presenceConnectivityBody{
			Status: e.Change.Presence, LastSeen: timestampOrNull(e.Change.LastSeen),
		}}
	case telematics.AlarmEvent:
		return alarmEventBody{VehicleID: int64(e.Vehicle), At: timestamp(e.At), Alarm: alarmBody{Kind: e.Alarm.Kind, Text: orNull(e.Alarm.Text)}}
	case telematics.HaltEvent:
		return haltEventBody{At: timestamp(e.At), InForce: e.Halt.InForce, Halt: newHaltNamedBody(e.Halt.Halt)}
	case telematics.StatusEvent:
		body := newChangedBody(e.Change.Fields)
		body["vehicle_id"], body["at"] = int64(e.Vehicle), timestamp(e.At)
		if len(e.Change.Large) > 0 {
			body["too_large"] = e.Change.Large
		}
		return body
	default:
		return nil
	}
}

// newChangedBody is those parts of a vehicle status whose values are new.
func newChangedBody(fields telematics.Snapshot) map[string]any {
	body := map[string]any{}
	if reading, ok := fields[telematics.OEMData]; ok { // first: two of its names are ours
		own, _ := reading.Value.(map[string]any)
		maps.Copy(group(body, string(telematics.OEMData)), own)
	}
	for field, reading := range fields {
		switch field {
		case telematics.OEMData:
		case telematics.RSRP:
			group(body, "connectivity")["signal_quality"] = telematics.SignalQuality(fields.Number(telematics.RSRP))
		default:
			path := strings.Split(string(field), ".")
			last := len(path) - 1
			group(body, path[:last]...)[path[last]] = jsonValue(reading.Value)
		}
	}
	return body
}

// group returns the object at a path, which it makes where there is none.
func group(body map[string]any, path ...string) map[string]any {
	for _, name := range path {
		inner, ok := body[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			body[name] = inner
		}
		body = inner
	}
	return body
}

func jsonValue(value any) any {
	if at, ok := value.(time.Time); ok {
		return timestamp(at)
	}
	return value
}
