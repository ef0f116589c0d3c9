package mosquitto_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
)

// authority signs certificates of units.
type authority struct {
	t           *testing.T
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{t: t, key: newKey(t)}
	a.certificate = a.sign(&x509.Certificate{
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, Subject: pkix.Name{CommonName: "authority"},
	}, a.key)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign returns a certificate; that of the authority itself is self-signed.
func (a authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	a.t.Helper()
	template.SerialNumber, template.NotBefore = big.NewInt(time.Now().UnixNano()), time.Now().Add(-2*time.Hour)
	parent := a.certificate
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return certificate
}

// unit returns a certificate of a unit with its key.
func (a authority) unit(name string, expires time.Duration) tls.Certificate {
	a.t.Helper()
	key := newKey(a.t)
	certificate := a.sign(&x509.Certificate{
		Subject: pkix.Name{
			CommonName: name,
		},
		NotAfter: time.Now().Add(expires), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, key)
	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

// files returns the files of the authority's certificate and of a revocation list.
func (a authority) files(revoked ...tls.Certificate) (certificate, list string) {
	a.t.Helper()
	template := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Minute), NextUpdate: time.Now().Add(time.Hour)}
	for _, r := range revoked {
		parsed, err := x509.ParseCertificate(r.Certificate[0])
		if err != nil {
			a.t.Fatal(err)
		}
		template.RevokedCertificateEntries = append(
			template.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: parsed.SerialNumber, RevocationTime: time.Now()},
		)
	}
	der, err := x509.CreateRevocationList(rand.Reader, template, a.certificate, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	dir := a.t.TempDir()
	certificate, list = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "units.crl")
	for file, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: a.certificate.Raw}, list: {Type: "X509 CRL", Bytes: der}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return certificate, list
}

func TestCertificatesListener_AcceptsOnlyUnitsOfTheAuthority(t *testing.T) {
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
		"no certificate":                           as("attacker"),
		"a certificate of another authority":       as("victim", foreign.unit("victim", time.Hour)),
		"an expired certificate":                   as("victim", ours.unit("victim", -time.Minute)),
		"a revoked certificate":                    as("revoked", revoked),
		"a certificate on the passwords' listener": {url: broker.UnitsURL(), user: "victim", tune: as("victim", ours.unit("victim", time.Hour)).tune},
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
	devstack.NeedServer(t, devstack.MosquittoServer)
	cfg := devstack.MosquittoConfig{Units: map[string]string{"unit": passwordOf("unit")}}
	var roots *x509.CertPool
	cfg.CertFile, cfg.KeyFile, roots = certificate(t)
	broker := startMosquitto(t, cfg)
	secured, err := url.Parse(broker.UnitsURL())
	if err != nil {
		t.Fatal(err)
	}
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
