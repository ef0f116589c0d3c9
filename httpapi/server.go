package httpapi

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/connections"
	"motorpool/httpapi/contract"
	"motorpool/httpapi/signin"
	"motorpool/httpapi/stream"
	"motorpool/telematics"
	"motorpool/tracing"
)

// Config assembles the public handler. The ports, Tokens and Feed are required.
type Config struct {
	Controller Controller
	Fleet      Fleet
	Bulks      Bulks
	Halts      Halts
	History    History
	Refusals   Refusals
	Units      Units
	// SigningKey returns the id of the key that signs commands. Defaults to none: no unit is
	// reported to lack the key.
	SigningKey func() string
	Agencies   Agencies
	Editor     FleetEditor
	Tokens     *auth.Tokens
	Feed       *stream.Feed

	// These serve clients, and administrators about bookings.
	Bookings          Bookings
	Wallet            Wallet
	Payments          Payments
	AgencyKeys        auth.AgencyKeys
	Signatures        auth.SignatureUses
	AgencyKeyRegistry AgencyKeyRegistry
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
	// wrongly. Defaults to none.
	CompareClock func(context.Context) error
	// Nudge is called when charges or notices may be due. Defaults to no call.
	Nudge func()

	// CORSOrigins are the origins whose pages may call the API from a browser, such as
	// https://console.example.com. Defaults to none.
	CORSOrigins []string

	// TrustedProxies are the networks of proxies whose X-Forwarded-For is trusted. Defaults to
	// none.
	TrustedProxies []*net.IPNet

	// Places returns the addresses of positions. Without it all addresses are null.
	Places Places
	// Watches makes units report often while their vehicles are watched. Defaults to never.
	Watches Watches
	// Telemetry reads the samples of vehicles' reports. Defaults to none.
	Telemetry Telemetry
	// Limiter counts requests against Rates. Without it no request is counted.
	Limiter Limiter
	Rates   Rates
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

// server holds what all routes share: the gate before each handler, and the answer to each error.
type server struct {
	Config
	contract   *contract.Document
	signatures *auth.Signatures
	limits     *limits
	audit      *audit
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
	if config.Telemetry == nil {
		config.Telemetry = noTelemetry{}
	}
	if config.Watches == nil {
		config.Watches = notWatched{}
	}
	if config.SigningKey == nil {
		config.SigningKey = func() string { return "" }
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	counted := &limits{
		Rates: config.Rates, limiter: config.Limiter, fleet: config.Fleet, bulks: config.Bulks, timeout: config.ReadBudget, now: config.Now,
	}
	return &server{
		Config: config, contract: loadContract(), limits: counted,
		signatures: &auth.Signatures{Keys: config.AgencyKeys, Uses: config.Signatures, Timeout: config.ReadBudget, Now: config.Now},
		audit:      &audit{history: config.History, refusals: config.Refusals, limits: counted},
	}
}

func (s *server) handler() *echo.Echo {
	e := echo.New()
	e.IPExtractor = callersAddress(s.TrustedProxies)
	// Echo uses them for unknown paths and methods, too.
	e.Use(s.begin, s.accessLog, s.recoverPanic, s.cors(), exactPath, refuseOptions)
	s.routes(e)
	return e
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

// accessLog logs each request after its answer, with the cause of its failure. Headers, query and
// bodies are not logged: they may contain secrets.
func (s *server) accessLog(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := next(c); err != nil {
			s.fail(callOf(c), err) // answers now, so that the status is logged
		}
		s.logRequest(callOf(c))
		return nil
	}
}

func (s *server) logRequest(c *call) {
	level, attrs := s.describeRequest(c)
	s.Log.LogAttrs(c.ctx(), level, "request", attrs...)
}

func (s *server) describeRequest(c *call) (slog.Level, []slog.Attr) {
	request, response := c.Request(), c.Response()
	attrs := []slog.Attr{
		slog.String("method", request.Method),
		slog.String("path", request.URL.Path),
		slog.Int("status", response.Status),
		slog.Duration("took", s.Now().Sub(c.started)),
		slog.Int64("bytes", response.Size),
		slog.String("request_id", c.idText),
	}
	attrs = append(attrs, remoteAttrs(c.RealIP(), request.RemoteAddr)...)
	if c.actor.Subject != "" {
		attrs = append(attrs, slog.String("actor", c.actor.Subject), slog.String("role", string(c.actor.Role)))
	}
	if c.command != telematics.NoCommand {
		attrs = append(attrs, slog.String("command", c.command.String()))
	}
	level := slog.LevelInfo
	if f := c.failure; f != nil {
		attrs = append(attrs, slog.String("code", string(f.Code)))
		if f.Cause != nil {
			attrs = append(attrs, slog.Any("err", f.Cause))
		}
		if response.Status == http.StatusInternalServerError && request.Context().Err() == nil {
			level = slog.LevelError // unless the caller closed the connection
		}
	}
	if c.stack != nil {
		attrs = append(attrs, slog.String("stack", string(c.stack)))
	}
	return level, attrs
}

// remoteAttrs returns the address of the caller and, if that came from a trusted proxy, the
// proxy's.
func remoteAttrs(caller, connection string) []slog.Attr {
	if host, _, err := net.SplitHostPort(connection); err != nil || host == caller {
		return []slog.Attr{slog.String("remote", connection)}
	}
	return []slog.Attr{slog.String("remote", caller), slog.String("proxy", connection)}
}

// recoverPanic converts a panic to an internal error; only the log gets the stack.
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
			"X-Agency-Signature", "Idempotency-Key", "Prefer", "Last-Event-ID",
		},
		ExposeHeaders: []string{
			echo.HeaderXRequestID, headerLimit, headerRemaining, headerReset, echo.HeaderRetryAfter, echo.HeaderLocation,
			headerIdempotencyReplayed, headerPreferenceApplied, echo.HeaderWWWAuthenticate,
		},
		MaxAge: preflightAge, // no credentials: there are no cookies
	})
}
