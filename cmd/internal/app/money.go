package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"motorpool/guard"
	"motorpool/rental"
	"motorpool/rental/charging"
	"motorpool/rental/stripe"
	"motorpool/rental/wallet"
	"motorpool/store/pg"
	"motorpool/store/rentals"
)

// money is the commercial side: the payment processor, the clients' payment methods, and the
// collector of due charges.
type money struct {
	processor
	live      bool // real money is moved
	wallet    *wallet.Wallet
	collector *charging.Collector
	// Finds payments that are not on record.
	reconciler *charging.Reconciler
	notices    rentals.Notices
	panics     *guard.Guard
}

func (c Config) newMoney(db *pg.DB, tryLease func(context.Context) (bool, error), registry prometheus.Registerer, panics *guard.Guard, log *slog.Logger) (*money, error) {
	cards, notices := rentals.Cards{DB: db}, rentals.Notices{DB: db}
	m := &money{notices: notices, panics: panics}
	var err error
	if m.processor, m.live, err = c.processor(log); err != nil {
		return nil, err
	}
	m.wallet = wallet.New(wallet.Config{Cards: cards, Processor: m.processor, Log: log})
	m.collector = charging.NewCollector(charging.Config{
		Ledger: rentals.Charges{DB: db}, Notices: notices, Cards: cards, Processor: m.processor, Logger: log, Metrics: registry, Guard: panics,
	})
	m.reconciler = charging.NewReconciler(charging.ReconcilerConfig{
		Processor: m.processor, Payments: rentals.Payments{DB: db}, TryLease: tryLease, After: c.CompareAfter, Logger: log, Guard: panics,
	})
	if c.StripeKey == "" {
		log.Info("no payment processor is set up: no card can be added, and no charge is made", "setting", "--stripe-key")
	}
	return m, nil
}

// run executes due charges, handles notices, compares payments, and detaches removed cards, until
// the context ends. Without a processor, charges stay as they are.
func (m *money) run(ctx context.Context) error {
	if _, none := m.processor.(noProcessor); none {
		<-ctx.Done()
		return nil
	}
	var parts errgroup.Group
	parts.Go(func() error { return m.panics.Keep(ctx, "collect payments", m.collector.Run) })
	parts.Go(func() error { return m.panics.Keep(ctx, "reconcile payments", m.reconciler.Run) })
	parts.Go(func() error { return m.panics.Keep(ctx, "keep payment methods", m.wallet.Run) })
	return parts.Wait()
}

// Keep stores a notice of the processor.
func (m *money) Keep(ctx context.Context, n rental.Notice) error { return m.notices.Keep(ctx, n) }

// processor holds cards, moves money, and sends notices.
type processor interface {
	rental.Processor
	// Read returns the notice that a signed request carries, or an error where the signature is not
	// the processor's.
	Read(header http.Header, body []byte) (rental.Notice, error)
	// Close closes idle connections.
	Close()
}

// processor returns the payment processor of the settings, and whether it moves real money. Without
// a key it returns one that is always unavailable.
func (c Config) processor(log *slog.Logger) (p processor, live bool, err error) {
	if err := c.checkStripe(); err != nil {
		return nil, false, err
	}
	if c.StripeKey == "" {
		return noProcessor{}, false, nil
	}
	account := stripe.New(stripe.Config{
		Key: string(c.StripeKey), BaseURL: c.StripeURL, WebhookSecret: string(c.StripeWebhookSecret), Logger: log,
	})
	return account, account.Live(), nil
}

func (c Config) checkStripe() error {
	key, secret := string(c.StripeKey), string(c.StripeWebhookSecret)
	switch {
	case key == "" && secret != "":
		return errors.New("--stripe-webhook-secret: of no use without --stripe-key")
	case key == "":
		return nil
	case strings.HasPrefix(key, "pk_"):
		return errors.New("--stripe-key: this is a publishable key, which is for apps; want the secret one (sk_…), or a restricted one (rk_…)")
	case !strings.HasPrefix(key, "sk_") && !strings.HasPrefix(key, "rk_") || !isWord(key):
		return errors.New("--stripe-key: want a secret key (sk_…), or a restricted one (rk_…)")
	case secret != "" && (!strings.HasPrefix(secret, "whsec_") || !isWord(secret)):
		return errors.New("--stripe-webhook-secret: want the secret of a webhook endpoint (whsec_…)")
	}
	return stripeURL(c.StripeURL, stripe.IsLive(key))
}

// isWord reports whether s is printable ASCII without spaces, as a key that was copied whole is.
func isWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// stripeURL returns an error for an address that is no https://host. http:// is allowed only to
// this machine, with a test key: a key must not be readable on a network, and what listens here is
// not Stripe.
func stripeURL(value string, live bool) error {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("--stripe-url: want https://host")
	}
	local := u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback()
	switch {
	case u.Scheme == "http" && !local:
		return errors.New("--stripe-url: http:// only to this machine: an attacker on the network could read the key; want https://")
	case u.Scheme == "http" && live:
		return fmt.Errorf("--stripe-url: the key moves real money, and %s is not Stripe", u.Host)
	}
	return nil
}

// noProcessor is never available.
type noProcessor struct{}

var errNoProcessor = errors.New("no payment processor is set up: --stripe-key")

// errNotSetUp reports that nothing happened, and that the request may be repeated.
var errNotSetUp = &rental.ProcessorError{Kind: rental.NotDone, Cause: errNoProcessor}

func (noProcessor) CreateCustomer(context.Context, string, rental.Client) (string, error) {
	return "", errNotSetUp
}

func (noProcessor) Attach(context.Context, string, string) (rental.Card, error) {
	return rental.Card{}, errNotSetUp
}

func (noProcessor) Detach(context.Context, string) error { return errNotSetUp }

func (noProcessor) Card(context.Context, string) (rental.Card, string, error) {
	return rental.Card{}, "", errNotSetUp
}

func (noProcessor) CreateIntent(context.Context, string, rental.IntentRequest) (rental.Intent, error) {
	return rental.Intent{}, errNotSetUp
}

func (noProcessor) Confirm(context.Context, string, string, string) (rental.Intent, error) {
	return rental.Intent{}, errNotSetUp
}

func (noProcessor) Intent(context.Context, string) (rental.Intent, error) {
	return rental.Intent{}, errNotSetUp
}

func (noProcessor) IntentOf(context.Context, rental.IntentRequest) (rental.Intent, bool, error) {
	return rental.Intent{}, false, errNotSetUp
}

func (noProcessor) Intents(context.Context, time.Time, string) ([]rental.ListedIntent, string, error) {
	return nil, "", errNotSetUp
}

func (noProcessor) Capture(context.Context, string, string, rental.Minor, rental.Currency) (rental.Intent, error) {
	return rental.Intent{}, errNotSetUp
}

func (noProcessor) Cancel(context.Context, string, string) (rental.Intent, error) {
	return rental.Intent{}, errNotSetUp
}

func (noProcessor) Refund(context.Context, string, rental.RefundRequest) (rental.Refund, error) {
	return rental.Refund{}, errNotSetUp
}

func (noProcessor) RefundOf(context.Context, string, uuid.UUID) (rental.Refund, bool, error) {
	return rental.Refund{}, false, errNotSetUp
}

func (noProcessor) RefundByID(context.Context, string) (rental.Refund, error) {
	return rental.Refund{}, errNotSetUp
}

func (noProcessor) Read(http.Header, []byte) (rental.Notice, error) {
	return rental.Notice{}, errNoProcessor
}

func (noProcessor) Close() {}
