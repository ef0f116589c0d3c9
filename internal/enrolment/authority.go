package enrolment

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"motorpool/internal/keyfile"
)

// The files of an authority's folder.
const (
	keyFile          = "ca.key"
	certificateFile  = "ca.crt"
	codesFile        = "codes.json"
	certificatesFile = "certificates.json"
)

const (
	serialBits = 127             // RFC 5280: at most 20 octets, and positive
	clockError = 5 * time.Minute // of a unit or of the MQTT broker, when a certificate is new
)

// Authority signs units' certificates. It is safe for concurrent use, also by several processes.
type Authority struct {
	dir, crl    string
	certificate *x509.Certificate
	key         crypto.Signer
	index       codeIndex
}

// Create creates the missing files of an authority: key and certificate, codes and certificates,
// revocation list. It keeps an existing key and certificate, so that those of another authority can
// be used.
func Create(ctx context.Context, dir, crl string, lifetime time.Duration) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	_, keyErr := os.Stat(filepath.Join(dir, keyFile))
	_, certificateErr := os.Stat(filepath.Join(dir, certificateFile))
	switch {
	case errors.Is(keyErr, fs.ErrNotExist) && errors.Is(certificateErr, fs.ErrNotExist):
		if err := createKey(dir, lifetime); err != nil {
			return nil, err
		}
	case keyErr != nil || certificateErr != nil:
		return nil, fmt.Errorf("want both %s and %s in %s, or none: %w", keyFile, certificateFile, dir, errors.Join(keyErr, certificateErr))
	}
	for _, name := range []string{codesFile, certificatesFile} {
		if err := createFile(filepath.Join(dir, name), []byte("[]\n"), 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	a, err := load(dir, crl)
	if err != nil {
		return nil, err
	}
	list, err := a.signCRL(nil, time.Now(), 1)
	if err != nil {
		return nil, err
	}
	if err := createFile(crl, list, 0o644); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	_, err = a.readCRL()
	return a, err
}

// Open returns the authority of a folder. It fails if its key, its certificate or the revocation
// list is missing or invalid, or if the certificate has expired. It does not read the other files.
func Open(dir, crl string) (*Authority, error) {
	a, err := load(dir, crl)
	if err == nil {
		_, err = a.readCRL()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w (make what is missing: motorpool unit authority)", err)
	}
	return a, err
}

func load(dir, crl string) (*Authority, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, certificateFile), filepath.Join(dir, keyFile))
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	key, signs := pair.PrivateKey.(crypto.Signer)
	const usage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	switch c := pair.Leaf; {
	case !signs || !c.IsCA || c.KeyUsage&usage != usage:
		return nil, fmt.Errorf("%s in %s: want the certificate of an authority that may sign certificates and revocation lists", certificateFile, dir)
	case !time.Now().Before(c.NotAfter):
		return nil, fmt.Errorf("%s in %s expired at %s", certificateFile, dir, c.NotAfter.Format(time.RFC3339))
	}
	return &Authority{dir: dir, crl: crl, certificate: pair.Leaf, key: key}, nil
}

func createKey(dir string, lifetime time.Duration) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	number, err := newSerial()
	if err != nil {
		return err
	}
	now := time.Now()
	certificate := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: "Motorpool units " + now.UTC().Format(time.DateTime)},
		NotBefore: now.Add(-clockError), NotAfter: now.Add(lifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate, certificate, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	// If two processes create an authority concurrently, the second one fails here.
	if err := createFile(filepath.Join(dir, keyFile), encode("PRIVATE KEY", private), 0o600); err != nil {
		return err
	}
	return createFile(filepath.Join(dir, certificateFile), encode("CERTIFICATE", der), 0o644)
}

// newSerial returns a random serial number for a certificate.
func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// createFile creates a file atomically. It returns fs.ErrExist if the file exists.
func createFile(path string, content []byte, mode fs.FileMode) error {
	path = filepath.Clean(path)
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
	if err == nil {
		err = os.Link(file.Name(), path)
	}
	return errors.Join(err, os.Remove(file.Name()))
}

func (a *Authority) readCRL() (*x509.RevocationList, error) {
	text, err := os.ReadFile(a.crl)
	if err != nil {
		return nil, fmt.Errorf("revocation list: %w", err)
	}
	return a.parseCRL(text)
}

func (a *Authority) parseCRL(text []byte) (*x509.RevocationList, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("revocation list %s: not PEM", a.crl)
	}
	list, err := x509.ParseRevocationList(block.Bytes)
	if err == nil {
		err = list.CheckSignatureFrom(a.certificate)
	}
	if err != nil {
		return nil, fmt.Errorf("revocation list %s: %w", a.crl, err)
	}
	return list, nil
}

// signCRL returns a revocation list. It is valid as long as the authority: an expired one would
// lock all units out. The MQTT broker reads it from a file, so no attacker on the network can
// withhold a newer one.
func (a *Authority) signCRL(revoked []Certificate, now time.Time, number int64) ([]byte, error) {
	list := &x509.RevocationList{Number: big.NewInt(number), ThisUpdate: now, NextUpdate: a.certificate.NotAfter}
	for _, c := range revoked {
		serial, ok := new(big.Int).SetString(c.Serial, 16)
		if !ok {
			return nil, fmt.Errorf("%s: %q is no serial", certificatesFile, c.Serial)
		}
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: serial, RevocationTime: *c.Revoked})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.certificate, a.key)
	return encode("X509 CRL", der), err
}

// publishCRL replaces the revocation list by that of the certificates. The caller holds the
// folder's lock. It waits for the next second: of two lists of the same second, OpenSSL, and so
// Mosquitto, which keeps the lists that it has read, may continue to use the older one.
func (a *Authority) publishCRL(ctx context.Context, certificates []Certificate) error {
	var revoked []Certificate
	for _, c := range certificates {
		if c.Revoked != nil {
			revoked = append(revoked, c)
		}
	}
	before, err := a.readCRL()
	if err != nil {
		return err
	}
	now := time.Now()
	if next := before.ThisUpdate.Add(time.Second); now.Before(next) {
		if next.Sub(now) > time.Minute {
			return fmt.Errorf("revocation list %s is from the future, %s: check the clock", a.crl, before.ThisUpdate.Format(time.RFC3339))
		}
		select {
		case <-time.After(next.Sub(now)):
		case <-ctx.Done():
			return ctx.Err()
		}
		now = next
	}
	list, err := a.signCRL(revoked, now, before.Number.Int64()+1)
	if err != nil {
		return err
	}
	return keyfile.EditContent(ctx, a.crl, func([]byte) ([]byte, error) { return list, nil }, func(written []byte) error {
		_, err := a.parseCRL(written)
		return err
	})
}
