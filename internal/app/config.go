package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"motorpool/broker/link"
	"motorpool/store/agencykeys"
	"motorpool/store/history"
	"motorpool/store/pg"
	"motorpool/store/redis"
	"motorpool/store/twins"
	"motorpool/telematics"
)

// Config is every setting of the service. Each has a flag, an environment
// variable (MOTORPOOL_ and the flag's name in capitals) and a default.
type Config struct {
	HTTP     string        `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address of the public API."`
	HTTPCert string        `name:"http-cert" default:"" placeholder:"FILE" help:"${http_cert}."`
	HTTPKey  string        `name:"http-key" default:"" placeholder:"FILE" help:"Its private key, as PEM (default none)."`
	Internal string        `default:"127.0.0.1:8081" placeholder:"ADDR" help:"${internal}."`
	Health   string        `default:"127.0.0.1:8082" placeholder:"ADDR" help:"${health}."`
	Profiles bool          `help:"Serve Go's profiles at /debug/pprof/ of the internal address."`
	Drain    time.Duration `default:"5s" placeholder:"DURATION" help:"${drain}."`

	TrustedProxies string `default:"" placeholder:"NETWORKS" help:"${trusted_proxies}."`
	MaxConnections int    `default:"0" placeholder:"N" help:"${max_connections} (default 0: what the limit of open files leaves)."`

	DatabaseURL Secret `default:"postgres://motorpool@127.0.0.1:5432/motorpool?sslmode=disable" placeholder:"URL" help:"Postgres."`

	DatabaseConns      int           `default:"20" placeholder:"N" help:"Connections to Postgres, at most."`
	RedisURL           Secret        `default:"redis://127.0.0.1:6379/0" placeholder:"URL" help:"${redis_url}."`
	RedisCA            string        `default:"" placeholder:"FILE" help:"Certificates that sign Redis's, as PEM (default the system's)."`
	RedisCert          string        `default:"" placeholder:"FILE" help:"${redis_cert}."`
	RedisKey           string        `default:"" placeholder:"FILE" help:"Its private key, as PEM (default none)."`
	StateInterval      time.Duration `default:"1m" placeholder:"DURATION" help:"${state_interval}."`
	TelemetryRetention int           `default:"7" placeholder:"DAYS" help:"${telemetry_retention}."`

	MQTTURL       []string      `name:"mqtt-url" sep:"none" default:"tcp://127.0.0.1:1884" placeholder:"URL" help:"${mqtt_url}."`
	MQTTUsername  string        `name:"mqtt-username" default:"motorpool" placeholder:"NAME" help:"Account at the MQTT broker."`
	MQTTPassword  Secret        `name:"mqtt-password" default:"" placeholder:"SECRET" help:"${mqtt_password}."`
	MQTTCA        string        `name:"mqtt-ca" default:"" placeholder:"FILE" help:"${mqtt_ca}."`
	MQTTCert      string        `name:"mqtt-cert" default:"" placeholder:"FILE" help:"${mqtt_cert}."`
	MQTTKey       string        `name:"mqtt-key" default:"" placeholder:"FILE" help:"Its private key, as PEM (default none)."`
	SigningKeys   string        `default:"keys/signing.jwks" placeholder:"FILE" help:"${signing_keys}."`
	TokenKeys     string        `default:"keys/tokens.jwks" placeholder:"FILE|URL" help:"${token_keys}."`
	TokenIssuer   string        `default:"motorpool" placeholder:"ISS" help:"Issuer (iss) of access tokens."`
	TokenAudience string        `default:"motorpool" placeholder:"AUD" help:"Audience (aud) of access tokens."`
	TokenTyp      string        `default:"at+jwt,JWT" placeholder:"TYPES" help:"${token_typ}."`
	ClaimRole     string        `default:"role" placeholder:"PATH" help:"${claim_role}."`
	ClaimAgency   string        `default:"agency_id" placeholder:"PATH" help:"Claim that names the agency, likewise."`
	ClaimScope    string        `default:"scope" placeholder:"PATH" help:"Claim that names the scopes, likewise."`
	RoleAdmin     string        `default:"admin" placeholder:"NAME" help:"Value of the role claim for administrators."`
	RoleOperator  string        `default:"operator" placeholder:"NAME" help:"${role_operator}."`
	RoleViewer    string        `default:"viewer" placeholder:"NAME" help:"Value of the role claim for viewers, who only read."`
	RoleClient    string        `default:"client" placeholder:"NAME" help:"Value of the role claim for clients."`
	CORSOrigins   string        `name:"cors-origins" default:"" placeholder:"ORIGINS" help:"${cors_origins}."`
	Budget        time.Duration `default:"10s" placeholder:"DURATION" help:"How long a command may take, 1s to 30s."`
	VehicleRate   int           `default:"10" placeholder:"N" help:"${vehicle_rate}."`
	RefreshRate   int           `default:"2" placeholder:"N" help:"${refresh_rate}."`
	AdminRate     int           `default:"600" placeholder:"N" help:"Requests a minute of one administrator; 0: any number."`
	BulkRate      int           `default:"2000" placeholder:"N" help:"${bulk_rate}."`
	ClientRate    int           `default:"120" placeholder:"N" help:"Requests a minute of one client; 0: any number."`
	CardRate      int           `default:"20" placeholder:"N" help:"${card_rate}."`
	AdminStreams  int           `default:"10" placeholder:"N" help:"${admin_streams}."`
	Docs          bool          `default:"true" negatable:"" help:"Serve the contract for browsing and trying at /docs."`
	Migrate       bool          `default:"true" negatable:"" help:"Bring the database's schema up to date at start."`
	LogLevel      string        `default:"info" placeholder:"LEVEL" help:"debug, info, warn or error."`
	LogFormat     string        `default:"auto" placeholder:"FORMAT" help:"text, json, or auto: text on a terminal, else json."`

	OTLPURL string `name:"otlp-url" default:"" placeholder:"URL" help:"${otlp_url}."`

	AlertmanagerURL Secret `name:"alertmanager-url" default:"" placeholder:"URLS" help:"${alertmanager_url}."`

	GeocoderURL     Secret `default:"" placeholder:"URL" help:"${geocoder_url}."`
	GeocoderContact string `default:"" placeholder:"EMAIL|URL" help:"Contact for its operator, sent in User-Agent (default none)."`

	AgencySecretsKey    Secret `default:"" placeholder:"KEY" help:"${agency_secrets_key}."`
	StripeKey           Secret `default:"" placeholder:"KEY" help:"${stripe_key}."`
	StripeURL           string `name:"stripe-url" default:"https://api.stripe.com" placeholder:"URL" help:"${stripe_url}."`
	StripeWebhookSecret Secret `default:"" placeholder:"SECRET" help:"${stripe_webhook_secret}."`

	ConsoleURL       string        `name:"console-url" default:"" placeholder:"URL" help:"${console_url}."`
	ConsoleSession   time.Duration `default:"12h" placeholder:"DURATION" help:"The longest that a browser stays signed in, at most 168h."`
	OIDCIssuer       string        `name:"oidc-issuer" default:"" placeholder:"URL" help:"${oidc_issuer}."`
	OIDCClientID     string        `name:"oidc-client-id" default:"" placeholder:"ID" help:"${oidc_client_id}."`
	OIDCClientSecret Secret        `name:"oidc-client-secret" default:"" placeholder:"SECRET" help:"${oidc_client_secret}."`
	OIDCScopes       string        `name:"oidc-scopes" default:"offline_access" placeholder:"SCOPES" help:"${oidc_scopes}."`
	OIDCAudience     string        `name:"oidc-audience" default:"" placeholder:"AUD" help:"${oidc_audience}."`

	MapStyle string `name:"map-style" default:"" placeholder:"URL" help:"${map_style}."`

	AllowUnsafePostgres bool `help:"${allow_unsafe_postgres}."`

	// DocsScript is JavaScript for /docs, of the development world only; see httpapi.Config.
	DocsScript string `kong:"-"`
	// SignInHint is text on the page where people sign in with a password, of the development world
	// only.
	SignInHint string `kong:"-"`
	// CompareAfter is the time from the start to the comparison of payments, see
	// charging.Reconciler. Defaults to 5 min.
	CompareAfter time.Duration `kong:"-"`
	// Version is the program's. Defaults to "dev".
	Version string `kong:"-"`
	// LogDropped returns how many lines of the log were dropped. Defaults to no such metric.
	LogDropped func() float64 `kong:"-"`
}

