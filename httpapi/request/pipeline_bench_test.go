package request

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/telematics"
)

// BenchmarkAccessLog measures the log line of a request, encoded and discarded.
func BenchmarkAccessLog(b *testing.B) {
	nowhere := struct{ io.Writer }{io.Discard}
	for name, handler := range map[string]slog.Handler{"text": slog.NewTextHandler(nowhere, nil),
		"json": slog.NewJSONHandler(nowhere, nil)} {
		b.Run(name, func(b *testing.B) {
			p := &Pipeline{Log: slog.New(handler), Now: time.Now}
			request := httptest.NewRequest(http.MethodPost, "/api/v1/admin/vehicles/42/control/lock", nil)
			id := requestID(request.Header)
			c := &Call{
				Context: echo.New().NewContext(request, httptest.NewRecorder()), context: b.Context(),
				ID: id, idText: id.String(), started: p.Now(), Actor: telematics.Actor{Subject: "admin-7", Role: telematics.Admin},
			}
			logged := p.AccessLog(func(echo.Context) error { return nil })
			b.ReportAllocs()
			for b.Loop() {
				_ = logged(c)
			}
		})
	}
}
