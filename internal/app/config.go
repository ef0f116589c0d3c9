package app

import (
	"encoding/json"
	"errors"
	"fmt"
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
	"motorpool/store/twins"
	"motorpool/telematics"
)

// Config is every setting of the service. Each has a flag, an environment
// variable (MOTORPOOL_ and the flag's name in capitals) and a default.
type Config struct {
	HTTP     string        `default:"127.0.0.1:8080" placeholder:"ADDR" help:"Address of the public API (default ${default})."`
	HTTPCert string        `name:"http-cert" default:"" placeholder:"FILE" help:"Certificate of the public API with its chain, as PEM; read again when it changes (default none: plain HTTP, for a proxy with TLS)."`
	HTTPKey  string        `name:"http-key" default:"" placeholder:"FILE" help:"Its private key, as PEM (default none)."`
	Internal string        `default:"127.0.0.1:8081" placeholder:"ADDR" help:"Address of metrics, detailed readiness and profiles; only your monitoring may reach it (default ${default})."`
	Health   string        `default:"127.0.0.1:8082" placeholder:"ADDR" help:"Address of /healthz and /readyz for load balancers and orchestrators, which may reach it; empty: none (default ${default})."`
	Profiles bool          `help:"Serve Go's profiles at /debug/pprof/ of the internal address."`
	Drain    time.Duration `default:"5s" placeholder:"DURATION" help:"How long to go on serving after SIGTERM, with /readyz at 503, so that load balancers take the instance out first; 0 to 5m (default ${default})."`

	TrustedProxies string `default:"" placeholder:"NETWORKS" help:"Networks of the proxies whose X-Forwarded-For is trusted, separated by commas, such as 10.0.0.0/24 (default none: a caller's address is that of its connection)."`
	MaxConnections int    `default:"0" placeholder:"N" help:"Connections to the public API that may be open; beyond that the oldest one without a valid token is closed (default 0: the limit of open files, less what the service needs for itself)."`

	DatabaseURL        Secret        `default:"postgres://motorpool@127.0.0.1:5432/motorpool?sslmode=disable" placeholder:"URL" help:"Postgres (default ${default})."`
	DatabaseConns      int           `default:"20" placeholder:"N" help:"Connections to Postgres, at most (default ${default})."`
	RedisURL           Secret        `default:"redis://127.0.0.1:6379/0" placeholder:"URL" help:"Redis: redis://host:port/db, rediss:// with TLS; several addresses for Sentinel or Cluster: see docs/servers.md (default ${default})."`
	RedisCA            string        `default:"" placeholder:"FILE" help:"Certificates that sign Redis's, as PEM (default the system's)."`
	RedisCert          string        `default:"" placeholder:"FILE" help:"Certificate of the service at Redis, as PEM; read again when it changes (default none)."`
	RedisKey           string        `default:"" placeholder:"FILE" help:"Its private key, as PEM (default none)."`
	StateInterval      time.Duration `default:"1m" placeholder:"DURATION" help:"Interval of writes of a vehicle's reported state to Postgres, if nothing urgent is reported; until then only Redis has it, so a loss of Redis loses at most that. 1s to 5m (default ${default})."`
	TelemetryRetention int           `default:"7" placeholder:"DAYS" help:"How long to keep samples of each vehicle's energy, 12 V battery, speed, signal and position, 0 to 366 days; 0: nothing is written, and what there is is removed. Positions over time are personal data: see docs/operating.md (default ${default})."`

	MQTTURL       []string      `name:"mqtt-url" sep:"none" default:"tcp://127.0.0.1:1884" placeholder:"URL" help:"Service's listener of the MQTT broker: tcp:// or ssl://; the nodes of a cluster separated by commas; for shards, repeated, or separated by spaces. See docs/servers.md (default ${default})."`
	MQTTUsername  string        `name:"mqtt-username" default:"motorpool" placeholder:"NAME" help:"Account of the service at the MQTT broker (default ${default})."`
	MQTTPassword  Secret        `name:"mqtt-password" default:"" placeholder:"SECRET" help:"Its password; better set by the environment (default none)."`
	MQTTCA        string        `name:"mqtt-ca" default:"" placeholder:"FILE" help:"Certificates that sign the MQTT broker's, as PEM (default the system's)."`
	MQTTCert      string        `name:"mqtt-cert" default:"" placeholder:"FILE" help:"Certificate of the service at the MQTT broker, as PEM; read again when it changes (default none)."`
	MQTTKey       string        `name:"mqtt-key" default:"" placeholder:"FILE" help:"Its private key, as PEM (default none)."`
	SigningKeys   string        `default:"keys/signing.jwks" placeholder:"FILE" help:"Private keys that sign commands, as JWKS; the first one signs. See 'motorpool keys --help' (default ${default})."`
	TokenKeys     string        `default:"keys/tokens.jwks" placeholder:"FILE|URL" help:"Public keys of the access tokens' issuer, as JWKS: a file, or an https:// URL (default ${default})."`
	TokenIssuer   string        `default:"motorpool" placeholder:"ISS" help:"Issuer (iss) of access tokens (default ${default})."`
	TokenAudience string        `default:"motorpool" placeholder:"AUD" help:"Audience (aud) of access tokens (default ${default})."`
	TokenTyp      string        `default:"at+jwt,JWT" placeholder:"TYPES" help:"Values of the header parameter typ that access tokens may have, separated by commas; 'absent' accepts tokens without it, too. See docs/tokens.md (default ${default})."`
	ClaimRole     string        `default:"role" placeholder:"PATH" help:"Claim that names the role; a dotted path such as realm_access.roles leads into objects. See docs/tokens.md (default ${default})."`
	ClaimAgency   string        `default:"agency_id" placeholder:"PATH" help:"Claim that names the agency, likewise (default ${default})."`
	ClaimScope    string        `default:"scope" placeholder:"PATH" help:"Claim that names the scopes, likewise (default ${default})."`
	RoleAdmin     string        `default:"admin" placeholder:"NAME" help:"Value of the role claim for administrators (default ${default})."`
	RoleOperator  string        `default:"operator" placeholder:"NAME" help:"Value of the role claim for operators, who command vehicles, but neither halt commands nor move money (default ${default})."`
	RoleViewer    string        `default:"viewer" placeholder:"NAME" help:"Value of the role claim for viewers, who only read (default ${default})."`
	RoleClient    string        `default:"client" placeholder:"NAME" help:"Value of the role claim for clients (default ${default})."`
	CORSOrigins   string        `name:"cors-origins" default:"" placeholder:"ORIGINS" help:"Origins whose pages may call the API from a browser, separated by commas, such as https://console.example.com (default none)."`
	Budget        time.Duration `default:"10s" placeholder:"DURATION" help:"How long a command may take, 1s to 30s (default ${default})."`
	VehicleRate   int           `default:"10" placeholder:"N" help:"Control commands a minute to one vehicle, from all callers together; 0: any number (default ${default})."`
	RefreshRate   int           `default:"2" placeholder:"N" help:"Times a minute that one vehicle's unit may be queried for its state, by all callers together; 0: any number (default ${default})."`
	AdminRate     int           `default:"600" placeholder:"N" help:"Requests a minute of one administrator; 0: any number (default ${default})."`
	BulkRate      int           `default:"2000" placeholder:"N" help:"Vehicles a minute that one administrator may name in bulk commands; 0: any number (default ${default})."`
	ClientRate    int           `default:"120" placeholder:"N" help:"Requests a minute of one client; 0: any number (default ${default})."`
	CardRate      int           `default:"20" placeholder:"N" help:"Cards an hour that one client may try to add, declined ones included; 0: any number (default ${default})."`
	AdminStreams  int           `default:"10" placeholder:"N" help:"Streams of events that one administrator may have open at an instance; 0: any number (default ${default})."`
	Docs          bool          `default:"true" negatable:"" help:"Serve the contract for browsing and trying at /docs (default ${default})."`
	Migrate       bool          `default:"true" negatable:"" help:"Bring the database's schema up to date at start (default ${default})."`
	LogLevel      string        `default:"info" placeholder:"LEVEL" help:"debug, info, warn or error (default ${default})."`
	LogFormat     string        `default:"auto" placeholder:"FORMAT" help:"text, json, or auto: text on a terminal, else json (default ${default})."`

	OTLPURL string `name:"otlp-url" default:"" placeholder:"URL" help:"Collector that gets OpenTelemetry traces by OTLP/HTTP, such as http://127.0.0.1:4318. See docs/tracing.md (default none: nothing is traced)."`

	GeocoderURL     Secret `default:"" placeholder:"URL" help:"Nominatim-compatible server for the address of a place where a vehicle stands: positions leave the installation. See docs/operating.md (default none: no request is sent)."`
	GeocoderContact string `default:"" placeholder:"EMAIL|URL" help:"Contact for that server's operator, sent in User-Agent (default none)."`

	AgencySecretsKey    Secret `default:"" placeholder:"KEY" help:"Key that encrypts the secrets of agency keys: 32 bytes in hexadecimal digits or base64; of several, separated by commas, the first encrypts and all decrypt. Better set by the environment. See docs/keys.md (default none: clients are refused)."`
	StripeKey           Secret `default:"" placeholder:"KEY" help:"Secret (sk_…) or restricted (rk_…) key of the account at Stripe that holds cards and moves money; sk_live_ and rk_live_ move real money. Better set by the environment. See docs/payments.md (default none: there are no payments)."`
	StripeURL           string `name:"stripe-url" default:"https://api.stripe.com" placeholder:"URL" help:"URL of Stripe's API, or of a compatible server (default ${default})."`
	StripeWebhookSecret Secret `default:"" placeholder:"SECRET" help:"Signing secret of the webhook endpoint /webhooks/stripe (whsec_…); better set by the environment (default none: webhook notices are refused)."`

	ConsoleURL       string        `name:"console-url" default:"" placeholder:"URL" help:"URL at which browsers reach the service, such as https://fleet.example.com: people can sign in there. See docs/console.md (default none)."`
	ConsoleSession   time.Duration `default:"12h" placeholder:"DURATION" help:"The longest that a browser stays signed in, at most 168h (default ${default})."`
	OIDCIssuer       string        `name:"oidc-issuer" default:"" placeholder:"URL" help:"OpenID Connect issuer where people sign in; its access tokens are checked as all others (default none: people sign in with a password, see docs/access.md)."`
	OIDCClientID     string        `name:"oidc-client-id" default:"" placeholder:"ID" help:"The service's client id at the issuer (default none)."`
	OIDCClientSecret Secret        `name:"oidc-client-secret" default:"" placeholder:"SECRET" help:"Its secret; better set by the environment (default none: a public client)."`
	OIDCScopes       string        `name:"oidc-scopes" default:"offline_access" placeholder:"SCOPES" help:"Scopes to ask for besides openid, separated by commas; without offline_access many issuers end a session with its first access token (default ${default})."`
	OIDCAudience     string        `name:"oidc-audience" default:"" placeholder:"AUD" help:"Audience to ask for, where the issuer requires it (default none)."`

	MapStyle string `name:"map-style" default:"" placeholder:"URL" help:"MapLibre style of the console's map; browsers load it and its parts from its host. See docs/console.md (default none: a plain ground)."`

	AllowUnsafePostgres bool `help:"Use a Postgres that runs without fsync or full_page_writes, so that a crash of its machine loses commands that were executed. For development alone."`

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
		serverURL("database-url", string(c.DatabaseURL), "postgres", "postgresql"),
		serverURL("redis-url", string(c.RedisURL), "redis", "rediss"),
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
		c.checkTrustedProxies(),
		c.checkGeocoder(),
		c.checkOTLP(),
		c.checkAgencySecretsKey(),
		c.checkStripe(),
		c.checkSignIn(),
		c.checkMapStyle(),
		c.checkFiles(),
		c.checkMaxConnections(),
	)
}

func (c Config) checkFiles() error {
	_, signing := c.signingKeys(slog.New(slog.DiscardHandler))
	_, certificates := c.tls(slog.New(slog.DiscardHandler))
	var tokens error
	if isURL(c.TokenKeys) {
		tokens = checkKeySource("token-keys", c.TokenKeys)
	} else {
		tokens = publicKeys("token-keys", c.TokenKeys)
	}
	return errors.Join(signing, tokens, certificates)
}

func (c Config) checkMQTT() error {
	var schemes []string
	seen := map[string]bool{}
	for _, node := range slices.Concat(link.ParseShards(c.MQTTURL)...) {
		if err := serverURL("mqtt-url", node, "tcp", "ssl"); err != nil {
			return err
		}
		u, _ := url.Parse(node)
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
		return errors.New("--mqtt-url: want tcp:// or ssl://host:port")
	}
	return nil
}

func (c Config) checkHealth() error {
	if c.Health == "" {
		return nil
	}
	return address("health", c.Health)
}

func (c Config) checkAgencySecretsKey() error {
	_, err := c.sealer()
	return err
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
	if _, _, err := net.SplitHostPort(value); err != nil {
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
