package devstack

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority signs certificates for servers on 127.0.0.1 and for their clients, such as units.
type Authority struct {
	CAFile string // its own certificate, as PEM

	dir         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// KeyPair names the files of a certificate and of its private key.
type KeyPair struct{ CertFile, KeyFile string }

// ServerTLS is the certificate of a server, and the authorities of CAFile, which must have signed
// the certificates of its clients.
type ServerTLS struct {
	KeyPair
	CAFile string
}

// NewAuthority returns an authority with its files in a folder, which it creates if necessary.
func NewAuthority(dir string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create authority: %w", err)
	}
	template := validNow(filepath.Base(dir))
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("create authority: %w", err)
	}
	a := &Authority{CAFile: filepath.Join(dir, "ca.crt"), dir: dir, key: key}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return nil, fmt.Errorf("create authority: %w", err)
	}
	return a, writePEM(a.CAFile, "CERTIFICATE", der)
}

// Issue writes a certificate with this common name, for 127.0.0.1 and for one hour, and its key.
// Another one of the same name replaces them.
func (a *Authority) Issue(name string) (KeyPair, error) { return a.IssueFor(name, time.Hour) }

// IssueFor writes a certificate as Issue does, which lasts as given.
func (a *Authority) IssueFor(name string, lasts time.Duration) (KeyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return KeyPair{}, fmt.Errorf("issue certificate: %w", err)
	}
	template := validNow(name)
	template.NotAfter = time.Now().Add(lasts)
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("issue certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("issue certificate: %w", err)
	}
	pair := KeyPair{filepath.Join(a.dir, name+".crt"), filepath.Join(a.dir, name+".key")}
	return pair, errors.Join(writePEM(pair.CertFile, "CERTIFICATE", der), writePEM(pair.KeyFile, "PRIVATE KEY", keyDER))
}

// Login writes a certificate as Issue does, which lasts as given, and returns it for a client.
func (a *Authority) Login(name string, lasts time.Duration) (tls.Certificate, error) {
	pair, err := a.IssueFor(name, lasts)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
}

// WriteRevocations writes the list of revoked certificates, valid for one hour, into a file.
func (a *Authority) WriteRevocations(file string, revoked ...tls.Certificate) error {
	list := &x509.RevocationList{
		Number: big.NewInt(time.Now().UnixNano()), ThisUpdate: time.Now().Add(-time.Minute),
		NextUpdate: time.Now().Add(time.Hour),
	}
	for _, c := range revoked {
		list.RevokedCertificateEntries = append(
			list.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: c.Leaf.SerialNumber, RevocationTime: time.Now()},
		)
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.certificate, a.key)
	if err != nil {
		return fmt.Errorf("write revocation list: %w", err)
	}
	return writePEM(file, "X509 CRL", der)
}

// Trusted returns the TLS settings of a client that trusts this authority only.
func (a *Authority) Trusted() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
}

func validNow(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetInt64(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(time.Hour),
	}
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
