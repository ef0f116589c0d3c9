package httpapi

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"motorpool/httpapi/waitingroom"
	"motorpool/telematics"
)

// Config assembles the public handler. The ports, Tokens and Feed are required.
type Config struct {
	Controller Controller
	Fleet      Fleet
	Bulks      Bulks
	History    History
	Refusals   Refusals
	Strangers  Strangers
	Tokens     *Tokens
	Feed       *Feed

	// Bookings, Wallet, Payments, AgencyKeys and Nonces serve clients, and administrators about bookings.
	Bookings   Bookings
	Wallet     Wallet
	Payments   Payments
	AgencyKeys AgencyKeys
	Nonces     Nonces
	// Webhooks takes what the payment processor tells. Without them it is told that nobody listens.
	Webhooks Webhooks
	// LiveMoney says that notices about real money are wanted, and no others.
	LiveMoney bool

	// Nudge is called when there may be something new to charge. Without it that is noticed in its own time.
	Nudge func()

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
	contract *contract
}

// New returns the public handler: the API, its contract and its documentation. It is
// safe for concurrent use and touches nothing until a request comes.
func New(config Config) http.Handler { return newServer(config).handler() }

func newServer(config Config) *server {
	config.Budget = cmp.Or(config.Budget, telematics.DefaultBudget)
	config.ReadBudget = cmp.Or(config.ReadBudget, 5*time.Second)
	config.Log = cmp.Or(config.Log, slog.Default())
	if config.Now == nil {
		config.Now = time.Now
	}
	return &server{Config: config, contract: loadContract()}
}

func (s *server) handler() *echo.Echo {
	e := echo.New()
	e.HTTPErrorHandler = s.fail
	// Before the router, so that unknown paths and methods pass them too.
	e.Pre(s.begin, s.accessLog, s.recoverPanic, exactPath)
	s.routes(e)
	return e
}

// Limits of the public listener.
const (
	headerBudget = 5 * time.Second
	bodyBudget   = 15 * time.Second
	answerSlack  = 10 * time.Second // for what a command needs beside its budget
	idleBudget   = 2 * time.Minute
	maxHeader    = 32 << 10 // bytes
)

// NewServer returns a server with timeouts for slow and idle callers that still let
// the longest command answer. The caller starts and stops it.
func NewServer(addr string, handler http.Handler) *waitingroom.Server {
	return waitingroom.New(&http.Server{
		Addr:              addr,
		Handler:           handler,
		ReadHeaderTimeout: headerBudget,
		ReadTimeout:       headerBudget + bodyBudget,
		WriteTimeout:      headerBudget + bodyBudget + telematics.MaxBudget + answerSlack,
		IdleTimeout:       idleBudget,
		MaxHeaderBytes:    maxHeader,
	}, isOrder)
}

// isOrder reports whether a call waits for a vehicle.
func isOrder(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/control/")
}
