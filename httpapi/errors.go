package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/contract"
	"motorpool/httpapi/errorcode"
	"motorpool/httpapi/resource"
	"motorpool/httpapi/signin"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/tracing"
)

// Codes of requests that are refused before anything is sent to a vehicle.
const (
	notFound           = errorcode.NotFound
	methodNotAllowed   = errorcode.MethodNotAllowed
	bodyTooLarge       = errorcode.BodyTooLarge
	forbidden          = auth.Forbidden
	rateLimited        = signin.RateLimited
	serviceUnavailable = errorcode.ServiceUnavailable

	haltNotFound            = errorcode.HaltNotFound
	agencyNotFound          = errorcode.AgencyNotFound
	agencyKeyNotFound       = errorcode.AgencyKeyNotFound
	idempotencyKeyRequired  = errorcode.IdempotencyKeyRequired
	webhookSignatureInvalid = errorcode.WebhookSignatureInvalid
)

// errorBody is the error of an envelope. Every key is always present.
type errorBody struct {
	Code       telematics.Code     `json:"code"`
	Retryable  bool                `json:"retryable"`
	RetryAfter *int64              `json:"retry_after"` // seconds
	Outcome    *telematics.Outcome `json:"outcome"`
	CommandID  *string             `json:"command_id"`
	Reason     *string             `json:"reason"`
	Detail     *string             `json:"detail"`
	DocURL     string              `json:"doc_url"`
}

func newErrorBody(e *telematics.Error) *errorBody {
	body := &errorBody{
		Code: e.Code, Retryable: e.Retryable, RetryAfter: resource.OrNull(wholeSeconds(e.RetryAfter)),
		Outcome: resource.OrNull(e.Outcome), Reason: resource.OrNull(e.Reason), Detail: resource.OrNull(e.Detail),
		DocURL: errorcode.URL(e.Code),
	}
	if e.Command != telematics.NoCommand {
		body.CommandID = resource.OrNull(e.Command.String())
	}
	return body
}

// fail answers with an error. All error responses of the API are written here.
func (s *server) fail(c *call, err error) {
	failure := asError(err)
	status, ok := errorcode.Status(failure.Code)
	if !ok {
		failure = telematics.Broken(fmt.Errorf("no HTTP status for %w", err))
		status = http.StatusInternalServerError
	}
	c.failure = failure
	if c.Response().Committed {
		return
	}
	if c.actor.Role == telematics.Client {
		failure = errorcode.ForDriver(failure)
	}
	body := newErrorBody(failure)
	if body.RetryAfter != nil && body.Retryable { // clients repeat a request after this header
		c.setHeader(echo.HeaderRetryAfter, strconv.FormatInt(*body.RetryAfter, 10))
	}
	var fields *contract.FieldErrors
	e := envelope{Message: failure.Message, Error: body}
	if errors.As(err, &fields) {
		e.Errors = fields.Messages()
	}
	if err := c.write(status, e); err != nil {
		s.Log.WarnContext(c.ctx(), "answer not written", "request_id", c.id, "err", err)
	}
}

// wholeSeconds rounds up, so that a caller that waits that long is not too early.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// asError converts an error to a *telematics.Error, which has a code.
func asError(err error) *telematics.Error {
	var known *telematics.Error
	var fields *contract.FieldErrors
	var routing *echo.HTTPError
	var server interface{ Unavailable() bool }
	switch {
	case errors.As(err, &fields):
		return &telematics.Error{Code: contract.ValidationFailed, Message: fields.Error()}
	case errors.As(err, &known):
		return known
	case errors.As(err, &routing) && routing.Code == http.StatusNotFound:
		return &telematics.Error{Code: notFound, Message: "No such endpoint."}
	case errors.As(err, &routing) && routing.Code == http.StatusMethodNotAllowed:
		return &telematics.Error{
			Code: methodNotAllowed, Message: "Method not allowed: the Allow header lists the methods of this endpoint.",
		}
	case errors.As(err, &server) && server.Unavailable(), errors.Is(err, context.DeadlineExceeded):
		return unavailable(err)
	default:
		return telematics.Broken(err)
	}
}

func unavailable(cause error) *telematics.Error {
	return &telematics.Error{Code: serviceUnavailable, Retryable: true, RetryAfter: retryUnavailable, Cause: cause,
		Message: signin.ServerNeeded}
}

func tooLarge(limit int64) *telematics.Error {
	return &telematics.Error{Code: bodyTooLarge, Message: fmt.Sprintf("The request body is larger than %d KiB.", limit>>10)}
}

func malformed(message string, cause error) *telematics.Error {
	return &telematics.Error{Code: contract.MalformedJSON, Message: message, Cause: cause}
}

func ofOneAgency(agency telematics.AgencyID) *telematics.Error {
	return &telematics.Error{Code: forbidden,
		Message: fmt.Sprintf("This requires the access token of an administrator of all agencies; yours is for agency %d.", agency)}
}

func missingScope(scope string) *telematics.Error {
	return &telematics.Error{Code: forbidden, Message: fmt.Sprintf("This requires an access token with the scope %s.", scope)}
}

func lowLevel(want, has auth.Level) *telematics.Error {
	return &telematics.Error{
		Code:    forbidden,
		Message: fmt.Sprintf("This requires an access token of the level %s; yours has the level %s.", want, has),
	}
}

func wrongRole(want telematics.Role) *telematics.Error {
	return &telematics.Error{Code: forbidden, Message: fmt.Sprintf("This requires an access token with the role %s.", want)}
}

// envelope is the body of every answer of the API.
type envelope struct {
	Success   bool                `json:"success"`
	Message   string              `json:"message"`
	Data      any                 `json:"data"`
	Meta      any                 `json:"meta,omitempty"`
	Error     *errorBody          `json:"error,omitempty"`
	Errors    map[string][]string `json:"errors,omitempty"`
	RequestID string              `json:"request_id"`
	Timestamp string              `json:"timestamp"`
}

func (c *call) answer(message string, data any) error { return c.answerWith(message, data, nil) }

func (c *call) answerWith(message string, data, meta any) error {
	return c.write(http.StatusOK, envelope{Success: true, Message: message, Data: data, Meta: meta})
}

// answerClient answers an agency's app, with its agency and the page in meta.
func (c *call) answerClient(status int, message string, data any, page ...pageMeta) error {
	return c.write(status, envelope{Success: true, Message: message, Data: data, Meta: clientMeta(c, page)})
}

// write sends an envelope. It encodes the whole body first, so that an encoding error can still be
// answered with its status.
func (c *call) write(status int, e envelope) error {
	defer tracing.Step(c.ctx(), delivery.StepAnswer).End()
	e.RequestID, e.Timestamp = c.idText, resource.Timestamp(c.now())
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return c.Blob(status, echo.MIMEApplicationJSON, body.Bytes())
}

// plural returns a number of things: "1 vehicle.", "2 entries.", "3 keys."
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing + "."
	}
	if stem, ok := strings.CutSuffix(thing, "y"); ok && !strings.ContainsAny(stem[len(stem)-1:], "aeiou") {
		return fmt.Sprintf("%d %sies.", n, stem)
	}
	return fmt.Sprintf("%d %ss.", n, thing)
}
