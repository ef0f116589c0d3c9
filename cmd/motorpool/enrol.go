package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"motorpool/httpapi/connections"
	"motorpool/internal/enrolment"
	"motorpool/internal/logger"
	"motorpool/telematics"
)

// unitAuthority has the flags of the authority that signs the certificates of units.
type unitAuthority struct {
	UnitAuthority string `placeholder:"DIR" help:"Folder of the certificate authority of units (default none: units have passwords alone)."`
	UnitsCRL      string `name:"units-crl" default:"units.crl" placeholder:"FILE" help:"Revocation list that Mosquitto reads (default ${default})."`
}

func (a unitAuthority) open() (*enrolment.Authority, error) {
	if a.UnitAuthority == "" {
		return nil, badUsage("--unit-authority: want the folder of the certificate authority (make it: motorpool unit authority --unit-authority DIR)")
	}
	return enrolment.Open(a.UnitAuthority, a.UnitsCRL)
}

// issued returns the certificates, and the units with codes that were not used; none without an
// authority.
func (a unitAuthority) issued() ([]enrolment.Certificate, []telematics.Unit, error) {
	if a.UnitAuthority == "" {
		return nil, nil, nil
	}
	authority, err := a.open()
	if err != nil {
		return nil, nil, err
	}
	certificates, err := authority.Certificates()
	if err != nil {
		return nil, nil, err
	}
	pending, err := authority.Pending()
	return certificates, pending, err
}

type makeAuthority struct {
	unitAuthority
	Lifetime time.Duration `env:"-" default:"87600h" placeholder:"DURATION" help:"How long its certificate is valid (default ${default})."`
}

func (m makeAuthority) Run(ctx context.Context) error {
	if m.UnitAuthority == "" {
		return badUsage("--unit-authority: want a folder for the certificate authority; it keeps a private key, so not one that Mosquitto reads")
	}
	if m.Lifetime < time.Hour {
		return badUsage("--lifetime: want 1h or more")
	}
	if _, err := enrolment.Create(ctx, m.UnitAuthority, m.UnitsCRL, m.Lifetime); err != nil {
		return err
	}
	fmt.Fprintln(stdout, m.UnitAuthority)
	hint("Give Mosquitto %s/ca.crt as cafile and %s as crlfile (mosquitto/certificates.conf). Keep %s/ca.key secret, and make a backup of the folder.",
		m.UnitAuthority, m.UnitsCRL, m.UnitAuthority)
	return nil
}

type enrolUnit struct {
	unitAuthority
	Units        []string      `arg:"" optional:"" name:"unit" help:"Serials of the units that get a code."`
	CodeLifetime time.Duration `env:"-" default:"24h" placeholder:"DURATION" help:"How long a code can be used (default ${default})."`
	Lifetime     time.Duration `env:"-" default:"8760h" placeholder:"DURATION" help:"How long the certificate is valid (default ${default})."`
	Listen       string        `env:"-" placeholder:"ADDRESS" help:"Serve units over HTTPS at this host:port, instead of making codes."`
	Certificate  string        `env:"-" placeholder:"FILE" help:"With --listen: certificate of the server, with its chain, as PEM."`
	Key          string        `name:"certificate-key" env:"-" placeholder:"FILE" help:"With --listen: its private key, as PEM."`
}

func (e enrolUnit) Run(ctx context.Context) error {
	switch {
	case e.Listen != "" && len(e.Units) > 0, e.Listen == "" && len(e.Units) == 0:
		return badUsage("want either the serials of units, or --listen")
	case e.Listen != "" && (e.Certificate == "" || e.Key == ""):
		return badUsage("--listen: want --certificate and --certificate-key, too: codes are secrets, and go over TLS only")
	case e.CodeLifetime < time.Minute || e.Lifetime < time.Minute:
		return badUsage("--code-lifetime, --lifetime: want 1m or more")
	}
	if err := (serials{e.Units}).check(); err != nil {
		return err
	}
	authority, err := e.open()
	if err != nil {
		return err
	}
	if e.Listen != "" {
		return e.serve(ctx, authority)
	}
	for _, name := range e.Units {
		code, err := authority.NewCode(ctx, telematics.Unit(name), enrolment.CodeConfig{Lifetime: e.CodeLifetime, CertificateLifetime: e.Lifetime})
		if err != nil {
			return err
		}
		fmt.Fprintln(stdout, name, code)
	}
	return nil
}

// Limits of the enrolment server.
const (
	maxEnrolments    = 128              // connections
	enrolmentTimeout = 20 * time.Second // longer than the wait for the authority's lock
)

// serve answers units until the context ends.
func (e enrolUnit) serve(ctx context.Context, authority *enrolment.Authority) error {
	certificate := &reloadedPair{file: e.Certificate, keyFile: e.Key, log: logger.New(os.Stderr, "info", "text")}
	if err := certificate.load(); err != nil {
		return badUsage("--certificate, --certificate-key: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", e.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	log := certificate.log
	server := &http.Server{
		Handler: enrolment.Handler(authority, log), ReadTimeout: enrolmentTimeout / 2, WriteTimeout: enrolmentTimeout, MaxHeaderBytes: 8 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), // handshakes that fail
		// Package enrolment verifies a unit's certificate itself, also against its list.
		TLSConfig: &tls.Config{GetCertificate: certificate.get, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12},
	}
	log.Info("serving enrolment", "listen", listener.Addr().String())
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), enrolmentTimeout)
		defer cancel()
		done <- server.Shutdown(ending)
	}()
	// A connection too many closes the oldest one, so silent ones keep no unit out.
	if err := server.ServeTLS(connections.Bound(listener, maxEnrolments, nil, log), "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-done
}

// reloadedPair is the server's certificate. It reads the files for each connection: the server runs
// longer than a certificate is valid. Safe for concurrent use.
type reloadedPair struct {
	file, keyFile string
	log           *slog.Logger
	last          atomic.Pointer[tls.Certificate] // the last one that could be read
}

func (p *reloadedPair) load() error {
	pair, err := tls.LoadX509KeyPair(p.file, p.keyFile)
	if err == nil {
		p.last.Store(&pair)
	}
	return err
}

func (p *reloadedPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if err := p.load(); err != nil {
		p.log.Error("certificate not read, the former one stays in use", "file", p.file, "err", err)
	}
	return p.last.Load(), nil
}
