package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"

	"golang.org/x/sync/errgroup"

	"motorpool/guard"
	"motorpool/internal/keyfile"
)

// secured has the TLS settings of the public listener and of the connections to servers.
type secured struct {
	public *tls.Config // nil: the public listener speaks plain HTTP
	mqtt   *tls.Config // nil: the defaults of crypto/tls, where the URL asks for TLS
	redis  *tls.Config // likewise
	inUse  []*certificate
	panics *guard.Guard
}

// tls reads the files of certificates and keys.
func (c Config) tls(log *slog.Logger) (secured, error) {
	var s secured
	public, errPublic := loadCertificate("http-cert", c.HTTPCert, "http-key", c.HTTPKey, log)
	if public != nil {
		s.inUse = append(s.inUse, public)
		// HTTP/2 would need further bounds, for the streams of a connection.
		s.public = &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: get[*tls.ClientHelloInfo](public),
		}
	}
	var errMQTT, errRedis error
	s.mqtt, errMQTT = s.client("mqtt", strings.Join(c.MQTTURL, " "), "tcp", "ssl", c.MQTTCA, c.MQTTCert, c.MQTTKey, log)
	s.redis, errRedis = s.client("redis", string(c.RedisURL), "redis", "rediss", c.RedisCA, c.RedisCert, c.RedisKey, log)
	return s, errors.Join(errPublic, errMQTT, errRedis, s.postgres(string(c.DatabaseURL), log))
}

// client returns the TLS settings of connections to a server, and nil if no file is set.
func (s *secured) client(server, address, plain, scheme, caFile, certFile, keyFile string, log *slog.Logger) (*tls.Config, error) {
	if caFile == "" && certFile == "" && keyFile == "" {
		return nil, nil
	}
	if strings.HasPrefix(address, plain+"://") {
		return nil, fmt.Errorf(
			"--%s-ca: neither it nor --%s-cert and --%s-key is of use without --%s-url %s://…, and without that nothing is encrypted",
			server, server, server, server, scheme,
		)
	}
	roots, errRoots := keyfile.Authorities(caFile)
	if errRoots != nil {
		errRoots = fmt.Errorf("--%s-ca: %w", server, errRoots)
	}
	own, errOwn := loadCertificate(server+"-cert", certFile, server+"-key", keyFile, log)
	if err := errors.Join(errRoots, errOwn); err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if own != nil {
		s.inUse = append(s.inUse, own)
		config.GetClientCertificate = get[*tls.CertificateRequestInfo](own)
	}
	return config, nil
}

// postgres checks the files that are named in the URL, since the driver ignores a certificate that
// is missing. The driver reads them itself, for each connection.
func (s *secured) postgres(address string, log *slog.Logger) error {
	u, err := url.Parse(address)
	if err != nil {
		return nil // reported by serverURL, without the password
	}
	parameters := u.Query()
	if parameters.Has("sslinline") { // there are no files
		return nil
	}
	if roots := parameters.Get("sslrootcert"); roots != "system" {
		if _, err := keyfile.Authorities(roots); err != nil {
			return fmt.Errorf("--database-url sslrootcert: %w", err)
		}
	}
	own, err := loadCertificate("database-url sslcert", parameters.Get("sslcert"), "database-url sslkey", parameters.Get("sslkey"), log)
	if own != nil {
		own.effect = "new connections to postgres fail"
		s.inUse = append(s.inUse, own)
	}
	return err
}

// watch follows the files of all certificates, until the context ends.
func (s secured) watch(ctx context.Context) error {
	var group errgroup.Group
	for _, c := range s.inUse {
		group.Go(func() error { return s.panics.Keep(ctx, "watch certificate", c.watch) })
	}
	return group.Wait()
}

// listener returns the public listener, with TLS where there is a certificate.
func (s secured) listener(plain net.Listener) net.Listener {
	if s.public == nil {
		return plain
	}
	return tls.NewListener(plain, s.public)
}

// withSettings adds the settings that correct it to a check's error about a rejected certificate.
func withSettings(ready func(context.Context) error, authorities, own string) func(context.Context) error {
	return func(ctx context.Context) error {
		err := ready(ctx)
		var server *tls.CertificateVerificationError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &server):
			return fmt.Errorf("%w (the server's certificate is checked by %s)", err, authorities)
		case rejected(err.Error()):
			return fmt.Errorf("%w (the service's certificate is %s)", err, own)
		}
		return err
	}
}

// rejected reports whether an error text means that a server rejects the service's certificate, or
// requires one: a TLS alert, whose values crypto/tls does not export, or a message of Postgres.
func rejected(said string) bool {
	for _, words := range []string{
		"tls: certificate required", "tls: bad certificate", "tls: unknown certificate", "tls: expired certificate",
		"tls: revoked certificate", "tls: handshake failure",
		"valid client certificate", "certificate authentication failed",
	} {
		if strings.Contains(said, words) {
			return true
		}
	}
	return false
}
