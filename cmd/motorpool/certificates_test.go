package main

import (
	"crypto/tls"
	"path/filepath"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

// pki has a certificate for servers on loopback, and an issuer of the certificates of units.
type pki struct {
	server  devstack.KeyPair
	trusted *tls.Config // configuration of clients of the servers
	issuer  *devstack.Authority
	crl     string
}

func newPKI(t *testing.T) pki {
	t.Helper()
	dir := t.TempDir()
	authority, err := devstack.NewAuthority(filepath.Join(dir, "servers"))
	require.NoError(t, err)
	p := pki{trusted: authority.Trusted(), crl: filepath.Join(dir, "units.crl")}
	if p.server, err = authority.Issue("server"); err != nil {
		t.Fatal(err)
	}
	if p.issuer, err = devstack.NewAuthority(filepath.Join(dir, "issuer")); err != nil {
		t.Fatal(err)
	}
	p.revoke(t)
	return p
}

// revoke writes the list of all revoked certificates.
func (p pki) revoke(t *testing.T, certificates ...tls.Certificate) {
	t.Helper()
	require.NoError(t, p.issuer.WriteRevocations(p.crl, certificates...))
}

func (p pki) issue(t *testing.T, unit string) tls.Certificate {
	t.Helper()
	certificate, err := p.issuer.Login(unit, time.Hour)
	require.NoError(t, err)
	return certificate
}

// brokerConfig returns the configuration of a Mosquitto with a listener for certificates.
func (p pki) brokerConfig() devstack.MosquittoConfig {
	return devstack.MosquittoConfig{CertFile: p.server.CertFile, KeyFile: p.server.KeyFile, UnitsCA: p.issuer.CAFile, UnitsCRL: p.crl}
}

// radio returns a connection to the broker with a certificate.
func (p pki) radio(broker *devstack.Mosquitto, certificates ...tls.Certificate) simulator.MQTT {
	config := p.trusted.Clone()
	config.Certificates = certificates
	return simulator.MQTT{Broker: broker.CertificatesURL(), TLS: config}
}

func (p pki) connect(t *testing.T, broker *devstack.Mosquitto, unit string, certificates ...tls.Certificate) (simulator.Connection, error) {
	t.Helper()
	c, err := p.radio(broker, certificates...).Dial(t.Context(), simulator.Login{Unit: telematics.Unit(unit)}, func(simulator.Message) {})
	if err == nil {
		t.Cleanup(c.Cut)
	}
	return c, err
}

func TestUnit_RemoveEndsTheConnectionsOfRevokedCertificates(t *testing.T) {
	p := newPKI(t)
	cfg := p.brokerConfig()
	cfg.ServicePassword = "service"
	broker := operatedMosquitto(t, cfg)
	connected := func(unit string, certificate tls.Certificate) simulator.Connection {
		c, err := p.connect(t, broker, unit, certificate)
		require.NoError(t, err, "unit %s", unit)
		return c
	}
	other := connected("other", p.issue(t, "other"))
	old := p.issue(t, "unit-1")
	first := connected("unit-1", old)
	if _, err := p.connect(t, broker, "unit-1"); err == nil {
		t.Error("a unit connected without a certificate")
	}
	tool(t, "unit", "remove", "unit-1").exits(exitRefused)
	t.Setenv("MOTORPOOL_MQTT_URL", broker.ServiceURL())
	t.Setenv("MOTORPOOL_MQTT_PASSWORD", "service")

	p.revoke(t, old)
	t.Setenv("MOTORPOOL_MOSQUITTO_PID_FILE", "")
	tool(t, "unit", "remove", "unit-1").says("stay open until they break")
	t.Setenv("MOTORPOOL_MOSQUITTO_PID_FILE", broker.PIDFile())
	for range 2 { // it can be repeated
		tool(t, "unit", "remove", "unit-1").printsOnly("removed: unit-1").saysOnly("")
	}
	awaitLost(t, "connection with a revoked certificate", first)
	if _, err := p.connect(t, broker, "unit-1", old); err == nil {
		t.Error("a revoked certificate is accepted")
	}
	connected("unit-1", p.issue(t, "unit-1"))
	select {
	case <-other.Lost():
		t.Error("another unit was disconnected")
	default:
	}
}
