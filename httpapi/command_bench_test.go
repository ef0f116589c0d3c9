package httpapi_test

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"motorpool/httpapi"
	"motorpool/httpapi/stream"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// prompt is a controller whose vehicles execute each command immediately. It stores nothing.
type prompt struct {
	httpapi.Controller // for methods that are not called
	command            telematics.Command
}

func (p prompt) Send(_ context.Context, o *delivery.Order) (delivery.Receipt, error) {
	c := p.command
	c.Vehicle, c.Action, c.Attention, c.Lane, c.Actor, c.RequestID = o.Vehicle, o.Action, o.Attention, o.Action.Lane(), o.Actor, o.RequestID
	return delivery.Receipt{Command: &c}, nil
}

// controlCall returns a function that repeats one call with an idempotency key.
func controlCall(b *testing.B, path, json string) func() *httptest.ResponseRecorder {
	b.Helper()
	handler := httpapi.New(httpapi.Config{
		Controller: prompt{command: settled(delivery.Order{Action: telematics.Lock}, telematics.Succeeded)},
		Tokens:     goodTokens(b), Feed: stream.New(stream.Config{}),
		// The log line is encoded and discarded.
		Log: slog.New(slog.NewJSONHandler(struct{ io.Writer }{io.Discard}, nil)),
		Now: func() time.Time { return now },
	})
	request := httptest.NewRequest(http.MethodPost, path, nil)
	request.Header.Set("Authorization", "Bearer "+adminToken())
	request.Header.Set("Idempotency-Key", "0b6e2c1e-5d5b-4f0e-9c0e-3a52f6a7d8b9")
	body := strings.NewReader(json)
	if json != "" {
		withJSON(json)(request)
		request.Body = io.NopCloser(body)
	}
	return func() *httptest.ResponseRecorder {
		body.Reset(json)
		recorded := httptest.NewRecorder()
		handler.ServeHTTP(recorded, request)
		if recorded.Code != http.StatusOK {
			b.Fatal(recorded.Code, recorded.Body)
		}
		return recorded
	}
}

// BenchmarkControl measures the HTTP part of a control call: routing, token, contract, envelope and
// log line.
func BenchmarkControl(b *testing.B) {
	for _, c := range []struct{ name, path, json string }{
		{"lock", lock, ""},
		{"attention", attention42, `{"signal":"horn","duration_ms":1500}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			call := controlCall(b, c.path, c.json)
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
	// The cost of recording such an answer, which the others include.
	b.Run("recorder", func(b *testing.B) {
		answer := controlCall(b, lock, "")()
		b.ReportAllocs()
		for b.Loop() {
			recorded := httptest.NewRecorder()
			maps.Copy(recorded.Header(), answer.Header())
			recorded.WriteHeader(http.StatusOK)
			_, _ = recorded.Write(answer.Body.Bytes())
		}
	})
}