// maxRate is the highest limit, in requests a minute or an hour, that is still counted exactly.
const maxRate = 1_000_000

// maxDrain is the longest time to go on serving after SIGTERM.
const maxDrain = 5 * time.Minute

// Check returns all errors of the settings together.
func (c Config) Check() error {
	return errors.Join(
		address("http", c.HTTP),
		address("internal", c.Internal),
		c.checkHealth(),
		checkRange("drain", c.Drain, 0, maxDrain),
		checkRange("state-interval", c.StateInterval, time.Second, twins.MaxStateInterval),
		checkRange("telemetry-retention", c.TelemetryRetention, 0, history.MaxDays),
		checkServer("database-url", string(c.DatabaseURL), func(value string) (io.Closer, error) {
			return pg.New(pg.Config{URL: value})
		}, "postgres", "postgresql"),
		checkServer("redis-url", string(c.RedisURL), func(value string) (io.Closer, error) {
			return redis.New(redis.Config{URL: value})
		}, "redis", "rediss"),
		c.checkMQTT(),
		checkRange("database-conns", c.DatabaseConns, 5, 1000),
		checkRange("budget", c.Budget, telematics.MinBudget, telematics.MaxBudget),
		checkRange("vehicle-rate", c.VehicleRate, 0, maxRate),
		checkRange("refresh-rate", c.RefreshRate, 0, maxRate),
		checkRange("admin-rate", c.AdminRate, 0, maxRate),
		checkBulkRate(c.BulkRate),
		checkRange("client-rate", c.ClientRate, 0, maxRate),
		checkRange("card-rate", c.CardRate, 0, maxRate),
		checkRange("admin-streams", c.AdminStreams, 0, maxRate),
		checkOneOf("log-level", c.LogLevel, "debug", "info", "warn", "error"),
		checkOneOf("log-format", c.LogFormat, "auto", "text", "json"),
		notEmpty("mqtt-username", c.MQTTUsername),
		notEmpty("token-issuer", c.TokenIssuer),
		notEmpty("token-audience", c.TokenAudience),
		c.checkClaims(),
		c.checkOrigins(),
		errorOf(c.trustedProxies()),
		c.checkGeocoder(),
		errorOf(c.alertmanagers()),
		c.checkOTLP(),
		errorOf(c.sealer()),
		c.checkStripe(),
		c.checkSignIn(),
		c.checkMapStyle(),
		c.checkFiles(),
		errorOf(c.maxConnections()),
	)
}

