package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/contract"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/tracing"
)

// handler answers a request. An error that it returns becomes the response: see fail.
type handler func(*call) error

// call is a request in progress, and Echo's context of it.
type call struct {
	echo.Context
	context context.Context // see ctx; kept here, since setting it in the request would copy that
	clock   func() time.Time
	id      uuid.UUID // the request id
	idText  string    // likewise, as text
	started time.Time

	actor      telematics.Actor // set once the token is verified
	level      auth.Level       // likewise: of an administrator
	scopes     auth.Scopes      // likewise
	tokenUntil time.Time        // likewise: when it is refused
	agencyCode string           // of the agency whose app signed the request; empty: none

	quota  telematics.Quota           // of the counted limit with the least left; zero: none
	body   []byte                     // once it is read
	key    *telematics.IdempotencyKey // nil: none
	lookup *delivery.KeyLookup        // of the key; nil: it was not looked up
	values map[string]any             // checked members of the body; nil: none is expected

	command telematics.CommandID // that the request has ordered
	failure *telematics.Error
	stack   []byte // of a panic
}

// callOf returns the call that begin has passed to the next handlers as their context.
func callOf(c echo.Context) *call { return c.(*call) }

// begin assigns the request id, the caller's if that is a UUID, and passes the call to next.
func (s *server) begin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		defer tracing.Step(context.Background(), delivery.StepHTTP).End() // the span comes below
		request := c.Request()
		id := requestID(request.Header)
		call := &call{Context: c, clock: s.Now, id: id, idText: id.String(), started: s.Now()}
		ctx, span := s.Tracer.Request(tracing.WithRequest(request.Context(), call.idText), request.Header, request.Method)
		defer span.End()
		call.context = ctx
		c.Response().Before(call.setHeaders)
		err := next(call)
		describeSpan(span, call)
		return err
	}
}

// setHeaders sets the headers of every response, when it is written: so a request that waits for
// its vehicle needs no memory for them.
func (c *call) setHeaders() {
	c.setHeader(echo.HeaderXRequestID, c.idText)
	c.setHeader(echo.HeaderXContentTypeOptions, "nosniff")
	if header := c.Response().Header(); strings.HasPrefix(c.Request().URL.Path, "/api") && header.Get(echo.HeaderCacheControl) == "" {
		header.Set(echo.HeaderCacheControl, "no-store")
	}
	if q := c.quota; q.Limit != 0 {
		c.setHeader(headerLimit, strconv.Itoa(q.Limit))
		c.setHeader(headerRemaining, strconv.Itoa(q.Remaining))
		c.setHeader(headerReset, strconv.FormatInt(wholeSeconds(q.Reset), 10))
	}
}

// describeSpan adds route, status and request id to the span of a request. The path may name a
// booking of a client, so the span has the route instead.
func describeSpan(span tracing.Span, c *call) {
	if !span.IsRecording() {
		return
	}
	if route := c.Path(); route != "" {
		span.Rename(c.Request().Method + " " + route)
		span.Set(tracing.String("http.route", route))
	}
	span.Set(
		tracing.String("http.request.method", c.Request().Method), tracing.Int("http.response.status_code", c.Response().Status),
		tracing.String("motorpool."+tracing.RequestKey, c.idText),
	)
	if c.failure != nil && c.Response().Status >= http.StatusInternalServerError {
		span.Fail(string(c.failure.Code))
	}
}

func requestID(h http.Header) uuid.UUID {
	if id, err := contract.ParseUUID(h.Get(echo.HeaderXRequestID)); err == nil {
		return id
	}
	return uuid.New()
}

// exactPath refuses paths with an empty segment or a trailing slash: each resource has one address.
func exactPath(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		path := c.Request().URL.Path
		if strings.Contains(path, "//") || len(path) > 1 && strings.HasSuffix(path, "/") && path != ConsolePath {
			c.SetPath("") // the route that was found is not called
			return echo.ErrNotFound
		}
		return next(c)
	}
}

func (c *call) now() time.Time { return c.clock() }

// ctx returns a context that ends when the caller disconnects, and, in a read, after
// Config.ReadBudget.
func (c *call) ctx() context.Context { return c.context }

// request returns a copy of the request with the context of ctx.
func (c *call) request() *http.Request { return c.Request().WithContext(c.ctx()) }

func (c *call) setHeader(name, value string) { c.Response().Header().Set(name, value) }

// readBody reads the body to its end, even if it is ignored: only then does net/http notice that a
// caller disconnects.
func (c *call) readBody(limit int64) error {
	request := c.Request()
	if request.Body == http.NoBody { // most orders; saves a buffer while they wait
		return nil
	}
	if request.ContentLength > limit {
		c.setHeader(echo.HeaderConnection, "close") // else net/http waits for the body first
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
	c.body = body
	return nil
}

// author returns the actor and the id of the request, for the audit log.
func (c *call) author() telematics.Author {
	return telematics.Author{Actor: c.actor, RequestID: c.id}
}

// entry returns the audit log entry of the request. Its Agency is the actor's; set it if the
// request is about a vehicle of another one.
func (c *call) entry(activity string, vehicle telematics.VehicleID) telematics.Activity {
	now := c.now()
	return telematics.Activity{
		At: now, Actor: c.actor, Agency: c.actor.Agency, Vehicle: vehicle, Action: activity,
		RequestID: c.id, Latency: now.Sub(c.started),
	}
}

const (
	headerIdempotencyKey      = "Idempotency-Key"
	headerIdempotencyReplayed = "Idempotency-Replayed"
	maxIdempotencyKey         = 255
)

// readKey reads the idempotency key of a POST. Its scope is the caller, its fingerprint the
// request.
func (c *call) readKey(wrong *contract.FieldErrors) {
	r := c.Request()
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
	request.Write(c.body)
	c.key = &telematics.IdempotencyKey{Agency: c.actor.Agency, Subject: c.actor.Subject, Key: key}
	request.Sum(c.key.Fingerprint[:0])
}

// lookUpKey returns the result of an earlier request with the call's idempotency key, if there is
// one. It queries the store only once per call.
func (c *call) lookUpKey(ctx context.Context, record Bulks) (delivery.KeyResult, bool, error) {
	if c.key == nil {
		return delivery.KeyResult{}, false, nil
	}
	if c.lookup == nil {
		made, found, err := record.FindByKey(ctx, *c.key)
		if err != nil {
			return delivery.KeyResult{}, false, err
		}
		c.lookup = &delivery.KeyLookup{Result: made, Found: found}
	}
	return c.lookup.Result, c.lookup.Found, nil
}

func keyRequired() *telematics.Error {
	return &telematics.Error{
		Code:    idempotencyKeyRequired,
		Message: "Idempotency-Key is required, because this request moves money: choose a unique value, so that the request can be repeated safely.",
	}
}

// markReplayed sets the header Idempotency-Replayed, if the answer is that of an earlier request.
func (c *call) markReplayed(replayed bool) {
	if replayed {
		c.setHeader(headerIdempotencyReplayed, "true")
	}
}
