package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

// pki has a certificate for servers on loopback, and an authority of units, which are set in the
// environment.
type pki struct {
	dir     string
	server  devstack.KeyPair
	trusted *tls.Config // configuration of clients of the servers
}

func newPKI(t *testing.T) pki {
	t.Helper()
	p := pki{dir: t.TempDir()}
	authority, err := devstack.NewAuthority(filepath.Join(p.dir, "servers"))
	if err != nil {
		t.Fatal(err)
	}
	if p.server, err = authority.Issue("server"); err != nil {
		t.Fatal(err)
	}
	p.trusted = authority.Trusted()
	t.Setenv("MOTORPOOL_UNIT_AUTHORITY", filepath.Join(p.dir, "authority"))
	t.Setenv("MOTORPOOL_UNITS_CRL", p.crl())
	if _, _, err := runTool(t, "unit", "authority"); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p pki) crl() string { return filepath.Join(p.dir, "units.crl") }

// brokerConfig returns the configuration of a Mosquitto with a listener for certificates.
func (p pki) brokerConfig(t *testing.T) devstack.MosquittoConfig {
	t.Helper()
	return devstack.MosquittoConfig{
		CertFile: p.server.CertFile, KeyFile: p.server.KeyFile, UnitsCA: filepath.Join(p.dir, "authority", "ca.crt"), UnitsCRL: p.crl(),
	}
}

// serve runs the enrolment server until the test ends, and returns its URL.
func (p pki) serve(t *testing.T) string {
	t.Helper()
	port, err := devstack.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(self, "unit", "enrol", "--listen", address, "--certificate", p.server.CertFile, "--certificate-key", p.server.KeyFile)
	server.Stderr = t.Output()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(server.Process.Signal(syscall.SIGTERM), server.Wait()); err != nil {
			t.Errorf("the enrolment server ended with %v", err)
		}
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			return "https://" + address
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func newRequest(t *testing.T, name string) (request []byte, key *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), key
}

// post sends a request as a unit does.
func (p pki) post(t *testing.T, server, code string, request []byte) (status int, answer []byte) {
	t.Helper()
	return p.postTo(t, server+"/v1/enrol", code, request)
}

// renew sends a request with a certificate or without one, as a unit does.
func (p pki) renew(t *testing.T, server string, request []byte, certificates ...tls.Certificate) (status int, answer []byte) {
	t.Helper()
	return p.postTo(t, server+"/v1/renew", "", request, certificates...)
}

func (p pki) postTo(t *testing.T, address, code string, request []byte, certificates ...tls.Certificate) (status int, answer []byte) {
	t.Helper()
	status, answer, err := p.tryPost(t, address, code, request, certificates...)
	if err != nil {
		t.Fatal(err)
	}
	return status, answer
}

