package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/sync/errgroup"

	"motorpool/guard"
	"motorpool/rental"
	"motorpool/rental/charging"
	"motorpool/rental/stripe"
	"motorpool/rental/wallet"
	"motorpool/store/rentals"
)

// money is the commercial side: the payment processor, the clients' payment methods, and the
// collector of due charges.
type money struct {
	*stripe.Processor
	isSetUp   bool // there is a key
	wallet    *wallet.Wallet
	collector *charging.Collector
	// Finds payments that are not on record.
	reconciler *charging.Reconciler
	notices    rentals.Notices
	panics     *guard.Guard
}

func (s *service) newMoney() (*money, error) {
	cards, notices := rentals.Cards{DB: s.postgres}, rentals.Notices{DB: s.postgres}
	processor, err := s.config.processor(s.log)
	if err != nil {
		return nil, err
	}
	m := &money{Processor: processor, isSetUp: s.config.StripeKey != "", notices: notices, panics: s.panics}
	m.wallet = wallet.New(wallet.Config{Cards: cards, Processor: processor, Log: s.log})
	m.collector = charging.NewCollector(charging.Config{
		Ledger: rentals.Charges{DB: s.postgres}, Notices: notices, Cards: cards, Processor: processor,
		Settled: func(b rental.BookingID) { s.transitions.Settled(b) }, Logger: s.log, Metrics: s.registry, Guard: s.panics,
	})
	m.reconciler = charging.NewReconciler(charging.ReconcilerConfig{
		Processor: processor, Payments: rentals.Payments{DB: s.postgres}, TryLease: s.lease("payments", charging.CompareLease),
		After: s.config.CompareAfter, Logger: s.log, Guard: s.panics,
	})
	if !m.isSetUp {
		s.log.Info("no payment processor is set up: no card can be added, and no charge is made", "setting", "--stripe-key")
	}
	return m, nil
}

// run executes due charges, handles notices, compares payments, and detaches removed cards, until
// the context ends. Without a processor, charges stay as they are.
func (m *money) run(ctx context.Context) error {
	if !m.isSetUp {
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

// processor returns the payment processor of the settings. Without a key it is always unavailable.
func (c Config) processor(log *slog.Logger) (*stripe.Processor, error) {
	if err := c.checkStripe(); err != nil {
		return nil, err
	}
	config := stripe.Config{Key: string(c.StripeKey), BaseURL: c.StripeURL, WebhookSecret: string(c.StripeWebhookSecret), Logger: log}
	if c.StripeKey == "" {
		config.HTTPClient = &http.Client{Transport: noProcessor{}}
	}
	return stripe.New(config), nil
}

func (c Config) checkStripe() error {
	key, secret := string(c.StripeKey), string(c.StripeWebhookSecret)
	switch {
	case key == "" && secret != "":
		return errors.New("--stripe-webhook-secret: of no use without --stripe-key")
	case key == "":
		return nil
	case strings.HasPrefix(key, "pk_"):
		return errors.New(
			"--stripe-key: this is a publishable key, which is for apps; want the secret one (sk_…), or a restricted one (rk_…)",
		)
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
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" ||
		u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("--stripe-url: want https://host")
	}
	switch {
	case u.Scheme == "http" && !isLocal(u):
		return errors.New("--stripe-url: http:// only to this machine: an attacker on the network could read the key; want https://")
	case u.Scheme == "http" && live:
		return fmt.Errorf("--stripe-url: the key moves real money, and %s is not Stripe", u.Host)
	}
	return nil
}

// noProcessor is the transport without a processor: nothing happens, and a request may be repeated.
type noProcessor struct{}

func (noProcessor) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no payment processor is set up: --stripe-key")
}
