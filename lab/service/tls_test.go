package service_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// securedStack has real servers that accept only TLS with a certificate of the authority.
type securedStack struct {
	*stack
	authority *devstack.Authority
	client    devstack.KeyPair // the client certificate of the service
	public    devstack.KeyPair // the certificate of the service's listener
	server    devstack.ServerTLS
	address   *url.URL // address of Postgres
}

func newSecuredStack(t *testing.T, vehicles int) *securedStack {
	t.Helper()
	for _, server := range []string{devstack.PostgresServer, devstack.RedisServer, devstack.MosquittoServer} {
		devstack.NeedServer(t, server)
	}
	postgres, err := devstack.StartPostgres(t.Context(), devstack.PostgresConfig{Dir: filepath.Join(t.TempDir(), "postgres")})
	require.NoError(t, err)
	t.Cleanup(func() { _ = postgres.Discard() })
	_, err = storetest.OpenAsOwner(t, postgres.URL()).Migrate(t.Context())
	require.NoError(t, err)
	s := &securedStack{stack: newStack(t, vehicles, postgres.URL())}
	s.postgres = postgres
	s.authority = s.newAuthority("authority")
	s.client, s.public = s.issue(s.authority, "motorpool"), s.issue(s.authority, "public")
	s.server = devstack.ServerTLS{KeyPair: s.issue(s.authority, "server"), CAFile: filepath.Join(s.dir, "clients.crt")}
	s.accept(s.authority)
	s.address, err = postgres.SecureURL(s.server)
	s.must(err)
	s.redis, err = devstack.StartRedis(filepath.Join(s.dir, "redis"), &s.server)
	s.must(err)
	s.Cleanup(func() { _ = s.redis.Close() })
	passwords := map[string]string{}
	for _, v := range s.fleet.Vehicles {
		passwords[string(v.Unit)] = mosquitto.UnitPassword(unitSecret, string(v.Unit))
	}
	s.mosquitto, err = devstack.StartMosquitto(devstack.MosquittoConfig{
		Dir: filepath.Join(s.dir, "mosquitto"), Units: passwords, ServicePassword: servicePassword, ServiceTLS: &s.server,
	})
	s.must(err)
	s.Cleanup(func() { _ = s.mosquitto.Close() })
	s.redisURL, s.units, s.service = s.redis.URL(), s.mosquitto.UnitsURL(), s.mosquitto.ServiceURL()
	return s
}

func (s *securedStack) newAuthority(name string) *devstack.Authority {
	s.Helper()
	a, err := devstack.NewAuthority(filepath.Join(s.dir, name))
	s.must(err)
	return a
}

func (s *securedStack) issue(a *devstack.Authority, name string) devstack.KeyPair {
	s.Helper()
	pair, err := a.Issue(name)
	s.must(err)
	return pair
}

// accept makes the servers accept clients of another authority when they reload their files.
func (s *securedStack) accept(a *devstack.Authority) {
	s.Helper()
	text, err := os.ReadFile(a.CAFile)
	s.must(err)
	s.must(os.WriteFile(s.server.CAFile, text, 0o600))
}

// settings sets all files of certificates.
func (s *securedStack) settings(c *app.Config) {
	c.HTTPCert, c.HTTPKey = s.public.CertFile, s.public.KeyFile
	c.MQTTCA, c.MQTTCert, c.MQTTKey = s.authority.CAFile, s.client.CertFile, s.client.KeyFile
	c.RedisCA, c.RedisCert, c.RedisKey = s.authority.CAFile, s.client.CertFile, s.client.KeyFile
	c.DatabaseURL = s.databaseURL(s.authority.CAFile, s.client)
}

func (s *securedStack) databaseURL(ca string, pair devstack.KeyPair) app.Secret {
	address := *s.address
	query := url.Values{"sslmode": {"verify-full"}, "sslrootcert": {ca}}
	if pair.CertFile != "" {
		query.Set("sslcert", pair.CertFile)
		query.Set("sslkey", pair.KeyFile)
	}
	address.RawQuery = query.Encode()
	return app.Secret(address.String())
}

