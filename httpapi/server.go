package httpapi

import (
	"cmp"
	"context"
	_ "embed"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/connections"
	"motorpool/httpapi/contract"
	"motorpool/httpapi/request"
	"motorpool/httpapi/signin"
	"motorpool/httpapi/stream"
	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/tracing"
)

// Config assembles the public handler. The ports, Tokens and Feed are required.
type Config struct {
	Controller Controller
	Fleet      Fleet
	Map        Map
	Commands   Commands
	Activities Activities
	Bulks      Bulks
	Halts      Halts
	History    request.History
	Refusals   request.Refusals
	Units      Units
	// SigningKey returns the id of the key that signs commands. Defaults to none: no unit is
	// reported to lack the key.
	SigningKey func() string
	Agencies   Agencies
	Editor     FleetEditor
	Alerts     Alerts
	Tokens     *auth.Tokens
	Feed       *stream.Feed

	// These serve clients, and administrators about bookings.
	Bookings          Bookings
	Offers            Offers
	Rentals           Rentals
	Wallet            Wallet
	Payments          Payments
	AgencyKeys        auth.AgencyKeys
	Signatures        auth.SignatureUses
	AgencyKeyRegistry AgencyKeyRegistry
	Areas             AreaRegistry
	// AreasAt finds the areas in which free vehicles stand. Defaults to none.
	AreasAt rental.Areas
	// Webhooks stores the payment processor's notices. Without it they are refused with 503.
	Webhooks Webhooks
	// LiveMoney accepts notices about real money and ignores those about test money. Defaults to
	// the reverse.
	LiveMoney bool

	// SignIn lets browsers use the API with a session. Without it there are no sessions.
	SignIn *signin.SignIn
	// SignInHint is text below the form for a name and a password. For development. Defaults to
	// none.
	SignInHint string

	// Console serves the pages below ConsolePath. Without it there are none.
	Console Pages

	// HideDocs removes the page /docs.
	HideDocs bool
	// DocsScript is JavaScript that /docs runs first. It must define
	// docsRequestInterceptor(request), which gets every request of the page. For development.
	// Defaults to none.
	DocsScript string

	// CompareClock returns an error while this instance's clock is wrong, which would date bookings
	// wrongly.
	CompareClock func(context.Context) error
	// Nudge is called when charges or notices may be due.
	Nudge func()
	// BookingChanged is called with each booking that was made or changed.
	BookingChanged func(rental.Booking)

	// CORSOrigins are the origins whose pages may call the API from a browser, such as
	// https://console.example.com. Defaults to none.
	CORSOrigins []string

	// TrustedProxies are the networks of proxies whose X-Forwarded-For is trusted. Defaults to
	// none.
	TrustedProxies []*net.IPNet

	// Places returns the addresses of positions.
	Places Places
	// Watches makes units report often while their vehicles are watched.
	Watches Watches
	// Telemetry reads the samples of vehicles' reports.
	Telemetry Telemetry
	// Limiter counts requests against Rates. Without it no request is counted.
	Limiter request.Limiter
	Rates   request.Rates
	// Times within which each instance applies a halt, or a change of keys or areas. The answer
	// waits for them. They default to zero.
	HaltWithin, KeysWithin, AreasWithin time.Duration
	// Budget bounds a command. Defaults to telematics.DefaultBudget.
	Budget time.Duration
	// ReadBudget bounds the answer to a read. Defaults to 5 s.
	ReadBudget time.Duration
	// Log logs each request. Defaults to slog.Default().
	Log *slog.Logger
	// Tracer traces each request. Defaults to none.
	Tracer *tracing.Tracer
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// server holds what all routes share. The handlers of each resource are methods of a type that
// embeds it.
type server struct {
	Config
	contract *contract.Document
	pipeline *request.Pipeline
	limits   *request.Limits
	audit    audit
}

//go:embed openapi.yaml
var contractYAML []byte

var loadContract = sync.OnceValue(func() *contract.Document { return contract.MustParse(contractYAML) })

// New returns the public handler: the API, its contract and its documentation. It does no I/O
// before the first request. The handler is safe for concurrent use.
func New(config Config) http.Handler { return newServer(config).handler() }

func newServer(config Config) *server {
	config.Budget = cmp.Or(config.Budget, telematics.DefaultBudget)
	config.ReadBudget = cmp.Or(config.ReadBudget, readBudget)
	config.Log = cmp.Or(config.Log, slog.Default())
	if config.Now == nil {
		config.Now = time.Now
	}
	s := &server{Config: config, contract: loadContract(), limits: &request.Limits{
		Rates: config.Rates, Limiter: config.Limiter, Vehicles: config.Fleet, Keys: config.Bulks, Timeout: config.ReadBudget,
		Now: config.Now,
	}}
	s.audit = audit{&request.Audit{History: config.History, Refusals: config.Refusals, Limits: s.limits}}
	s.pipeline = &request.Pipeline{
		Identify:   s.identify,
		Signatures: &auth.Signatures{Keys: config.AgencyKeys, Uses: config.Signatures, Timeout: config.ReadBudget, Now: config.Now},
		Limits:     s.limits, Audit: s.audit.Audit, Log: config.Log, Tracer: config.Tracer, Now: config.Now,
	}
	return s
}

func (s *server) handler() *echo.Echo {
	e := echo.New()
	e.IPExtractor = callersAddress(s.TrustedProxies)
	// Echo uses them for unknown paths and methods, too.
	e.Use(s.pipeline.Begin, s.pipeline.AccessLog, s.pipeline.RecoverPanic, s.cors(), exactPath, refuseOptions)
	s.routes(e)
	return e
}

// exactPath refuses paths with an empty segment or a trailing slash: each resource has one address.
// A segment may have escaped slashes, as that of a client whose subject is a URL.
func exactPath(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		path := c.Request().URL.EscapedPath()
		if strings.Contains(path, "//") || len(path) > 1 && strings.HasSuffix(path, "/") && path != ConsolePath {
			c.SetPath("") // the route that was found is not called
			return echo.ErrNotFound
		}
		return next(c)
	}
}

