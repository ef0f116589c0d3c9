package httpapi

import (
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"
)

// accessLog logs each request when it was answered, with the cause of its failure. Headers, query and bodies are
// not logged: they may hold secrets.
func (s *server) accessLog(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := next(c); err != nil {
			c.Error(err) // answers now: the log has the status
		}
		s.logRequest(c)
		return nil
	}
}

func (s *server) logRequest(c echo.Context) {
	call, request, response := callOf(c), c.Request(), c.Response()
	attrs := []slog.Attr{
		slog.String("method", request.Method),
		slog.String("path", request.URL.Path),
		slog.Int("status", response.Status),
		slog.Duration("took", s.Now().Sub(call.started)),
		slog.Int64("bytes", response.Size),
		slog.String("request_id", call.idText),
		slog.String("remote", request.RemoteAddr),
	}
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
			level = slog.LevelError // unless the caller closed the connection
		}
	}
	if call.stack != nil {
		attrs = append(attrs, slog.String("stack", string(call.stack)))
	}
	s.Log.LogAttrs(request.Context(), level, "request", attrs...)
}
