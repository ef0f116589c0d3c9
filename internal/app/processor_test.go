package app

import (
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"motorpool/internal/require"
	"motorpool/rental"
)

func TestPaymentProcessor_BySettings(t *testing.T) {
	for _, c := range []struct {
		name, key, url, secret string
		live                   bool
	}{
		{"none", "", "", "", false},
		{"test key", "sk_test_1", "https://api.stripe.com", "whsec_1", false},
		{"live key", "sk_live_1", "https://api.stripe.com", "whsec_1", true},
		{"restricted key", "rk_live_1", "https://api.stripe.com/", "", true},
		{"sandbox", "sk_test_1", "http://127.0.0.1:12111", "whsec_1", false},
		{"sandbox by name", "sk_test_1", "http://localhost:12111", "whsec_1", false},
		{"sandbox by IPv6", "sk_test_1", "http://[::1]:12111", "whsec_1", false},
	} {
		config := good(t)
		config.StripeKey, config.StripeURL, config.StripeWebhookSecret = Secret(c.key), c.url, Secret(c.secret)
		p, err := config.processor(slog.New(slog.DiscardHandler))
		if err = errors.Join(err, config.Check()); err != nil || p.Live() != c.live {
			t.Errorf("%s: live %v, %v", c.name, !c.live, err)
			continue
		}
		p.Close()
	}
}

func TestCheck_InvalidPaymentProcessorIsNamedWithoutItsSecrets(t *testing.T) {
	for name, c := range map[string]struct{ key, url, secret, flag string }{
		"publishable key":                {"pk_test_hush", "https://h", "", "--stripe-key"},
		"not a key":                      {"hush", "https://h", "", "--stripe-key"},
		"key with a line break":          {"sk_test_hush\n", "https://h", "", "--stripe-key"},
		"webhook secret of another kind": {"sk_test_hush", "https://h", "sk_hush", "--stripe-webhook-secret"},
		"webhook secret without a key":   {"", "https://h", "whsec_hush", "--stripe-webhook-secret"},
		"without TLS":                    {"sk_test_hush", "http://api.stripe.com", "", "--stripe-url"},
		"live key for a sandbox":         {"sk_live_hush", "http://127.0.0.1:1", "", "--stripe-url"},
		"other protocol":                 {"sk_test_hush", "ftp://h", "", "--stripe-url"},
		"no URL":                         {"sk_test_hush", "", "", "--stripe-url"},
		"with a path":                    {"sk_test_hush", "https://h/v1", "", "--stripe-url"},
		"with a password":                {"sk_test_hush", "https://u:hush@h", "", "--stripe-url"},
	} {
		config := good(t)
		config.StripeKey, config.StripeURL, config.StripeWebhookSecret = Secret(c.key), c.url, Secret(c.secret)
		_, made := config.processor(slog.New(slog.DiscardHandler))
		for _, err := range []error{config.Check(), made} {
			if err == nil || !strings.Contains(err.Error(), c.flag+":") || strings.Contains(err.Error(), "hush") ||
				strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("%s: error %v, want one about %s", name, err, c.flag)
			}
		}
	}
}

func TestPaymentProcessor_UnavailableWithoutAKey(t *testing.T) {
	p, err := good(t).processor(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	port, value := reflect.TypeFor[rental.Processor](), reflect.ValueOf(p)
	for method := range port.Methods() {
		called := value.MethodByName(method.Name)
		arguments := []reflect.Value{reflect.ValueOf(t.Context())}
		for i := 1; i < called.Type().NumIn(); i++ {
			arguments = append(arguments, argument(called.Type().In(i)))
		}
		results := called.Call(arguments)
		err, _ := results[len(results)-1].Interface().(error)
		var f *rental.ProcessorError
		if !errors.As(err, &f) || f.Kind != rental.NotDone {
			t.Errorf("%s: error %v, want NotDone", method.Name, err)
		}
	}
	if _, err := p.Read(http.Header{}, nil); err == nil {
		t.Error("an unsigned notice was accepted")
	}
}

// argument returns a valid argument of a call.
func argument(of reflect.Type) reflect.Value {
	switch v := reflect.New(of).Elem(); of {
	case reflect.TypeFor[rental.IntentRequest]():
		return reflect.ValueOf(rental.IntentRequest{Customer: "cus_1", Currency: "EUR"})
	case reflect.TypeFor[rental.RefundRequest]():
		return reflect.ValueOf(rental.RefundRequest{Intent: "pi_1", Amount: 1, Currency: "EUR"})
	case reflect.TypeFor[rental.Currency]():
		v.SetString("EUR")
		return v
	case reflect.TypeFor[string]():
		v.SetString("id_1")
		return v
	default:
		return v
	}
}