// serial returns the serial number of the certificate that a listener presents.
func (s *securedStack) serial(i *instance) string {
	s.Helper()
	c, err := tls.Dial("tcp", host(i.base), s.authority.Trusted())
	s.must(err)
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// copyPair replaces a certificate and its key that are in use.
func (s *securedStack) copyPair(from, to devstack.KeyPair) {
	s.Helper()
	for source, target := range map[string]string{from.CertFile: to.CertFile, from.KeyFile: to.KeyFile} {
		text, err := os.ReadFile(source)
		s.must(err)
		s.must(os.WriteFile(target, text, 0o600))
	}
}

func TestTLS_EveryConnectionIsSecuredAndCertificatesAreReadAgain(t *testing.T) {
	t.Parallel()
	s := newSecuredStack(t, 1)
	s.namesProblems()
	transport := &http.Transport{TLSClientConfig: s.authority.Trusted()}
	t.Cleanup(transport.CloseIdleConnections)
	s.http = &http.Client{Transport: transport}
	s.drive(nil, healthy)
	i := s.serve(s.settings)
	lock := func() {
		t.Helper()
		i.control(1, telematics.Lock).wants(http.StatusOK)
	}
	lock()
	if i.metric("motorpool_connections_open") != 1 || i.metric("motorpool_connections_unauthenticated") != 0 {
		t.Error("the metrics do not count the TLS connection as authenticated by its token")
	}
	outdated := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	if old, err := tls.Dial("tcp", host(i.base), outdated); err == nil {
		_ = old.Close()
		t.Error("the listener accepts TLS 1.1")
	}

	of := func(metric, setting, file string) string {
		return fmt.Sprintf(`motorpool_certificate_%s{file="%s", setting="%s"}`, metric, file, setting)
	}
	for setting, file := range map[string]string{
		"http-cert": s.public.CertFile, "mqtt-cert": s.client.CertFile, "redis-cert": s.client.CertFile,
		"database-url sslcert": s.client.CertFile,
	} {
		expires := time.Unix(i.metric(of("expiry_timestamp_seconds", setting, file)), 0)
		if left := time.Until(expires); left < 30*time.Minute || left > time.Hour {
			t.Errorf("%s: the metric of the certificate expires in %v, want within the hour", setting, left)
		}
	}
	failing := of("reload_failing", "http-cert", s.public.CertFile)
	first := s.serial(i)
	s.must(os.WriteFile(s.public.CertFile, []byte("broken"), 0o600))
	s.eventually(5*time.Second, "the metric reports invalid files", func() bool { return i.metric(failing) == 1 })
	assert.Equal(t, s.serial(i), first, "certificate while the files are invalid")
	s.issue(s.authority, "public")
	s.eventually(5*time.Second, "the new certificate is presented", func() bool { return s.serial(i) != first })
	s.eventually(5*time.Second, "the metric reports valid files", func() bool { return i.metric(failing) == 0 })

	// From now on the servers accept only clients of another authority.
	other := s.newAuthority("other")
	before := i.metric(of("expiry_timestamp_seconds", "mqtt-cert", s.client.CertFile))
	s.copyPair(s.issue(other, "motorpool"), s.client)
	for _, setting := range []string{"mqtt-cert", "redis-cert"} {
		s.eventually(5*time.Second, "new certificate: "+setting, func() bool {
			return i.metric(of("expiry_timestamp_seconds", setting, s.client.CertFile)) > before
		})
	}
	s.accept(other)
	_, err := s.postgres.SecureURL(s.server)
	s.must(err)
	for _, server := range []interface{ Restart() error }{s.postgres, s.redis, s.mosquitto} {
		s.must(server.Restart())
	}
	s.eventually(
		20*time.Second, "commands are executed again",
		func() bool { return i.control(1, telematics.Lock).status == http.StatusOK },
	)
}

// namesProblems checks that /readyz of instances with wrong certificates names the problem of each
// server, and the setting.
func (s *securedStack) namesProblems() {
	s.Helper()
	wrong := s.newAuthority("wrong").CAFile
	const unknownAuthority, noCertificate = "certificate signed by unknown authority", "certificate required"
	for _, c := range []struct {
		change func(*app.Config)
		want   map[string][]string // by check; without Postgres the others are not tried
	}{
		{
			func(c *app.Config) { c.RedisCA, c.MQTTCA = wrong, wrong },
			map[string][]string{"redis": {unknownAuthority, "--redis-ca"}, "mqtt": {unknownAuthority, "--mqtt-ca"}},
		},
		{
			func(c *app.Config) { c.RedisCert, c.RedisKey, c.MQTTCert, c.MQTTKey = "", "", "", "" },
			map[string][]string{"redis": {noCertificate, "--redis-cert"}, "mqtt": {noCertificate, "--mqtt-cert"}},
		},
		{
			func(c *app.Config) { c.DatabaseURL = s.databaseURL(wrong, s.client) },
			map[string][]string{"postgres": {unknownAuthority, "sslrootcert"}},
		},
		{
			func(c *app.Config) { c.DatabaseURL = s.databaseURL(s.authority.CAFile, devstack.KeyPair{}) },
			map[string][]string{"postgres": {"requires a valid client certificate", "sslcert"}},
		},
	} {
		i := s.serveUnready(s.settings, c.change)
		for check, words := range c.want {
			var said struct{ Checks map[string]string }
			defer func() {
				if s.Failed() {
					s.Logf("the checks say %v", said.Checks)
				}
			}()
			s.eventually(20*time.Second, fmt.Sprintf("the check of %s says %q", check, words), func() bool {
				_, text := i.readiness()
				s.must(json.Unmarshal([]byte(text), &said))
				return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(said.Checks[check], word) })
			})
		}
		i.stop()
	}
}
