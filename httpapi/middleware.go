package httpapi

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"motorpool/telematics"
)

// accessLog logs each request when it was answered, with the cause of its failure. Headers, query
// and bodies are not logged: they may hold secrets.
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
	}
	attrs = append(attrs, remoteAttrs(c.RealIP(), request.RemoteAddr)...)
	if call.actor.Subject != "" {
		attrs = append(attrs, slog.String("actor", call.actor.Subject), slog.String("role", string(call.actor.Role)))
	}
	if call.command != telematics.NoCommand {
		attrs = append(attrs, slog.String("command", call.command.String()))
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

// remoteAttrs returns the address of the caller, and, where that came from a trusted proxy, the
// proxy's.
func remoteAttrs(caller, connection string) []slog.Attr {
	if host, _, err := net.SplitHostPort(connection); err != nil || host == caller {
		return []slog.Attr{slog.String("remote", connection)}
	}
	return []slog.Attr{slog.String("remote", caller), slog.String("proxy", connection)}
}

// recoverPanic turns a panic into the error that its caller may see; the log gets the stack.
func (s *server) recoverPanic(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			switch r := recover(); r {
			case nil:
			case http.ErrAbortHandler: // asks net/http to drop the connection
				panic(r)
			default:
				callOf(c).stack = debug.Stack()
				err = telematics.Broken(fmt.Errorf("panic: %v", r))
			}
		}()
		return next(c)
	}
}

// cors lets pages of other origins call the API from a browser: those of CORSOrigins, exactly. A
// preflight of another origin, and any other OPTIONS, is answered as if there were no CORS.
func (s *server) cors() echo.MiddlewareFunc {
	if len(s.CORSOrigins) == 0 {
		return func(next echo.HandlerFunc) echo.HandlerFunc { return next }
	}
	allowed := func(origin string) bool { return slices.Contains(s.CORSOrigins, origin) }
	return middleware.CORSWithConfig(middleware.CORSConfig{
		Skipper: func(c echo.Context) bool {
			h := c.Request().Header
			preflight := allowed(h.Get(echo.HeaderOrigin)) && h.Get(echo.HeaderAccessControlRequestMethod) != ""
			return c.Request().Method == http.MethodOptions && !preflight
		},
		AllowOriginFunc: func(origin string) (bool, error) { return allowed(origin), nil },
		AllowMethods:    []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete},
		AllowHeaders: []string{
			echo.HeaderAuthorization, echo.HeaderContentType, echo.HeaderXRequestID,
			"X-Agency-Signature", "Idempotency-Key", "Prefer", "Last-Event-ID",
		},
		ExposeHeaders: []string{
			echo.HeaderXRequestID, headerLimit, headerRemaining, headerReset, echo.HeaderRetryAfter, echo.HeaderLocation,
			headerIdempotencyReplayed, headerPreferenceApplied, echo.HeaderWWWAuthenticate,
		},
		MaxAge: preflightAge, // no credentials: there are no cookies
	})
}
