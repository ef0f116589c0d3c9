package mosquitto_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"motorpool/internal/require"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
)

// authority signs certificates of units. All have the same name.
type authority struct {
	*testing.T
	*devstack.Authority
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a, err := devstack.NewAuthority(filepath.Join(t.TempDir(), "authority"))
	require.NoError(t, err)
	return authority{t, a}
}

// unit returns a certificate of a unit with its key.
func (a authority) unit(name string, lasts time.Duration) tls.Certificate {
	a.Helper()
	certificate, err := a.Login(name, lasts)
	require.NoError(a, err)
	return certificate
}

// files returns the files of the authority's certificate and of a revocation list.
func (a authority) files(revoked ...tls.Certificate) (certificate, list string) {
	a.Helper()
	list = filepath.Join(a.TempDir(), "units.crl")
	require.NoError(a, a.WriteRevocations(list, revoked...))
	return a.CAFile, list
}

func TestCertificatesListener_AcceptsOnlyUnitsOfTheAuthority(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.MosquittoServer)
	ours, foreign := newAuthority(t), newAuthority(t)
	revoked := ours.unit("revoked", time.Hour)
	cfg := devstack.MosquittoConfig{ServicePassword: servicePassword, Units: map[string]string{"attacker": passwordOf("attacker")}}
	var roots *x509.CertPool
	cfg.CertFile, cfg.KeyFile, roots = certificate(t)
	cfg.UnitsCA, cfg.UnitsCRL = ours.files(revoked)
	broker := startMosquitto(t, cfg)
	as := func(name string, certificates ...tls.Certificate) login {
		l := login{url: broker.CertificatesURL(), id: "any-id", user: name, password: passwordOf(name)}
		l.tune = func(o *paho.ClientOptions) { o.SetTLSConfig(&tls.Config{RootCAs: roots, Certificates: certificates}) }
		return l
	}
	for what, l := range map[string]login{
		"no certificate":                     as("attacker"),
		"a certificate of another authority": as("victim", foreign.unit("victim", time.Hour)),
		"an expired certificate":             as("victim", ours.unit("victim", -time.Minute)),
		"a revoked certificate":              as("revoked", revoked),
		"a certificate on the passwords' listener": {
			url: broker.UnitsURL(), user: "victim", tune: as("victim", ours.unit("victim", time.Hour)).tune,
		},
	} {
		if _, err := l.dial(t); err == nil {
			t.Errorf("with %s the client connected, want it refused", what)
		}
	}

	service := login{url: broker.ServiceURL(), id: "instance", user: mosquitto.ServiceUser, password: servicePassword}.mustDial(t)
	service.subscribe(all("telemetry"))
	victim := as("", ours.unit("victim", time.Hour)).mustDial(t)
	victim.subscribe(topic("victim", "command"))
	// The name is that of the certificate, whatever the client sends.
	attacker := as("victim", ours.unit("attacker", time.Hour)).mustDial(t)
	attacker.subscribe("#", topic("victim", "command"), topic("attacker", "command"))
	attacker.publish(topic("victim", "telemetry"), "forged")
	attacker.publish(topic("attacker", "telemetry"), "genuine")
	service.await("genuine")
	service.onlyReceived("genuine")
	service.publish(topic("victim", "command"), "for the victim")
	service.publish(topic("attacker", "command"), "for the attacker")
	victim.await("for the victim")
	attacker.await("for the attacker")
	attacker.onlyReceived("for the attacker")
	if !victim.connected() {
		t.Error("the attacker replaced the victim's connection")
	}
}

func TestUnitsListener_RefusesPlainTextAndOversizedPackets(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.MosquittoServer)
	cfg := devstack.MosquittoConfig{Units: map[string]string{"unit": passwordOf("unit")}}
	var roots *x509.CertPool
	cfg.CertFile, cfg.KeyFile, roots = certificate(t)
	broker := startMosquitto(t, cfg)
	secured, err := url.Parse(broker.UnitsURL())
	require.NoError(t, err)
	plain := login{url: "tcp://" + secured.Host, user: "unit", password: passwordOf("unit")}
	if _, err := plain.dial(t); err == nil {
		t.Error("a client connected without TLS")
	}

	l := login{url: broker.UnitsURL(), user: "unit", password: passwordOf("unit")}
	l.tune = func(o *paho.ClientOptions) { o.SetTLSConfig(&tls.Config{RootCAs: roots}) }
	oversized := l.mustDial(t)
	oversized.paho.Publish(topic("unit", "telemetry"), 1, false, make([]byte, 257<<10))
	oversized.awaitLost()
	l.mustDial(t)
}