// callersAddress extracts the address of a caller: that of the connection, or, if that is a trusted
// proxy's, the last one in X-Forwarded-For that is not. Addresses that the caller itself writes
// there precede the one that the proxy adds, so they are never used.
func callersAddress(proxies []*net.IPNet) echo.IPExtractor {
	if len(proxies) == 0 {
		return echo.ExtractIPDirect()
	}
	trusted := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, network := range proxies {
		trusted = append(trusted, echo.TrustIPRange(network))
	}
	return echo.ExtractIPFromXFFHeader(trusted...)
}

// refuseOptions answers OPTIONS like any other method that a path does not have. Echo would answer
// it with an empty 204, and list it in Allow.
func refuseOptions(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		allow, routed := c.Get(echo.ContextKeyHeaderAllow).(string)
		if !routed {
			return next(c)
		}
		c.Response().Header().Set(echo.HeaderAllow, strings.TrimPrefix(allow, http.MethodOptions+", "))
		return echo.ErrMethodNotAllowed
	}
}

// NewServer returns a server with timeouts for slow and idle callers that still let the longest
// command answer. The caller starts and stops it.
func NewServer(addr string, handler http.Handler) *http.Server {
	return &http.Server{
		Addr:              addr,
		Handler:           handler,
		ReadHeaderTimeout: headerBudget,
		ReadTimeout:       headerBudget + bodyBudget,
		WriteTimeout:      headerBudget + bodyBudget + telematics.MaxBudget + answerSlack,
		IdleTimeout:       idleBudget,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       connections.Context,
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
			if c.Request().Method != http.MethodOptions {
				return false
			}
			if !allowed(h.Get(echo.HeaderOrigin)) || h.Get(echo.HeaderAccessControlRequestMethod) == "" {
				return true
			}
			c.Set(echo.ContextKeyHeaderAllow, "") // else Echo answers a preflight with Allow, too
			return false
		},
		AllowOriginFunc: func(origin string) (bool, error) { return allowed(origin), nil },
		AllowMethods:    []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowHeaders: []string{
			echo.HeaderAuthorization, echo.HeaderContentType, echo.HeaderXRequestID,
			"X-Agency-Signature", "Idempotency-Key", "Prefer", "Last-Event-ID", "If-Match", "If-None-Match",
		},
		ExposeHeaders: []string{
			echo.HeaderXRequestID, "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", echo.HeaderRetryAfter,
			echo.HeaderLocation, "Idempotency-Replayed", headerPreferenceApplied, echo.HeaderWWWAuthenticate, "ETag",
		},
		MaxAge: preflightAge, // no credentials: there are no cookies
	})
}
