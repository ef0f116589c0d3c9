package service_test

import (
	"crypto/tls"
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
	_, err = storetest.Open(t, postgres.URL()).Migrate(t.Context())
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

func TestTLS_ReadinessNamesAServerWithACertificateProblem(t *testing.T) {
	t.Parallel()
	s := newSecuredStack(t, 1)
	wrong := s.newAuthority("wrong").CAFile
	const unknownAuthority, noCertificate = "certificate signed by unknown authority", "certificate required"
	type config = app.Config
	for name, c := range map[string]struct {
		change func(*config)
		check  string
		want   []string
	}{
		"redis, wrong authority": {func(c *config) { c.RedisCA = wrong }, "redis", []string{unknownAuthority, "--redis-ca"}},
		"redis, no certificate":  {func(c *config) { c.RedisCert, c.RedisKey = "", "" }, "redis", []string{noCertificate, "--redis-cert"}},
		"mqtt, wrong authority":  {func(c *config) { c.MQTTCA = wrong }, "mqtt", []string{unknownAuthority, "--mqtt-ca"}},
		"mqtt, no certificate":   {func(c *config) { c.MQTTCert, c.MQTTKey = "", "" }, "mqtt", []string{noCertificate, "--mqtt-cert"}},
		"postgres, wrong authority": {func(c *config) { c.DatabaseURL = s.databaseURL(wrong, s.client) },
			"postgres", []string{unknownAuthority, "sslrootcert"}},
		"postgres, no certificate": {func(c *config) { c.DatabaseURL = s.databaseURL(s.authority.CAFile, devstack.KeyPair{}) },
			"postgres", []string{"requires a valid client certificate", "sslcert"}},
	} {
		t.Run(name, func(t *testing.T) {
			of := *s.stack
			of.T = t
			i := of.serveUnready(s.settings, c.change)
			defer i.stop()
			var said string
			defer func() { t.Log(said) }()
			of.eventually(20*time.Second, name, func() bool {
				var status int
				status, said = i.readiness()
				return status == http.StatusServiceUnavailable &&
					!slices.ContainsFunc(c.want, func(want string) bool { return !strings.Contains(said, want) })
			})
		})
	}
}
