package httpapi

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// preflightAge is how long a browser remembers the answer to a preflight, in seconds.
const preflightAge = 600

// cors lets pages of other origins call the API from a browser: those of CORSOrigins, exactly. A preflight of another
// origin, and any other OPTIONS, is answered as if there were no CORS.
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
