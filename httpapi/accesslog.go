package httpapi

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// mostAttrs is how many attributes a line may have. So many have room on the stack.
const mostAttrs = 12

// accessLog writes one line for each request, with the cause of what broke. Neither
// headers nor query nor bodies are in it: they may hold secrets.
func (s *server) accessLog(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := next(c); err != nil {
			c.Error(err) // answer now, so that the line tells of the answer
		}
		s.logRequest(c)
		return nil
	}
}

// logRequest writes the line. Its attributes are on the stack, so it is not the function that waits for the handler.
func (s *server) logRequest(c echo.Context) {
	call, request, response := callOf(c), c.Request(), c.Response()
	attrs := append(make([]slog.Attr, 0, mostAttrs),
		slog.String("method", request.Method),
		slog.String("path", request.URL.Path),
		slog.Int("status", response.Status),
		slog.Duration("took", s.Now().Sub(call.started)),
		slog.Int64("bytes", response.Size),
		slog.String("request_id", call.idText),
		slog.String("remote", request.RemoteAddr),
	)
	if call.actor.Subject != "" {
		attrs = append(attrs, slog.String("actor", call.actor.Subject), slog.String("role", string(call.actor.Role)))
	}
	level := slog.LevelInfo
	if f := call.failure; f != nil {
		attrs = append(attrs, slog.String("code", string(f.Code)))
		if f.Cause != nil {
			attrs = append(attrs, slog.Any("err", f.Cause))
		}
		if response.Status == http.StatusInternalServerError && request.Context().Err() == nil {
			level = slog.LevelError // a caller that left is no fault of ours
		}
	}
	if call.stack != nil {
		attrs = append(attrs, slog.String("stack", string(call.stack)))
	}
	if ctx := request.Context(); s.Log.Enabled(ctx, level) {
		line := slog.NewRecord(time.Now(), level, "request", 0) // of no place in the code: to look that up costs more than the line
		line.AddAttrs(attrs...)
		_ = s.Log.Handler().Handle(ctx, line) // as slog does
	}
}
