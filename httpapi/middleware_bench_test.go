package httpapi

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"motorpool/telematics"
)

// BenchmarkAccessLog measures the log line of a request, encoded and discarded.
func BenchmarkAccessLog(b *testing.B) {
	nowhere := struct{ io.Writer }{io.Discard}
	for name, handler := range map[string]slog.Handler{"text": slog.NewTextHandler(nowhere, nil), "json": slog.NewJSONHandler(nowhere, nil)} {
		b.Run(name, func(b *testing.B) {
			s := newServer(Config{Log: slog.New(handler)})
			request := httptest.NewRequest(http.MethodPost, "/api/v1/admin/vehicles/42/control/lock", nil)
			id := requestID(request.Header)
			c := &call{
				Context: echo.New().NewContext(request, httptest.NewRecorder()), context: b.Context(),
				id: id, idText: id.String(), started: s.Now(), actor: telematics.Actor{Subject: "admin-7", Role: telematics.Admin},
			}
			logged := s.accessLog(func(echo.Context) error { return nil })
			b.ReportAllocs()
			for b.Loop() {
				_ = logged(c)
			}
		})
	}
}