// errorOf returns the error of a call whose value is not needed.
func errorOf[T any](_ T, err error) error { return err }

func (c Config) checkFiles() error {
	silent := slog.New(slog.DiscardHandler)
	var tokens error
	if isURL(c.TokenKeys) {
		tokens = checkKeySource("token-keys", c.TokenKeys)
	} else {
		tokens = publicKeys("token-keys", c.TokenKeys)
	}
	return errors.Join(errorOf(c.signingKeys(silent)), tokens, errorOf(c.tls(silent)))
}

// checkServer returns also what a server's driver cannot read. It connects to none.
func checkServer(flag, value string, open func(string) (io.Closer, error), schemes ...string) error {
	if err := serverURL(flag, value, schemes...); err != nil {
		return err
	}
	db, err := open(value)
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return db.Close()
}

func (c Config) checkMQTT() error {
	var schemes []string
	seen := map[string]bool{}
	for _, node := range slices.Concat(link.ParseShards(c.MQTTURL)...) {
		if err := serverURL("mqtt-url", node, "tcp", "ssl"); err != nil {
			return err
		}
		u, _ := url.Parse(node)
		if u.Port() == "" {
			return errNoMQTT
		}
		if seen[u.Host] {
			return fmt.Errorf("--mqtt-url: %s is named twice", u.Host)
		}
		seen[u.Host] = true
		schemes = append(schemes, u.Scheme)
	}
	if len(slices.Compact(schemes)) > 1 {
		return errors.New("--mqtt-url: use the same scheme, tcp:// or ssl://, in all addresses")
	}
	if len(schemes) == 0 {
		return errNoMQTT
	}
	return nil
}

