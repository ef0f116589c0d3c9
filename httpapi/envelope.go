package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/tracing"
)

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

// answerClient answers an agency's app: its agency is in meta, next to the page.
func (c *call) answerClient(status int, message string, data any, page ...pageMeta) error {
	return c.write(status, envelope{Success: true, Message: message, Data: data, Meta: clientMeta(c, page)})
}

// write sends an envelope. It encodes the whole body first, so that what cannot be encoded still
// becomes an error with its status.
func (c *call) write(status int, e envelope) error {
	defer tracing.Step(c.ctx(), delivery.StepAnswer).End()
	e.RequestID, e.Timestamp = c.idText, timestamp(c.now())
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return c.Blob(status, echo.MIMEApplicationJSON, body.Bytes())
}

// timestamp is ISO 8601 in UTC with milliseconds.
func timestamp(t time.Time) string { return telematics.FormatTime(t) }

// timestampOrNull is null for the zero time.
func timestampOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := timestamp(t)
	return &s
}

// orNull is null for a zero value that means none.
func orNull[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}

// plural words a number: "1 vehicle.", "2 entries."
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing + "."
	}
	if stem, ok := strings.CutSuffix(thing, "y"); ok {
		return fmt.Sprintf("%d %sies.", n, stem)
	}
	return fmt.Sprintf("%d %ss.", n, thing)
}
