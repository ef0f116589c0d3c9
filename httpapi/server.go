package httpapi

import (
	"cmp"
	_ "embed"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/connections"
	"motorpool/httpapi/contract"
	"motorpool/httpapi/stream"
	"motorpool/telematics"
)

// Config assembles the public handler. The ports, Tokens and Feed are required.
type Config struct {
	Controller Controller
	Fleet      Fleet
	Bulks      Bulks
	Halts      Halts
	History    History
	Refusals   Refusals
	Strangers  Strangers
	Tokens     *auth.Tokens
	Feed       *stream.Feed

	// Bookings, Wallet, Payments, AgencyKeys and Signatures serve clients, and administrators about bookings.
	Bookings   Bookings
	Wallet     Wallet
	Payments   Payments
	AgencyKeys auth.AgencyKeys
	Signatures auth.SignatureUses
	// AgencyKeyRegistry serves administrators of agencies' keys.
	AgencyKeyRegistry AgencyKeyRegistry
	// Webhooks takes the payment processor's notices. Without it they are refused with 503.
	Webhooks Webhooks
	// LiveMoney says that notices about real money are wanted, and no others.
	LiveMoney bool

	// HideDocs takes the page /docs away.
	HideDocs bool
	// DocsScript is JavaScript that /docs runs first. It must define docsRequestInterceptor(request), which every request of the page
	// passes. For development. Defaults to none.
	DocsScript string

	// Nudge is called when there may be something new to charge. Without it that is noticed in its own time.
	Nudge func()

	// CORSOrigins are the origins whose pages may call the API from a browser, such as https://console.example.com. Defaults to none.
	CORSOrigins []string

	// Places says where vehicles stand, in words. Without one no address is known.
	Places Places
	// Limiter counts requests. Without one nothing is limited.
	Limiter Limiter
	// VehicleRate is how many commands a minute may be given to a vehicle, by all together; zero: any number.
	VehicleRate int
	// RefreshRate is how many times a minute a vehicle's unit may be asked for its state, by all together; zero: any number.
	RefreshRate int
	// AdminRate is how many requests a minute an administrator may make; zero: any number.
	AdminRate int
	// BulkRate is how many vehicles a minute an administrator may name in orders to many; zero: any number.
	BulkRate int
	// ClientRate is how many requests a minute a client may make; zero: any number.
	ClientRate int
	// CardRate is how many cards an hour a client may try to add; zero: any number.
	CardRate int
	// Budget is how long a command may take. Defaults to telematics.DefaultBudget.
	Budget time.Duration
	// ReadBudget is how long the answer to a read may take. Defaults to 5 s.
	ReadBudget time.Duration
	// Log takes one line for each request. Defaults to slog.Default().
	Log *slog.Logger
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

type server struct {
	Config
	contract   *contract.Document
	signatures *auth.Signatures
	refused    actorBound // refusals that are added to the history
	urgent     actorBound // urgent changes
	reading    actorBound // requests that read the record before they are counted against their actor's limit
}

//go:embed openapi.yaml
var contractYAML []byte

var loadContract = sync.OnceValue(func() *contract.Document { return contract.MustParse(contractYAML) })

// New returns the public handler: the API, its contract and its documentation. It is
// safe for concurrent use and touches nothing until a request comes.
func New(config Config) http.Handler { return newServer(config).handler() }

func newServer(config Config) *server {
	config.Budget = cmp.Or(config.Budget, telematics.DefaultBudget)
	config.ReadBudget = cmp.Or(config.ReadBudget, readBudget)
	config.Log = cmp.Or(config.Log, slog.Default())
	if config.Now == nil {
		config.Now = time.Now
	}
	return &server{
		Config: config, contract: loadContract(),
		signatures: &auth.Signatures{Keys: config.AgencyKeys, Uses: config.Signatures, Timeout: config.ReadBudget, Now: config.Now},
	}
}

func (s *server) handler() *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = s.fail
	// Before the router, so that unknown paths and methods pass them too.
	e.Pre(s.begin, s.accessLog, s.recoverPanic, s.cors(), exactPath)
	e.Use(refuseOptions)
	s.routes(e)
	return e
}

// refuseOptions makes OPTIONS a method like any other that an address does not have. Echo would answer it with an empty
// 204, and list it in Allow.
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

// NewServer returns a server with timeouts for slow and idle callers that still let
// the longest command answer. The caller starts and stops it.
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
