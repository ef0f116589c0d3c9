// Package sandbox is a payment processor for development and tests: an HTTP server that speaks the
// part of Stripe's API that the adapter rental/stripe uses, remembers what it did, and breaks on
// demand. The production service never links it.
//
//	POST                                                       GET
//	/v1/customers
//	/v1/payment_methods/{id}/attach, …/detach                  /v1/payment_methods/{id}
//	/v1/payment_intents, …/{id}/confirm, …/capture, …/cancel   /v1/payment_intents, /v1/payment_intents/{id}
//	/v1/refunds                                                /v1/refunds, /v1/refunds/{id}
//
// Requests are form-encoded, answers are JSON, errors have Stripe's types and codes; a parameter
// that is not known here is an error, as it is there. Cards are those that Stripe publishes for
// tests (pm_card_visa …): see cards.go.
//
// # As at Stripe
//
//   - A request under an idempotency key is carried out once. Its answer is repeated, a 500 too;
//     other parameters under the key are an error, and so is a second request while the first is
//     being carried out.
//   - One object is changed by one request at a time; a request that waits too long gets a 429
//     (lock_timeout).
//   - A card whose owner must confirm is refused in the owner's absence. The owner confirms with
//     the payment's client secret and a publishable key (pk_test_…); here that is all that the
//     owner has to do.
//   - Events are posted with a signature, again until they are taken, in no promised order.
//   - Amounts of three-decimal currencies end in 0, those of ISK and UGX in 00. Payments
//     below the published minimum of a currency are refused (amount_too_small).
//
// # Unlike Stripe
//
//   - Keys and events are kept for ever, and a hold does not expire.
//   - Nothing is expanded, and there is only one account.
//
// Faults are set by [Server.Break], [Server.BreakBy], or under /sandbox/, which is for this machine
// alone: /sandbox/faults; GET /sandbox/ledger lists every movement of money.
//
// [New] listens nowhere: its [Server.Handler] is called in the test's process, in virtual time too.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Config configures a sandbox.
type Config struct {
	// Addr is where it listens. Defaults to a free port of 127.0.0.1.
	Addr string
	// File keeps the ledger over restarts; its folder must exist. Without one it is in memory
	// alone.
	File string
	// Key is the secret key that requests must carry. Defaults to DefaultKey.
	Key string
	// WebhookURL is where events are posted. Without one they are dropped.
	WebhookURL string
	// Events are the types of events that are posted. Defaults to all.
	Events []string
	// Poster posts events. Defaults to a client with separate connections.
	Poster http.RoundTripper
	// WebhookSecret signs events. Defaults to DefaultWebhookSecret.
	WebhookSecret string
	// Disorder delays events at random, and posts some of them twice.
	Disorder bool
	// RefundDelay is the time until a refund is settled that is not settled immediately. Defaults
	// to 200 ms.
	RefundDelay time.Duration
	// Logger takes a line for each request, at the level debug. Defaults to silence.
	Logger *slog.Logger
}

// Defaults of the keys. They protect nothing.
const (
	DefaultKey           = "sk_test_sandbox"
	DefaultWebhookSecret = "whsec_sandbox"
	publishablePrefix    = "pk_test_"
)

// Server is a running sandbox. It is safe for concurrent use.
type Server struct {
	cfg     Config
	addr    string
	handler http.Handler
	faults  faults
	locks   locks
	mail    *postman
	done    chan struct{} // closed at the end
	work    sync.WaitGroup

	mu       sync.Mutex // guards what follows
	ledger   *ledger
	dirty    bool            // not in the file yet
	inFlight map[string]bool // idempotency keys
	ended    bool            // nothing is begun any more

	life   sync.Mutex // guards what follows
	http   *http.Server
	served chan struct{} // closed once http has ended
	closed bool
}

// New returns a sandbox in memory that does not listen.
func New(cfg Config) *Server {
	cfg.Addr = cmp.Or(cfg.Addr, "127.0.0.1:0")
	cfg.Key = cmp.Or(cfg.Key, DefaultKey)
	cfg.WebhookSecret = cmp.Or(cfg.WebhookSecret, DefaultWebhookSecret)
	cfg.RefundDelay = cmp.Or(cfg.RefundDelay, 200*time.Millisecond)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	s := &Server{
		cfg: cfg, addr: cfg.Addr, ledger: newLedger(), inFlight: map[string]bool{}, done: make(chan struct{}),
		mail: newPostman(cfg),
	}
	s.handler = s.routes()
	return s
}

// Start starts a sandbox, and returns when it listens.
func Start(cfg Config) (*Server, error) {
	s := New(cfg)
	if err := s.ledger.load(cfg.File); err != nil {
		return nil, err
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	s.resumeRefunds()
	s.work.Go(s.saveOften)
	return s, nil
}

// Handler returns the API.
func (s *Server) Handler() http.Handler { return s.handler }

// URL returns the address of the API, as the adapter wants it.
func (s *Server) URL() string { return "http://" + s.addr }

// Key returns the secret key.
func (s *Server) Key() string { return s.cfg.Key }

// WebhookSecret returns the secret that events are signed with.
func (s *Server) WebhookSecret() string { return s.cfg.WebhookSecret }

// SetWebhook sets the URL to which events are posted from now on, also those that were not accepted
// yet; empty: none.
func (s *Server) SetWebhook(url string) { s.mail.setURL(url) }

func (s *Server) listen() error {
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return fmt.Errorf("listen for payments: %w", err)
	}
	s.addr = l.Addr().String()
	server := &http.Server{Handler: s.handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	s.http, s.served = server, served
	go func() {
		defer close(served)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.cfg.Logger.Error("sandbox ended by itself", "err", err)
		}
	}()
	return nil
}

// Kill closes all connections and the listener. The ledger stays, and requests in progress
// continue. Restart listens again.
func (s *Server) Kill() error {
	s.life.Lock()
	defer s.life.Unlock()
	return s.cut()
}

func (s *Server) cut() error {
	if s.http == nil {
		return nil
	}
	err := s.http.Close()
	<-s.served
	s.http = nil
	return err
}

// Restart listens again on the same port.
func (s *Server) Restart() error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed {
		return errors.New("restart the sandbox: it was closed")
	}
	if err := s.cut(); err != nil {
		return err
	}
	return s.listen()
}

// Close ends the sandbox, once the ledger is in its file. A second Close does nothing.
func (s *Server) Close() error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	err := s.cut()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	close(s.done)
	s.mail.close()
	s.work.Wait()
	return errors.Join(err, s.save())
}

// pause waits, unless the caller leaves or the sandbox ends first.
func (s *Server) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-s.done:
	}
}
