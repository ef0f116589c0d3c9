package app

import (
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics/signing"
)

// good returns valid settings.
func good(t *testing.T) Config {
	t.Helper()
	key, err := signing.NewKey()
	require.NoError(t, err)
	private, err := signing.Keychain{{Key: key}}.Encode()
	require.NoError(t, err)
	server := httptest.NewTLSServer(nil)
	server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	dir := t.TempDir()
	for name, content := range map[string][]byte{"signing.jwks": private, "tokens.jwks": []byte(`{"keys":[]}`), "ca.pem": ca} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	return Config{
		HTTP: "127.0.0.1:0", Internal: ":0", DatabaseURL: "postgres://u:p@h/db", DatabaseConns: 20, RedisURL: "redis://h:6379",
		MQTTURL: []string{"ssl://h:8884"}, MQTTUsername: "u", MQTTPassword: "p", MQTTCA: filepath.Join(dir, "ca.pem"),
		SigningKeys: filepath.Join(dir, "signing.jwks"), TokenKeys: filepath.Join(dir, "tokens.jwks"),
		TokenIssuer: "i", TokenAudience: "a", Budget: 10 * time.Second, StateInterval: time.Minute, LogLevel: "info", LogFormat: "json",
	}
}

func TestCheck_AcceptsValidSettings(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"unchanged":                    func(*Config) {},
		"plain MQTT":                   func(c *Config) { c.MQTTURL, c.MQTTCA = []string{"tcp://h:1884"}, "" },
		"cluster and shard":            func(c *Config) { c.MQTTURL = []string{"ssl://a:1,ssl://b:1", "ssl://c:1"} },
		"shards in one variable":       func(c *Config) { c.MQTTURL = []string{"ssl://a:1 ssl://b:1"} },
		"keys of tokens by HTTPS":      func(c *Config) { c.TokenKeys = "https://id.example.com/jwks" },
		"keys of tokens from loopback": func(c *Config) { c.TokenKeys = "http://127.0.0.1:8000/jwks" },
		"one key for secrets":          func(c *Config) { c.AgencySecretsKey = Secret(strings.Repeat("0a", 32)) },
		"two keys for secrets": func(c *Config) {
			c.AgencySecretsKey = Secret(strings.Repeat("0a", 32) + "," + strings.Repeat("A", 43) + "=")
		},
		"geocoder": func(c *Config) { c.GeocoderURL = "http://nominatim:8080" },
		"public geocoder": func(c *Config) {
			c.GeocoderURL, c.GeocoderContact = "https://nominatim.openstreetmap.org", "fleet@example.com"
		},
		"two Alertmanagers": func(c *Config) { c.AlertmanagerURL = "http://a:9093, https://u:p@b/alertmanager" },
		"origins and claims": func(c *Config) {
			c.CORSOrigins, c.ClaimRole, c.ClaimAgency = "https://console.example.com, http://localhost:5173", "realm_access.roles",
				"https://example.com/agency"
		},
		"several database hosts": func(c *Config) { c.DatabaseURL = "postgres://u@h1:5432,h2:5432/db" },
		"socket of a database":   func(c *Config) { c.DatabaseURL = "postgres:///db?host=/run/postgresql" },
	} {
		t.Run(name, func(t *testing.T) {
			c := good(t)
			change(&c)
			assert.NoError(t, c.Check())
		})
	}
}

