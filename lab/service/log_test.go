package service_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/internal/logger"
	"motorpool/internal/require"
	"motorpool/simulator"
	"motorpool/telematics"
)

// logBuffer stores a log that several goroutines write.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// withPassword returns the URL of a server with a password.
func withPassword(t *testing.T, server, password string) string {
	t.Helper()
	u, err := url.Parse(server)
	require.NoError(t, err)
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String()
}

func TestLog_HasNoSecretAndNamesRequestsAndCommands(t *testing.T) {
	t.Parallel()
	s := realStack(t, 2)
	r := s.rent()
	spans := newSpanCollector(s)
	var log logBuffer
	s.log = logger.New(&log, "debug", "auto") // JSON, since the output is not a terminal
	var settings app.Config
	i := r.open(func(c *app.Config) {
		c.GeocoderURL, c.OTLPURL, c.Budget = "http://127.0.0.1:1/?key=hush-geocoder-1", spans.URL, telematics.MinBudget
	}, func(c *app.Config) { settings = *c })
	s.drive(nil, func(id telematics.VehicleID) simulator.Profile {
		profile := healthy(id)
		if id == 2 {
			profile.Faults.Silent = true
		}
		return profile
	})

	// Commands that are executed, unanswered, refused, repeated, or of a client.
	i.control(1, telematics.Lock, "Idempotency-Key", "hush-key-1")
	i.control(1, telematics.Lock, "Idempotency-Key", "hush-key-1")
	i.control(2, telematics.Unlock)
	i.control(4711, telematics.Lock)
	c := r.newCustomer()
	c.add(i, "pm_card_visa", true)
	c.post(i, "/payment-methods", `{"payment_method_id":"pm_card_chargeDeclined"}`)
	booking := c.book(i, 1, fromNow(time.Minute))
	c.get(i, ownOf(booking)+"?note=hush-query-1").wants(422, "validation_failed")
	// Refused tokens and signatures.
	forged := s.tokens
	forged.ID = "another"
	mint := app.Grant{
		Issuer: "test", Audience: "elsewhere", Actor: telematics.Actor{Subject: "eve", Role: telematics.Admin},
		Lifetime: time.Hour,
	}
	elsewhere, err := mint.Mint(s.tokens)
	s.must(err)
	unknownKey, err := mint.Mint(forged)
	s.must(err)
	refused := []string{"hush-token-1", elsewhere, unknownKey, elsewhere + "hush"}
	for _, token := range refused {
		i.askWith(token, http.MethodGet, "/api/v1/admin/vehicles?access_token=hush-query-2", "").wants(401, "unauthenticated")
	}
	c.get(i, "/bookings", func(s *signature) { s.as = "hush-signature-1" }).wants(401, "agency_signature_invalid")
	response, err := http.Post(i.base+"/webhooks/stripe", "application/json", strings.NewReader(`{"id":"hush-body-1"}`))
	s.must(err)
	s.must(response.Body.Close())

	// Servers are unavailable or refuse the password; their URLs have passwords. The errors of the
	// configuration are printed as well.
	for _, change := range []func(*app.Config){
		func(c *app.Config) {
			c.DatabaseURL = "postgres://motorpool:hush-database-2@127.0.0.1:1/motorpool?sslmode=disable"
			c.RedisURL = "redis://u:hush-redis-1@127.0.0.1:1/0"
			c.MQTTURL, c.MQTTPassword = []string{"tcp://u:hush-mqtt-1@127.0.0.1:1"}, "hush-mqtt-2"
			c.TokenKeys, c.OTLPURL = "http://u:hush-issuer-1@127.0.0.1:1/jwks?k=hush-issuer-2", "http://127.0.0.1:1"
		},
		func(c *app.Config) {
			c.RedisURL, c.MQTTPassword = app.Secret(withPassword(t, string(c.RedisURL), "hush-redis-2")), "hush-mqtt-3"
			c.DatabaseURL = app.Secret(strings.Replace(withPassword(t, string(c.DatabaseURL), "hush-database-3"), "?", "-hush?", 1))
		},
	} {
		broken := s.serveUnready(r.paid, func(c *app.Config) { c.Drain = 0 }, change)
		broken.control(1, telematics.Lock)
		time.Sleep(1500 * time.Millisecond) // for retries
		broken.readiness()
		broken.stop()
	}
	var problems strings.Builder
	for _, change := range []func(*app.Config){
		func(c *app.Config) { c.DatabaseURL = "postgres://u:hush-database-4%zz@h/db" },
		func(c *app.Config) { c.RedisURL = "redis://u:hush-redis-3@h:port/0" },
		func(c *app.Config) { c.MQTTURL = []string{"tcp://u:hush-mqtt-4@h:port"} },
		func(c *app.Config) { c.OTLPURL = "http://u:hush-collector-1@h:4318" },
		func(c *app.Config) { c.TokenKeys = "https://u:hush-issuer-3%zz@h" },
		func(c *app.Config) { c.GeocoderURL = "http://u:hush-geocoder-2%zz@h" },
		func(c *app.Config) { c.StripeURL = "http://u:hush-stripe-1%zz@h" },
		func(c *app.Config) { c.AgencySecretsKey = "hush-agency-1" },
	} {
		bad := settings
		change(&bad)
		err := bad.Check()
		if err == nil {
			t.Error("an invalid setting was accepted")
			continue
		}
		problems.WriteString(err.Error() + "\n")
	}
	i.stop()

	text := log.String()
	all := text + problems.String()
	for name, secret := range r.secrets(settings, append(refused, i.admin, c.token)) {
		for line := range strings.Lines(all) {
			if strings.Contains(line, secret) {
				t.Errorf("%s is in the log: %s", name, line)
			}
		}
	}
	checkLines(t, text)
}

