package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/request"
	"motorpool/httpapi/signin"
	"motorpool/httpapi/stream"
	"motorpool/telematics"
)

// events streams events.
type events struct{ *server }

// follow answers GET /admin/events: a stream that lasts until its caller disconnects or is too
// slow, its token is no longer valid, or this process ends. It records the subscription first
// [LAW-9].
func (e events) follow(c *request.Call) error {
	filter := eventFilterOf(c)
	release, refusal := e.Feed.Admit(c.Ctx(), c.Actor)
	if refusal == nil {
		defer release()
	}
	var limit *stream.LimitError
	if errors.As(refusal, &limit) {
		refusal = &telematics.Error{Code: signin.RateLimited, Retryable: true, RetryAfter: request.RetryUnavailable,
			Message: fmt.Sprintf("You have %d streams open at this instance, the most for one administrator; close one first.", limit.Open)}
	}
	if err := e.record(c, filter, refusal); err != nil {
		return err
	}
	if refusal != nil {
		return refusal
	}
	defer e.watch(c, filter)()
	var signedOut func() bool
	if e.SignIn != nil {
		signedOut = e.SignIn.SessionEnded(c.HTTPRequest())
	}
	return e.Feed.Serve(c.Ctx(), streamWriter{c.Response()}, stream.Subscription{
		Filter: filter, SignedOut: signedOut, LastID: c.Request().Header.Get("Last-Event-ID"), Until: c.TokenUntil, Now: c.Now,
		Refused: func(ctx context.Context) bool { // the keys may have changed meanwhile
			_, err := e.identify(ctx, c.Request())
			return err != nil && request.AsError(err).Code == auth.Unauthenticated
		},
	})
}

// watch watches the vehicle to which a stream is limited, until end is called. A stream of many
// vehicles watches none: it is unknown which of them its reader looks at.
func (e events) watch(c *request.Call, f stream.Filter) (end func()) {
	if f.Vehicle != 0 && (f.Kinds == nil || slices.Contains(f.Kinds, telematics.StatusEvent)) {
		ctx, cancel := context.WithTimeout(c.Ctx(), e.ReadBudget)
		defer cancel()
		twin, err := e.Fleet.Record(ctx, f.Vehicle)
		if err == nil && (f.Agency == 0 || f.Agency == twin.AgencyID) {
			return e.Watches.Begin(twin.Vehicle)
		}
	}
	return func() {}
}

// streamWriter returns errors of flushing, which Echo's response does not.
type streamWriter struct{ *echo.Response }

// FlushError is called by http.ResponseController. Its error is the connection's.
func (w streamWriter) FlushError() error { return http.NewResponseController(w.Writer).Flush() }

func (e events) record(c *request.Call, filter stream.Filter, refusal error) error {
	ctx, cancel := context.WithTimeout(c.Ctx(), e.ReadBudget)
	defer cancel()
	entry := c.Entry(telematics.EventsRead, filter.Vehicle)
	if refusal != nil {
		entry.Outcome, entry.Code = telematics.NotExecuted, request.AsError(refusal).Code
		return e.audit.History.Add(ctx, entry)
	}
	vehicles, err := e.Map.CountVehicles(ctx, filter.Agency, filter.Vehicle)
	if err != nil {
		return err
	}
	if filter.Agency != telematics.NoAgency {
		entry.Agency = filter.Agency
	}
	described := filterOf(c)
	if filter.Vehicle != 0 {
		described["vehicle_id"] = int64(filter.Vehicle)
	}
	if filter.Kinds != nil {
		described["event"] = filter.Kinds
	}
	entry.Outcome, entry.Details = telematics.Executed, map[string]any{"filter": described, "vehicles": vehicles}
	return e.audit.History.Add(ctx, entry)
}

func eventFilterOf(c *request.Call) stream.Filter {
	return stream.Filter{
		Agency: c.QueryAgency(), Vehicle: telematics.VehicleID(c.QueryInteger("vehicle_id")),
		Persons: c.Level >= auth.Administrator, Kinds: listOf[telematics.EventKind](c.QueryParam("event")),
	}
}
