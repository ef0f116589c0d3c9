// Package request is what all routes of the API share: the call, the gate before each handler, the
// limits, and the answers. It knows no handler and no route.
package request

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
)

// Handler answers a request. An error that it returns becomes the response: see Call.Fail.
type Handler func(*Call) error

// Call is a request in progress, and Echo's context of it. It is not safe for concurrent use.
type Call struct {
	echo.Context
	context context.Context // see Ctx; kept here, since setting it in the request would copy that
	clock   func() time.Time
	ID      uuid.UUID // the request id
	idText  string    // likewise, as text
	started time.Time

	Actor      telematics.Actor // set once the token is verified
	Level      auth.Level       // likewise: of an administrator
	Scopes     auth.Scopes      // likewise
	TokenUntil time.Time        // likewise: when it is refused
	agencyCode string           // of the agency whose app signed the request; empty: none

	quota  telematics.Quota           // of the counted limit with the least left; zero: none
	Body   []byte                     // once it is read
	Key    *telematics.IdempotencyKey // nil: none
	Lookup *delivery.KeyLookup        // of the key; nil: it was not looked up
	Values map[string]any             // checked members of the body; nil: none is expected

	command telematics.CommandID // that the request has ordered
	failure *telematics.Error
	stack   []byte // of a panic
}

// CallOf returns the call that Begin has passed to the next handlers as their context.
func CallOf(c echo.Context) *Call { return c.(*Call) }

// setHeaders sets the headers of every response, when it is written: so a request that waits for
// its vehicle needs no memory for them.
func (c *Call) setHeaders() {
	c.SetHeader(echo.HeaderXRequestID, c.idText)
	c.SetHeader(echo.HeaderXContentTypeOptions, "nosniff")
	if header := c.Response().Header(); strings.HasPrefix(c.Request().URL.Path, "/api") && header.Get(echo.HeaderCacheControl) == "" {
		header.Set(echo.HeaderCacheControl, "no-store")
	}
	if q := c.quota; q.Limit != 0 {
		c.SetHeader("RateLimit-Limit", strconv.Itoa(q.Limit))
		c.SetHeader("RateLimit-Remaining", strconv.Itoa(q.Remaining))
		c.SetHeader("RateLimit-Reset", strconv.FormatInt(wholeSeconds(q.Reset), 10))
	}
}

func requestID(h http.Header) uuid.UUID {
	if id, err := contract.ParseUUID(h.Get(echo.HeaderXRequestID)); err == nil {
		return id
	}
	return uuid.New()
}

// Now returns the time.
func (c *Call) Now() time.Time { return c.clock() }

// Ctx returns a context that ends when the caller disconnects, and, in a read, after the budget of
// Within.
func (c *Call) Ctx() context.Context { return c.context }

// Detached returns a context for a change that is completed even if its caller disconnects.
func (c *Call) Detached(budget time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(c.context), budget)
}

// HTTPRequest returns a copy of the request with the context of Ctx.
func (c *Call) HTTPRequest() *http.Request { return c.Request().WithContext(c.context) }

// SetHeader sets a header of the answer.
func (c *Call) SetHeader(name, value string) { c.Response().Header().Set(name, value) }

// ReadBody reads the body to its end, even if it is ignored: only then does net/http notice that a
// caller disconnects. Its error is a *telematics.Error: a body over the limit, in bytes, or one
// that ends early.
func (c *Call) ReadBody(limit int64) error {
	request := c.Request()
	if request.Body == http.NoBody { // most orders; saves a buffer while they wait
		return nil
	}
	if request.ContentLength > limit {
		c.SetHeader(echo.HeaderConnection, "close") // else net/http waits for the body first
		return tooLarge(limit)
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Response().Writer, request.Body, limit))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return tooLarge(limit)
	case err != nil:
		return Malformed("The request body could not be read to its end.", fmt.Errorf("read body: %w", err))
	}
	c.Body = body
	return nil
}

// Author returns the actor and the id of the request, for the audit log.
func (c *Call) Author() telematics.Author {
	return telematics.Author{Actor: c.Actor, RequestID: c.ID}
}

// Entry returns the audit log entry of the request. Its Agency is the actor's; set it if the
// request is about a vehicle of another one.
func (c *Call) Entry(activity string, vehicle telematics.VehicleID) telematics.Activity {
	now := c.Now()
	return telematics.Activity{
		At: now, Actor: c.Actor, Agency: c.Actor.Agency, Vehicle: vehicle, Action: activity,
		RequestID: c.ID, Latency: now.Sub(c.started),
	}
}

// Ordered records the command of an order, or of its refusal, for the access log.
func (c *Call) Ordered(receipt delivery.Receipt, err error) {
	var refusal *telematics.Error
	switch {
	case receipt.Command != nil:
		c.command = receipt.Command.ID
	case errors.As(err, &refusal):
		c.command = refusal.Command
	}
}

const (
	headerIdempotencyKey = "Idempotency-Key"
	maxIdempotencyKey    = 255
)

// readKey reads the idempotency key of a POST. Its scope is the caller, its fingerprint the
// request.
func (c *Call) readKey(wrong *contract.FieldErrors) {
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
	request.Write(c.Body)
	c.Key = &telematics.IdempotencyKey{Agency: c.Actor.Agency, Subject: c.Actor.Subject, Key: key}
	request.Sum(c.Key.Fingerprint[:0])
}

// LookUpKey returns the result of an earlier request with the call's idempotency key, if there is
// one. It queries the store only once per call. Its error is that of Keys.
func (c *Call) LookUpKey(ctx context.Context, keys Keys) (delivery.KeyResult, bool, error) {
	if c.Key == nil {
		return delivery.KeyResult{}, false, nil
	}
	if c.Lookup == nil {
		made, found, err := keys.FindByKey(ctx, *c.Key)
		if err != nil {
			return delivery.KeyResult{}, false, err
		}
		c.Lookup = &delivery.KeyLookup{Result: made, Found: found}
	}
	return c.Lookup.Result, c.Lookup.Found, nil
}

// MarkReplayed sets the header Idempotency-Replayed, if the answer is that of an earlier request.
func (c *Call) MarkReplayed(replayed bool) {
	if replayed {
		c.SetHeader("Idempotency-Replayed", "true")
	}
}
