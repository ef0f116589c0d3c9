package request

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
	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/tracing"
)

// ErrorBody is the error of an answer. Every key but checks is always present.
type ErrorBody struct {
	Code       telematics.Code     `json:"code"`
	Retryable  bool                `json:"retryable"`
	RetryAfter *int64              `json:"retry_after"` // seconds
	Outcome    *telematics.Outcome `json:"outcome"`
	CommandID  *string             `json:"command_id"`
	Reason     *string             `json:"reason"`
	Detail     *string             `json:"detail"`
	DocURL     string              `json:"doc_url"`
	// Only of a return that is not possible.
	Checks []rental.Check `json:"checks,omitempty"`
}

// NewErrorBody returns the body of an error.
func NewErrorBody(e *telematics.Error) *ErrorBody {
	body := &ErrorBody{
		Code: e.Code, Retryable: e.Retryable, RetryAfter: resource.OrNull(wholeSeconds(e.RetryAfter)),
		Outcome: resource.OrNull(e.Outcome), Reason: resource.OrNull(e.Reason), Detail: resource.OrNull(e.Detail),
		DocURL: errorcode.URL(e.Code),
	}
	if e.Command != telematics.NoCommand {
		body.CommandID = resource.OrNull(e.Command.String())
	}
	return body
}

// Fail records an error for the access log, and sets Retry-After where that helps. It returns the
// error with its code and message, and its HTTP status.
func (c *Call) Fail(err error) (*telematics.Error, int) {
	failure := AsError(err)
	status, ok := errorcode.Status(failure.Code)
	if !ok {
		failure = telematics.Broken(fmt.Errorf("no HTTP status for %w", err))
		status = http.StatusInternalServerError
	}
	c.failure = failure
	if failure.RetryAfter > 0 && failure.Retryable { // clients repeat a request after this header
		c.SetHeader(echo.HeaderRetryAfter, strconv.FormatInt(wholeSeconds(failure.RetryAfter), 10))
	}
	return failure, status
}

// fail answers with an error. All error responses of the API are written here.
func (p *Pipeline) fail(c *Call, err error) {
	failure, status := c.Fail(err)
	if c.Response().Committed {
		return
	}
	if c.Actor.Role == telematics.Client {
		failure = errorcode.ForDriver(failure)
	}
	var fields *contract.FieldErrors
	var refused *rental.ReturnRefusal
	e := envelope{Message: failure.Message, Error: NewErrorBody(failure)}
	if errors.As(err, &fields) {
		e.Errors = fields.Messages()
	}
	if errors.As(err, &refused) {
		e.Error.Checks = refused.Checks
	}
	if err := c.write(status, e); err != nil {
		p.Log.WarnContext(c.Ctx(), "answer not written", "request_id", c.ID, "err", err)
	}
}

// wholeSeconds rounds up, so that a caller that waits that long is not too early.
func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// AsError converts an error to a *telematics.Error, which has a code.
func AsError(err error) *telematics.Error {
	var known *telematics.Error
	var fields *contract.FieldErrors
	var routing *echo.HTTPError
	switch {
	case errors.As(err, &fields):
		return &telematics.Error{Code: contract.ValidationFailed, Message: fields.Error()}
	case errors.As(err, &known):
		return known
	case errors.As(err, &routing) && routing.Code == http.StatusNotFound:
		return &telematics.Error{Code: errorcode.NotFound, Message: "No such endpoint."}
	case errors.As(err, &routing) && routing.Code == http.StatusMethodNotAllowed:
		return &telematics.Error{
			Code: errorcode.MethodNotAllowed, Message: "Method not allowed: the Allow header lists the methods of this endpoint.",
		}
	case IsUnavailable(err), errors.Is(err, context.DeadlineExceeded):
		return &telematics.Error{
			Code: errorcode.ServiceUnavailable, Retryable: true, RetryAfter: RetryUnavailable, Cause: err, Message: signin.ServerNeeded,
		}
	default:
		return telematics.Broken(err)
	}
}

// IsUnavailable reports whether an error says that a server is unavailable.
func IsUnavailable(err error) bool {
	var server interface{ Unavailable() bool }
	return errors.As(err, &server) && server.Unavailable()
}

func tooLarge(limit int64) *telematics.Error {
	return &telematics.Error{Code: errorcode.BodyTooLarge, Message: fmt.Sprintf("The request body is larger than %d KiB.", limit>>10)}
}

// Malformed returns the error for a body that cannot be parsed.
func Malformed(message string, cause error) *telematics.Error {
	return &telematics.Error{Code: contract.MalformedJSON, Message: message, Cause: cause}
}

// Forbidden returns the error for an actor whose access token does not allow a request.
func Forbidden(format string, args ...any) *telematics.Error {
	return &telematics.Error{Code: auth.Forbidden, Message: fmt.Sprintf(format, args...)}
}

func keyRequired() *telematics.Error {
	return &telematics.Error{
		Code: errorcode.IdempotencyKeyRequired,
		Message: "Idempotency-Key is required, because this request moves money: " +
			"choose a unique value, so that the request can be repeated safely.",
	}
}

// envelope is the body of every answer of the API.
type envelope struct {
	Success   bool                `json:"success"`
	Message   string              `json:"message"`
	Data      any                 `json:"data"`
	Meta      any                 `json:"meta,omitempty"`
	Error     *ErrorBody          `json:"error,omitempty"`
	Errors    map[string][]string `json:"errors,omitempty"`
	RequestID string              `json:"request_id"`
	Timestamp string              `json:"timestamp"`
}

// Answer answers 200. Its error is one of encoding or of the connection.
func (c *Call) Answer(message string, data any) error {
	return c.AnswerWith(http.StatusOK, message, data, nil)
}

// AnswerWith answers with a status and with meta; nil: none. Its error is that of Answer.
func (c *Call) AnswerWith(status int, message string, data, meta any) error {
	return c.write(status, envelope{Success: true, Message: message, Data: data, Meta: meta})
}

// AnswerClient answers an agency's app, with its agency and the page in meta. Its error is that of
// Answer.
func (c *Call) AnswerClient(status int, message string, data any, page ...PageMeta) error {
	return c.AnswerWith(status, message, data, clientMeta(c, page))
}

// write sends an envelope. It encodes the whole body first, so that an encoding error can still be
// answered with its status.
func (c *Call) write(status int, e envelope) error {
	defer tracing.Step(c.Ctx(), delivery.StepAnswer).End()
	e.RequestID, e.Timestamp = c.idText, resource.Timestamp(c.Now())
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return c.Blob(status, echo.MIMEApplicationJSON, body.Bytes())
}

// Plural returns a number of things: "1 vehicle.", "2 entries.", "3 keys."
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing + "."
	}
	if stem, ok := strings.CutSuffix(thing, "y"); ok && !strings.ContainsAny(stem[len(stem)-1:], "aeiou") {
		return fmt.Sprintf("%d %sies.", n, stem)
	}
	return fmt.Sprintf("%d %ss.", n, thing)
}