func (p pki) tryPost(t *testing.T, address, code string, request []byte, certificates ...tls.Certificate) (status int, answer []byte, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, bytes.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	if code != "" {
		r.Header.Set("Authorization", "Bearer "+code)
	}
	config := p.trusted.Clone()
	if len(certificates) > 0 { // independent of the authorities that the server names
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificates[0], nil }
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// newCode creates a code with the operator's command.
func newCode(t *testing.T, unit string, flags ...string) string {
	t.Helper()
	printed, _, err := runTool(t, append([]string{"unit", "enrol", unit}, flags...)...)
	name, code, _ := strings.Cut(printed, " ")
	if err != nil || name != unit || len(code) != 26 {
		t.Fatalf("enrol prints %q, %v; want the unit and a code", printed, err)
	}
	return code
}

// enrol gets a certificate for a unit, with a key that only the unit has.
func (p pki) enrol(t *testing.T, server, unit string, flags ...string) tls.Certificate {
	t.Helper()
	request, key := newRequest(t, unit)
	status, answer := p.post(t, server, newCode(t, unit, flags...), request)
	if status != http.StatusOK {
		t.Fatalf("enrolment: status %d: %s", status, answer)
	}
	return certificateOf(answer, key)
}

// certificateOf returns the certificate of a response, with its key.
func certificateOf(answer []byte, key *ecdsa.PrivateKey) tls.Certificate {
	certificate := tls.Certificate{PrivateKey: key}
	for block, rest := pem.Decode(answer); block != nil; block, rest = pem.Decode(rest) {
		certificate.Certificate = append(certificate.Certificate, block.Bytes)
	}
	return certificate
}

// age moves the issue times of all certificates on record into the past.
func (p pki) age(t *testing.T, by time.Duration) {
	t.Helper()
	file := filepath.Join(p.dir, "authority", "certificates.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		issued, err := time.Parse(time.RFC3339, c["issued"].(string))
		if err != nil {
			t.Fatal(err)
		}
		c["issued"] = issued.Add(-by)
	}
	if text, err = json.Marshal(list); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
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

func (p pki) mustConnect(t *testing.T, broker *devstack.Mosquitto, unit string, certificate tls.Certificate) simulator.Connection {
	t.Helper()
	c, err := p.connect(t, broker, unit, certificate)
	if err != nil {
		t.Fatalf("unit %s: %v", unit, err)
	}
	return c
}

func TestUnit_CertificatesAreIssuedReplacedAndRevokedWithoutARestart(t *testing.T) {
	p := newPKI(t)
	cfg := p.brokerConfig(t)
	cfg.ServicePassword = "service"
	broker := operatedMosquitto(t, cfg)
	t.Setenv("MOTORPOOL_MQTT_URL", broker.ServiceURL())
	t.Setenv("MOTORPOOL_MQTT_PASSWORD", "service")
	server := p.serve(t)

	other := p.mustConnect(t, broker, "other", p.enrol(t, server, "other"))
	old := p.enrol(t, server, "unit-1")
	first := p.mustConnect(t, broker, "unit-1", old)
	if _, err := p.connect(t, broker, "unit-1"); err == nil {
		t.Error("a unit connected without a certificate")
	}

	current := p.enrol(t, server, "unit-1")
	second := p.mustConnect(t, broker, "unit-1", current)
	awaitLost(t, "connection replaced by the second certificate", first)
	if _, _, err := runTool(t, "unit", "remove", "--superseded", "unit-1"); err != nil {
		t.Fatal(err)
	}
	awaitLost(t, "connection during a revocation", second)
	if _, err := p.connect(t, broker, "unit-1", old); err == nil {
		t.Error("the replaced certificate is accepted")
	}
	third := p.mustConnect(t, broker, "unit-1", current)

	// The next revocation follows immediately: its list must have a later date.
	if printed, said, err := runTool(t, "unit", "remove", "unit-1"); err != nil || printed != "removed: unit-1" || said != "" {
		t.Fatalf("remove: %q %q %v", printed, said, err)
	}
	awaitLost(t, "connection of a removed unit", third)
	if _, err := p.connect(t, broker, "unit-1", current); err == nil {
		t.Error("a revoked certificate is accepted")
	}
	select {
	case <-other.Lost():
		t.Error("another unit was disconnected")
	default:
	}
	if _, _, err := runTool(t, "unit", "remove", "unit-1"); err != nil {
		t.Errorf("a repeated remove: %v", err)
	}
	if list, err := output(t, "unit", "list", "--output", "table"); err != nil || !lineHas(list, "other", "1") || lineHas(list, "unit-1", "false") {
		t.Errorf("list: %s %v", list, err)
	}
}

func TestUnit_SilentConnectionsKeepNoUnitFromEnrolling(t *testing.T) {
	p := newPKI(t)
	server := p.serve(t)
	code := newCode(t, "unit-1")
	for range 150 {
		silent, err := net.Dial("tcp", strings.TrimPrefix(server, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
	}
	request, _ := newRequest(t, "unit-1")
	began := time.Now()
	if status, answer := p.post(t, server, code, request); status != http.StatusOK || time.Since(began) > 8*time.Second {
		t.Errorf("status %d after %v, %s; want a certificate before silent connections time out", status, time.Since(began), answer)
	}
}

func TestUnit_ARequestIsWorthACertificateOnlyWithItsCode(t *testing.T) {
	p := newPKI(t)
	server := p.serve(t)
	code := newCode(t, "unit-1")
	request, _ := newRequest(t, "unit-1")
	foreign, _ := newRequest(t, "unit-2")
	unnamed, _ := newRequest(t, "")
	tampered, _ := pem.Decode(request)
	tampered.Bytes[len(tampered.Bytes)-1] ^= 1 // changes the signature
	for name, c := range map[string]struct {
		code    string
		request []byte
		status  int
	}{
		"no code":          {"", request, http.StatusUnauthorized},
		"a wrong code":     {strings.Repeat("A", 26), request, http.StatusUnauthorized},
		"another unit":     {code, foreign, http.StatusBadRequest},
		"not a request":    {code, []byte("hello"), http.StatusBadRequest},
		"a forged request": {code, pem.EncodeToMemory(tampered), http.StatusBadRequest},
		"too long":         {code, make([]byte, 20<<10), http.StatusRequestEntityTooLarge},
	} {
		if status, answer := p.post(t, server, c.code, c.request); status != c.status || bytes.Contains(answer, []byte("CERTIFICATE-")) {
			t.Errorf("%s: status %d: %s", name, status, answer)
		}
	}
	status, first := p.post(t, server, code, request)
	if status != http.StatusOK {
		t.Fatalf("with the code: status %d: %s", status, first)
	}
	if status, again := p.post(t, server, code, request); status != http.StatusOK || !bytes.Equal(first, again) {
		t.Errorf("the repeated request: status %d: %s", status, again)
	}
	if status, _ := p.post(t, server, code, unnamed); status != http.StatusUnauthorized {
		t.Errorf("the code with another key: status %d, want 401", status)
	}
	block, _ := pem.Decode(first)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if valid := time.Until(certificate.NotAfter); certificate.Subject.CommonName != "unit-1" || certificate.IsCA || len(certificate.ExtKeyUsage) != 1 ||
		certificate.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth || valid > 8760*time.Hour || valid < 8759*time.Hour {
		t.Errorf("wrong certificate %+v", certificate)
	}

	removed := newCode(t, "unit-3")
	t.Setenv("MOTORPOOL_UNITS_PASSWD", filepath.Join(p.dir, "none"))
	if _, _, err := runTool(t, "unit", "remove", "unit-3"); err != nil {
		t.Fatal(err)
	}
	if status, _ := p.post(t, server, removed, unnamed); status != http.StatusUnauthorized {
		t.Errorf("the code of a removed unit: status %d, want 401", status)
	}
}

func TestUnit_ACertificateIsRenewedWithTheOneBefore(t *testing.T) {
	p := newPKI(t)
	broker := operatedMosquitto(t, p.brokerConfig(t))
	server := p.serve(t)
	first := p.enrol(t, server, "unit-1")
	request, key := newRequest(t, "unit-1")
	if status, answer := p.renew(t, server, request, first); status != http.StatusConflict || !bytes.Contains(answer, []byte("from 20")) {
		t.Errorf("renewal of a new certificate: status %d: %s", status, answer)
	}
	p.age(t, 8761*time.Hour) // less than half of its lifetime remains
	status, answer := p.renew(t, server, request, first)
	if status != http.StatusOK {
		t.Fatalf("renewal: status %d: %s", status, answer)
	}
	second := certificateOf(answer, key)
	p.mustConnect(t, broker, "unit-1", second)
	p.mustConnect(t, broker, "unit-1", first) // the first certificate stays valid

	again, answer := p.renew(t, server, request, first)
	if same := certificateOf(answer, key); again != http.StatusOK || serialOf(t, same) != serialOf(t, second) {
		t.Errorf("the repeated renewal: status %d, serial %s, want %s", again, serialOf(t, same), serialOf(t, second))
	}
	other, _ := newRequest(t, "unit-1")
	if status, answer := p.renew(t, server, other, first); status != http.StatusUnauthorized {
		t.Errorf("renewal of the first with another key: status %d: %s", status, answer)
	}
	if status, answer := p.renew(t, server, other, second); status != http.StatusConflict {
		t.Errorf("renewal of the second, which is new: status %d: %s", status, answer)
	}

	if _, _, err := runTool(t, "unit", "remove", "--superseded", "unit-1"); err != nil {
		t.Fatal(err)
	}
	p.mustConnect(t, broker, "unit-1", second)
	if _, err := p.connect(t, broker, "unit-1", first); err == nil {
		t.Error("the replaced certificate is accepted")
	}
	if status, _ := p.renew(t, server, request, first); status != http.StatusUnauthorized {
		t.Errorf("renewal with a revoked certificate: status %d, want 401", status)
	}
	t.Setenv("MOTORPOOL_UNITS_PASSWD", filepath.Join(p.dir, "none"))
	p.age(t, 20000*time.Hour)
	if _, _, err := runTool(t, "unit", "remove", "unit-1"); err != nil {
		t.Fatal(err)
	}
	if status, _ := p.renew(t, server, other, second); status != http.StatusUnauthorized {
		t.Errorf("renewal of a removed unit: status %d, want 401", status)
	}
}

func TestUnit_OnlyItsOwnCertificateRenewsAUnits(t *testing.T) {
	p := newPKI(t)
	server := p.serve(t)
	own := p.enrol(t, server, "unit-1")
	p.age(t, 8761*time.Hour)
	request, key := newRequest(t, "unit-1")
	foreign, _ := newRequest(t, "unit-2")
	// The certificate has the name of the authority and another key.
	name := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "unit-1"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, name, name, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	forged := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	for what, c := range map[string]struct {
		with    []tls.Certificate
		request []byte
		status  int
	}{
		"no certificate":               {nil, request, http.StatusUnauthorized},
		"a forged certificate":         {[]tls.Certificate{forged}, request, http.StatusUnauthorized},
		"request for another unit":     {[]tls.Certificate{own}, foreign, http.StatusBadRequest},
		"not a request":                {[]tls.Certificate{own}, []byte("hello"), http.StatusBadRequest},
		"its own certificate and name": {[]tls.Certificate{own}, request, http.StatusOK},
	} {
		if status, answer := p.renew(t, server, c.request, c.with...); status != c.status {
			t.Errorf("%s: status %d: %s", what, status, answer)
		}
	}
	// A certificate is refused without its key.
	stolen := own
	stolen.PrivateKey = key
	if _, _, err := p.tryPost(t, server+"/v1/renew", "", request, stolen); err == nil {
		t.Error("a certificate without its key was accepted")
	}
}

func serialOf(t *testing.T, certificate tls.Certificate) string {
	t.Helper()
	if len(certificate.Certificate) == 0 {
		return "none"
	}
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf.SerialNumber.Text(16)
}
