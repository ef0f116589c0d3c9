package httpapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/stream"
	"motorpool/telematics"
)

// events answers GET /admin/events: a stream that lasts until its caller hangs up or is too slow, its token is not valid
// any more, or this process ends. The subscription is recorded before anything is sent [LAW-9].
func (s *server) events(c echo.Context) error {
	filter, err := eventFilterOf(c)
	if err != nil {
		return err
	}
	call := callOf(c)
	release, refusal := s.Feed.Admit(c.Request().Context(), call.actor)
	if refusal == nil {
		defer release()
	}
	var limit *stream.LimitError
	if errors.As(refusal, &limit) {
		refusal = &telematics.Error{Code: rateLimited, Retryable: true, RetryAfter: retryUnavailable,
			Message: fmt.Sprintf("You have %d streams open at this instance, as many as one administrator may; close one first.", limit.Open)}
	}
	if err := s.recordSubscription(c, filter, refusal); err != nil {
		return err
	}
	if refusal != nil {
		return refusal
	}
	return s.Feed.Serve(c.Request().Context(), streamWriter{c.Response()}, stream.Subscription{
		Filter: filter, LastID: c.Request().Header.Get("Last-Event-ID"), Until: call.tokenUntil, Now: s.Now,
		Refused: func(ctx context.Context) bool { // the keys may have changed since the token was verified
			_, err := s.Tokens.Authenticate(ctx, c.Request().Header)
			return err != nil && asError(err).Code == auth.Unauthenticated
		},
	})
}

// streamWriter returns errors of flushing, which Echo's response does not.
type streamWriter struct{ *echo.Response }

// FlushError is called by http.ResponseController.
func (w streamWriter) FlushError() error { return http.NewResponseController(w.Writer).Flush() }

func (s *server) recordSubscription(c echo.Context, filter stream.Filter, refusal error) error {
	line := callOf(c).line(telematics.EventsRead, filter.Vehicle, s.Now())
	line.Outcome = telematics.Executed
	if refusal != nil {
		line.Outcome, line.Code = telematics.NotExecuted, asError(refusal).Code
	} else if !filter.Nothing && filter.Agency != 0 {
		line.Agency = filter.Agency
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), s.ReadBudget)
	defer cancel()
	if refusal == nil {
		vehicles := 0
		if !filter.Nothing {
			var err error
			if vehicles, err = s.Fleet.CountVehicles(ctx, filter.Agency, filter.Vehicle); err != nil {
				return err
			}
		}
		line.Details = map[string]any{"filter": describeFilter(filter), "vehicles": vehicles}
	}
	return s.History.Add(ctx, line)
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

func eventFilterOf(c echo.Context) (stream.Filter, error) {
	agency, visible, err := agencyQuery(c)
	if err != nil {
		return stream.Filter{}, err
	}
	vehicle, err := integerQuery(c, "vehicle_id")
	filter := stream.Filter{Agency: agency, Vehicle: telematics.VehicleID(vehicle), Nothing: !visible}
	if kinds := c.QueryParam("event"); kinds != "" {
		for kind := range strings.SplitSeq(kinds, ",") {
			filter.Kinds = append(filter.Kinds, telematics.EventKind(kind))
		}
	}
	return filter, err
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

// EventBody returns the data of an event about a vehicle, and nil for other kinds. See stream.Config.
func EventBody(e telematics.Event) any {
	switch e.Kind {
	case telematics.CommandEvent:
		return commandEventBody{VehicleID: int64(e.Vehicle), At: timestamp(e.At), Command: newCommandBody(*e.Command)}
	case telematics.PresenceEvent:
		return presenceEventBody{VehicleID: int64(e.Vehicle), At: timestamp(e.At), Connectivity: presenceConnectivityBody{
			Status: e.Change.Presence, LastSeen: timestampOrNull(e.Change.LastSeen),
		}}
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
			group(body, path[:last]...)[path[last]] = shown(reading.Value)
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

func shown(value any) any {
	if at, ok := value.(time.Time); ok {
		return timestamp(at)
	}
	return value
}