// secrets returns everything that a log must not have, by name.
func (r *rentals) secrets(c app.Config, tokens []string) map[string]string {
	r.Helper()
	private, err := os.ReadFile(filepath.Join(r.dir, "signing.jwks"))
	r.must(err)
	var set struct{ Keys []struct{ D string } }
	r.must(json.Unmarshal(private, &set))
	database, err := url.Parse(string(c.DatabaseURL))
	r.must(err)
	databasePassword, _ := database.User.Password()
	secrets := map[string]string{
		"database password":   databasePassword,
		"what is called hush": "hush", "MQTT password": string(c.MQTTPassword), "key of agency secrets": string(c.AgencySecretsKey),
		"payment key": string(c.StripeKey), "webhook secret": string(c.StripeWebhookSecret), "signing key": set.Keys[0].D,
		"card token": "pm_card", "secret of units": unitSecret,
	}
	secrets["agency key"] = hex.EncodeToString(r.app.Secret)
	secrets["agency key in base64"] = base64.RawURLEncoding.EncodeToString(r.app.Secret)
	secrets["agency key in standard base64"] = base64.RawStdEncoding.EncodeToString(r.app.Secret)
	for _, token := range tokens {
		if parts := strings.Split(token, "."); len(parts) == 3 {
			secrets["claims of token "+parts[2]], secrets["signature of token "+parts[2]] = parts[1], parts[2]
		}
	}
	for name, secret := range secrets {
		if len(secret) < 4 {
			r.Fatalf("%s is %q, too short to search for", name, secret)
		}
	}
	return secrets
}

// checkLines checks the ids by which the lines of a request and of a command can be found.
func checkLines(t *testing.T, text string) {
	t.Helper()
	requests, commands, traced := 0, 0, 0
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		var line map[string]any
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("not JSON: %s", lines.Text())
		}
		request, _ := line["request_id"].(string)
		_, ofCommand := line["command"].(string)
		if line["msg"] == "request" {
			requests++
			path, _ := line["path"].(string)
			if strings.Contains(path, "/vehicles/1/control/") && line["status"] == 200.0 && !ofCommand {
				t.Errorf("a line without its command: %s", lines.Text())
			}
			if _, ok := line["trace_id"]; ok {
				traced++
			}
		}
		if ofCommand {
			commands++
		}
		if (line["msg"] == "request" || ofCommand) && request == "" {
			t.Errorf("a line without its request: %s", lines.Text())
		}
	}
	if requests < 10 || commands < 3 || traced < 10 {
		t.Errorf("%d lines of requests, %d of commands, %d with a trace: too few for a valid test", requests, commands, traced)
	}
}