var errNoMQTT = errors.New("--mqtt-url: want tcp:// or ssl://host:port")

func (c Config) checkHealth() error {
	if c.Health == "" {
		return nil
	}
	return address("health", c.Health)
}

// sealer returns a sealer that has no key if none is set.
func (c Config) sealer() (*agencykeys.Sealer, error) {
	sealer, err := agencykeys.NewSealer(string(c.AgencySecretsKey))
	if err != nil {
		return nil, fmt.Errorf("--agency-secrets-key: %w", err)
	}
	return sealer, nil
}

func isURL(s string) bool { return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://") }

func address(flag, value string) error {
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("--%s: %q is not host:port", flag, value)
	}
	return nil
}

// serverURL checks a URL. Its error does not quote the value, which may contain a password.
func serverURL(flag, value string, schemes ...string) error {
	u, err := url.Parse(value)
	// Postgres may be named by a socket's folder in the query.
	if err != nil || u.Host == "" && !u.Query().Has("host") || !slices.Contains(schemes, u.Scheme) {
		return fmt.Errorf("--%s: want %s://host:port…", flag, strings.Join(schemes, ":// or "))
	}
	return nil
}

// publicKeys returns an error for a JWKS file that contains private keys.
func publicKeys(flag, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("--%s: %w (the public keys of your token issuer, as JWKS)", flag, err)
	}
	var set struct{ Keys []struct{ D, K string } } // private parts of JWK (RFC 7518 §6)
	if err := json.Unmarshal(text, &set); err != nil {
		return fmt.Errorf("--%s: %s is no JWKS: %w", flag, file, err)
	}
	for _, key := range set.Keys {
		if key.D != "" || key.K != "" {
			return fmt.Errorf("--%s: %s holds private keys; give the public half: motorpool keys public %s", flag, file, file)
		}
	}
	return nil
}

// checkKeySource returns an error for a URL whose keys an attacker on the network could replace.
func checkKeySource(flag, value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" {
		return fmt.Errorf("--%s: want https://host/…, or a file", flag)
	}
	if u.Scheme != "https" && !isLocal(u) {
		return fmt.Errorf(
			"--%s: http:// only from this machine: an attacker on the network could replace what it says; want https://",
			flag,
		)
	}
	return nil
}

// checkRange returns an error for a value outside low to high.
func checkRange[T int | time.Duration](flag string, value, low, high T) error {
	if value < low || value > high {
		return fmt.Errorf("--%s: %v is outside %v to %v", flag, value, low, high)
	}
	return nil
}

// checkBulkRate returns an error for a limit below telematics.MaxBulk: an order to that many
// vehicles would always exceed it.
func checkBulkRate(rate int) error {
	if rate == 0 {
		return nil
	}
	return checkRange("bulk-rate", rate, telematics.MaxBulk, maxRate)
}

// checkOneOf returns an error for a value that is not allowed.
func checkOneOf(flag, value string, allowed ...string) error {
	if !slices.Contains(allowed, value) {
		return fmt.Errorf("--%s: %q is none of %s", flag, value, strings.Join(allowed, ", "))
	}
	return nil
}

func notEmpty(flag, value string) error {
	if value == "" {
		return fmt.Errorf("--%s: must not be empty", flag)
	}
	return nil
}

// Secret is a setting that must not be seen in a log.
type Secret string

const redacted = "[redacted]"

// String hides the secret.
func (s Secret) String() string { return redacted }

// GoString hides the secret.
func (s Secret) GoString() string { return redacted }

// MarshalText hides the secret, also where a whole struct is logged as JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue hides the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
