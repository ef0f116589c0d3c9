package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/trace"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/contract"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// call is one request on its way.
type call struct {
	id         uuid.UUID // the request id
	idText     string    // likewise, as text
	started    time.Time
	actor      telematics.Actor           // once the token was checked
	scopes     auth.Scopes                // likewise
	tokenUntil time.Time                  // likewise: when it is refused
	agencyCode string                     // likewise: of the agency whose app it is; empty: no app's
	signed     auth.Signed                // likewise: of that app
	quota      telematics.Quota           // once the limits were asked: of the one with the least left
	body       []byte                     // once it was read
	key        *telematics.IdempotencyKey // nil: none
	lookup     *delivery.KeyLookup        // of the key; nil: it was not looked up
	values     map[string]any             // the body's, once the contract was checked; nil: none expected
	failure    *telematics.Error
	stack      []byte // of a panic
}

const callKey = "call"

func callOf(c echo.Context) *call { return c.Get(callKey).(*call) }

// begin numbers the request, with the caller's own number where it is a UUID, and sets
// the headers that every response has.
func (s *server) begin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		defer trace.StartRegion(c.Request().Context(), delivery.StepHTTP).End()
		request, header := c.Request(), c.Response().Header()
		id := requestID(request.Header)
		call := &call{id: id, idText: id.String(), started: s.Now()}
		c.Set(callKey, call)
		header.Set(echo.HeaderXRequestID, call.idText)
		header.Set(echo.HeaderXContentTypeOptions, "nosniff")
		if strings.HasPrefix(request.URL.Path, "/api") {
			header.Set(echo.HeaderCacheControl, "no-store")
		}
		return next(c)
	}
}

func requestID(h http.Header) uuid.UUID {
	if id, err := contract.ParseUUID(h.Get(echo.HeaderXRequestID)); err == nil {
		return id
	}
	return uuid.New()
}

// exactPath keeps one address for one thing: a path with an empty segment, a
// trailing slash included, is another path, and an unknown one.
func exactPath(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		path := c.Request().URL.Path
		if strings.Contains(path, "//") || len(path) > 1 && strings.HasSuffix(path, "/") {
			return echo.ErrNotFound
		}
		return next(c)
	}
}

// readBody reads the body to its end, even where it is ignored: what is too large is
// refused everywhere, and net/http notices a caller's hang-up only behind it.
func (call *call) readBody(c echo.Context) error { return call.readUpTo(c, maxBody) }

func (call *call) readUpTo(c echo.Context, limit int64) error {
	request := c.Request()
	if request.Body == http.NoBody { // of most orders, which would keep a buffer while they wait
		return nil
	}
	if request.ContentLength > limit {
		c.Response().Header().Set(echo.HeaderConnection, "close") // else net/http waits for the body first
		return tooLarge(limit)
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Response().Writer, request.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return tooLarge(limit)
	case err != nil:
		return malformed("The request body could not be read to its end.", fmt.Errorf("read body: %w", err))
	}
	call.body = body
	return nil
}

// author returns who asks, for the activity history.
func (call *call) author() telematics.Author {
	return telematics.Author{Actor: call.actor, RequestID: call.id}
}

// line returns the audit log entry for what the call did. It belongs to the actor's
// agency until it is known to be about a vehicle of another.
func (call *call) line(activity string, vehicle telematics.VehicleID, now time.Time) telematics.Activity {
	return telematics.Activity{
		At: now, Actor: call.actor, Agency: call.actor.Agency, Vehicle: vehicle, Action: activity,
		RequestID: call.id, Latency: now.Sub(call.started),
	}
}

const (
	headerIdempotencyKey      = "Idempotency-Key"
	headerIdempotencyReplayed = "Idempotency-Replayed"
	maxIdempotencyKey         = 255
)

// readKey reads the caller's own name for a POST. Its scope is the caller, and it stands
// for this request alone.
func (call *call) readKey(r *http.Request, wrong *contract.FieldErrors) {
	values := r.Header.Values(headerIdempotencyKey)
	if r.Method != http.MethodPost || len(values) == 0 {
		return
	}
	key := values[0]
	visible := strings.IndexFunc(key, func(c rune) bool { return c < '!' || c > '~' }) < 0
	if len(values) > 1 || key == "" || len(key) > maxIdempotencyKey || !visible {
		wrong.Add(headerIdempotencyKey, fmt.Sprintf("must be one header of 1 to %d visible ASCII characters", maxIdempotencyKey))
		return
	}
	request := sha256.New()
	fmt.Fprintf(request, "%s\n%s\n%s\n", r.Method, r.URL.EscapedPath(), r.URL.RawQuery)
	request.Write(call.body)
	call.key = &telematics.IdempotencyKey{Agency: call.actor.Agency, Subject: call.actor.Subject, Key: key}
	request.Sum(call.key.Fingerprint[:0])
}

// made returns what was made under the call's idempotency key, if it has one. The record is read once for a call.
func (s *server) made(ctx context.Context, call *call) (delivery.Made, bool, error) {
	if call.key == nil {
		return delivery.Made{}, false, nil
	}
	if call.lookup == nil {
		made, found, err := s.Bulks.Made(ctx, *call.key)
		if err != nil {
			return delivery.Made{}, false, err
		}
		call.lookup = &delivery.KeyLookup{Made: made, Found: found}
	}
	return call.lookup.Made, call.lookup.Found, nil
}

func keyRequired() *telematics.Error {
	return &telematics.Error{Code: idempotencyKeyRequired,
		Message: "This moves money: send an Idempotency-Key, a name of your own for this request, so that it can be repeated without moving it twice."}
}

// markReplayed says that the answer is that of an earlier request.
func markReplayed(c echo.Context, replayed bool) {
	if replayed {
		c.Response().Header().Set(headerIdempotencyReplayed, "true")
	}
}
