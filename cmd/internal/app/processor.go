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

	"motorpool/rental"
	"motorpool/rental/stripe"
)

// processor is where cards are held and money is moved, with what it tells unasked.
type processor interface {
	rental.Processor
	// Read returns the notice that a signed request carries, or an error where the signature is not the processor's.
	Read(header http.Header, body []byte) (rental.Notice, error)
	// Close closes idle connections.
	Close()
}

// processor returns the one that the settings name, and whether it moves real money. Without a key it is one that is
// always away: everything that needs none goes on.
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

// hasProcessor reports whether a payment processor is named.
func (c Config) hasProcessor() bool { return c.StripeKey != "" }

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

// isWord refuses what was copied with a space or a line's end.
func isWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// stripeURL refuses an address to which the key would go in the clear. Elsewhere than at Stripe there is no real money.
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

// away says that nothing happened, and that it may be tried again: a key may be set by then.
func away() error {
	return &rental.ProcessorError{Kind: rental.NotDone, Cause: errNoProcessor}
}

func (noProcessor) CreateCustomer(context.Context, string, rental.Client) (string, error) {
	return "", away()
}

func (noProcessor) Attach(context.Context, string, string) (rental.Card, error) {
	return rental.Card{}, away()
}

func (noProcessor) Detach(context.Context, string) error { return away() }

func (noProcessor) Card(context.Context, string) (rental.Card, string, error) {
	return rental.Card{}, "", away()
}

func (noProcessor) CreateIntent(context.Context, string, rental.IntentRequest) (rental.Intent, error) {
	return rental.Intent{}, away()
}

func (noProcessor) Confirm(context.Context, string, string, string) (rental.Intent, error) {
	return rental.Intent{}, away()
}

func (noProcessor) Intent(context.Context, string) (rental.Intent, error) {
	return rental.Intent{}, away()
}

func (noProcessor) Capture(context.Context, string, string, rental.Minor, rental.Currency) (rental.Intent, error) {
	return rental.Intent{}, away()
}

func (noProcessor) Cancel(context.Context, string, string) (rental.Intent, error) {
	return rental.Intent{}, away()
}

func (noProcessor) Refund(context.Context, string, rental.RefundRequest) (rental.Refund, error) {
	return rental.Refund{}, away()
}

func (noProcessor) RefundOf(context.Context, string, rental.ChargeID) (rental.Refund, bool, error) {
	return rental.Refund{}, false, away()
}

func (noProcessor) RefundByID(context.Context, string) (rental.Refund, error) {
	return rental.Refund{}, away()
}

func (noProcessor) Read(http.Header, []byte) (rental.Notice, error) {
	return rental.Notice{}, errNoProcessor
}

func (noProcessor) Close() {}