func TestCheck_NamesEachInvalidSetting(t *testing.T) {
	for flag, change := range map[string]func(*Config){
		"--http":                func(c *Config) { c.HTTP = "8080" },
		"--internal":            func(c *Config) { c.Internal = "127.0.0.1:80810" },
		"--health":              func(c *Config) { c.Health = "8082" },
		"--telemetry-retention": func(c *Config) { c.TelemetryRetention = 400 },
		"--state-interval":      func(c *Config) { c.StateInterval = time.Hour },
		"--drain":               func(c *Config) { c.Drain = time.Hour },
		"--max-connections":     func(c *Config) { c.MaxConnections = -1 },
		"--database-url":        func(c *Config) { c.DatabaseURL = "mysql://h/db" },
		"--database-conns":      func(c *Config) { c.DatabaseConns = 4 },
		"--redis-url":           func(c *Config) { c.RedisURL = "h:6379" },
		"--mqtt-url":            func(c *Config) { c.MQTTURL = []string{"mqtt://h"} },
		"--database-url: read the address of postgres": func(c *Config) { c.DatabaseURL = "postgres://u:hush@h/db?sslmode=disabled" },
		"--redis-url: read the address of redis":       func(c *Config) { c.RedisURL = "redis://:hush@h:6379/first" },
		"--mqtt-username":                              func(c *Config) { c.MQTTUsername = "" },
		// With a URL without TLS the connection would not be encrypted.
		"--mqtt-ca":                  func(c *Config) { c.MQTTURL = []string{"tcp://h:1884"} },
		"--mqtt-cert":                func(c *Config) { c.MQTTKey = c.MQTTCA },
		"--mqtt-key":                 func(c *Config) { c.MQTTCert = c.MQTTCA },
		"--redis-ca":                 func(c *Config) { c.RedisURL, c.RedisCA = "rediss://h:6379", c.TokenKeys },
		"--http-cert":                func(c *Config) { c.HTTPCert, c.HTTPKey = c.MQTTCA, c.MQTTCA },
		"--http-key":                 func(c *Config) { c.HTTPCert = c.MQTTCA },
		"--database-url sslrootcert": func(c *Config) { c.DatabaseURL += "?sslmode=verify-full&sslrootcert=/none" },
		"--database-url sslcert":     func(c *Config) { c.DatabaseURL += "?sslkey=/none" },
		"--signing-keys":             func(c *Config) { c.SigningKeys = c.TokenKeys },
		"--token-keys":               func(c *Config) { c.TokenKeys = "http://id.example.com/jwks" },
		"--token-issuer":             func(c *Config) { c.TokenIssuer = "" },
		"--cors-origins":             func(c *Config) { c.CORSOrigins = "https://ok.example,https://console.example.com/" },
		"--claim-role":               func(c *Config) { c.ClaimRole = "realm_access..roles" },
		"--role-client":              func(c *Config) { c.RoleClient = "admin" },
		"--console-url":              func(c *Config) { c.ConsoleURL = "http://fleet.example.com" },
		"--oidc-issuer": func(c *Config) {
			c.ConsoleURL, c.OIDCIssuer, c.OIDCClientID = "https://f.example", "http://id.example.com", "c"
		},
		"--oidc-client-id":     func(c *Config) { c.ConsoleURL, c.OIDCIssuer = "https://f.example", "https://id.example.com" },
		"--console-session":    func(c *Config) { c.ConsoleURL, c.ConsoleSession = "https://f.example", -time.Second },
		"--map-style":          func(c *Config) { c.ConsoleURL, c.MapStyle = "https://f.example", "style.json" },
		"--role-viewer":        func(c *Config) { c.RoleViewer = "operator" },
		"--token-audience":     func(c *Config) { c.TokenAudience = "" },
		"--budget":             func(c *Config) { c.Budget = time.Minute },
		"--vehicle-rate":       func(c *Config) { c.VehicleRate = -1 },
		"--refresh-rate":       func(c *Config) { c.RefreshRate = -1 },
		"--admin-rate":         func(c *Config) { c.AdminRate = 1_000_001 },
		"--client-rate":        func(c *Config) { c.ClientRate = -1 },
		"--card-rate":          func(c *Config) { c.CardRate = 1_000_001 },
		"--agency-secrets-key": func(c *Config) { c.AgencySecretsKey = "hush" },
		"--trusted-proxies":    func(c *Config) { c.TrustedProxies = "10.0.0.0/8, 0.0.0.0/0" },
		"--log-level":          func(c *Config) { c.LogLevel = "trace" },
		"--otlp-url":           func(c *Config) { c.OTLPURL = "https://user:hush@collector" },
		"--alertmanager-url":   func(c *Config) { c.AlertmanagerURL = "http://a:9093,b:9093" },
		"--log-format":         func(c *Config) { c.LogFormat = "xml" },
	} {
		t.Run(flag, func(t *testing.T) {
			c := good(t)
			change(&c)
			err := c.Check()
			if err == nil || !strings.Contains(err.Error(), flag+":") || strings.Contains(err.Error(), "hush") ||
				strings.Count(err.Error(), "\n") > 0 {
				t.Errorf("error %v, want one line about %s", err, flag)
			}
		})
	}
}

func TestCheck_NamesInvalidBrokers(t *testing.T) {
	for name, urls := range map[string][]string{
		"none": {" "}, "duplicate": {"ssl://a:1", "ssl://a:1"}, "empty node": {"ssl://a:1,"}, "no port": {"tcp://a"},
		"with TLS and without": {"ssl://a:1", "tcp://b:1"},
	} {
		c := good(t)
		c.MQTTURL = urls
		if err := c.Check(); err == nil || !strings.HasPrefix(err.Error(), "--mqtt-url: ") {
			t.Errorf("%s: error %v, want one about --mqtt-url", name, err)
		}
	}
}

func TestConfig_AGeocoderIsAskedByNameOnly(t *testing.T) {
	for name, c := range map[string]struct{ url, contact, flag string }{
		"file":                              {"geocoder.sock", "", "--geocoder-url"},
		"other protocol":                    {"ftp://h/hush", "", "--geocoder-url"},
		"contact without a server":          {"", "fleet@example.com", "--geocoder-contact"},
		"contact with a header":             {"https://h", "a\r\nb: c", "--geocoder-contact"},
		"public server without a contact":   {"https://nominatim.openstreetmap.org", "", "--geocoder-contact"},
		"public server in another spelling": {"https://Nominatim.OpenStreetMap.org:443/?key=hush", "", "--geocoder-contact"},
	} {
		config := good(t)
		config.GeocoderURL, config.GeocoderContact = Secret(c.url), c.contact
		err := config.Check()
		if err == nil || !strings.Contains(err.Error(), c.flag) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: error %v, want one about %s", name, err, c.flag)
		}
	}
}

func TestPlaces_NoGeocoderWithoutItsURL(t *testing.T) {
	c := good(t)
	for _, url := range []Secret{"", "http://127.0.0.1:1"} {
		c.GeocoderURL = url
		a, err := (&service{config: c, registry: prometheus.NewRegistry()}).newAddresses(nil)
		if err != nil || (a.geocoder != nil) != (url != "") || (a.Geocoder != nil) != (url != "") {
			t.Errorf("geocoder %q: %+v, %v", string(url), a, err)
		}
	}
}

func TestConfig_SecretsAreNotPrinted(t *testing.T) {
	c := good(t)
	c.DatabaseURL, c.RedisURL, c.MQTTPassword, c.GeocoderURL, c.AgencySecretsKey = "postgres://hush@h", "redis://hush@h", "hush",
		"https://h/?key=hush", "hush"
	c.AlertmanagerURL = "https://u:hush@h"
	c.StripeKey, c.StripeWebhookSecret = "sk_test_hush", "whsec_hush"
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("settings", "config", c)
	slog.New(slog.NewTextHandler(&log, nil)).Info("settings", "config", c)
	if text := fmt.Sprintf("%v %+v %#v", c, c, c) + log.String(); strings.Contains(text, "hush") ||
		!strings.Contains(log.String(), "redacted") {
		t.Errorf("a secret is in: %s", text)
	}
}
