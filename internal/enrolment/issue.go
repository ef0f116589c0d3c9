package enrolment

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"motorpool/telematics"
)

const minRSABits = 2048

// Issue returns the certificate for a code and a request (CSR, PEM), with the authority's after it.
// It names the unit of the code, and so must the request, if it has a name; all else of the request
// but its key is ignored. issued has no serial if the same key had got the certificate before.
func (a *Authority) Issue(ctx context.Context, text string, request []byte) (chain []byte, issued Certificate, err error) {
	// Before the lock: a guess must not hold up an operator.
	if err := a.checkCode(text); err != nil {
		return nil, issued, err
	}
	csr, err := parseRequest(request)
	if err != nil {
		return nil, issued, err
	}
	key := hash(csr.RawSubjectPublicKeyInfo)
	err = a.locked(ctx, func(codes []code) ([]code, error) {
		i := slices.IndexFunc(codes, func(c code) bool { return c.Hash == hash([]byte(text)) })
		if i < 0 || codes[i].Key != "" && codes[i].Key != key {
			return nil, ErrCode
		}
		c := &codes[i]
		if name := csr.Subject.CommonName; name != "" && name != string(c.Unit) {
			return nil, fmt.Errorf("%w: it names %q, and the code is another unit's", ErrRequest, name)
		}
		if c.Key == key {
			chain, issued.Unit = []byte(c.Chain), c.Unit
			return codes, nil
		}
		if chain, issued, err = a.create(c.Unit, csr, c.Lifetime); err != nil {
			return nil, err
		}
		issued.Enrolled = issued.Issued
		c.Key, c.Chain = key, string(chain)
		return codes, a.editCertificates(ctx, func(list []Certificate) ([]Certificate, error) { return append(list, issued), nil })
	})
	if err != nil {
		return nil, Certificate{}, err
	}
	return chain, issued, nil
}

// codeIndex caches the codes of the file, so that a guess does not read the file.
type codeIndex struct {
	mu   sync.Mutex // guards what follows
	file os.FileInfo
	ends map[string]time.Time // when codes expire, by their hashes
}

// checkCode returns ErrCode for a code that does not exist or has expired.
func (a *Authority) checkCode(text string) error {
	a.index.mu.Lock()
	defer a.index.mu.Unlock()
	is, err := os.Stat(filepath.Join(a.dir, codesFile))
	if err != nil {
		return err
	}
	if was := a.index.file; was == nil || !os.SameFile(was, is) || !was.ModTime().Equal(is.ModTime()) || was.Size() != is.Size() {
		codes, err := a.codes()
		if err != nil {
			return err
		}
		a.index.file, a.index.ends = is, make(map[string]time.Time, len(codes))
		for _, c := range codes {
			a.index.ends[c.Hash] = c.Expires
		}
	}
	if ends, ok := a.index.ends[hash([]byte(text))]; !ok || !time.Now().Before(ends) {
		return ErrCode
	}
	return nil
}

// parseRequest parses a request, and verifies that its sender has the private key.
func parseRequest(text []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" && block.Type != "NEW CERTIFICATE REQUEST" {
		return nil, fmt.Errorf("%w: want PEM, CERTIFICATE REQUEST", ErrRequest)
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = csr.CheckSignature()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	switch key := csr.PublicKey.(type) {
	case *ecdsa.PublicKey, ed25519.PublicKey:
	case *rsa.PublicKey:
		if key.N.BitLen() < minRSABits {
			return nil, fmt.Errorf("%w: an RSA key of %d bits, want %d or more", ErrRequest, key.N.BitLen(), minRSABits)
		}
	default:
		return nil, fmt.Errorf("%w: want an ECDSA, Ed25519 or RSA key", ErrRequest)
	}
	return csr, nil
}

func (a *Authority) create(unit telematics.Unit, csr *x509.CertificateRequest, lifetime time.Duration) ([]byte, Certificate, error) {
	number, err := newSerial()
	if err != nil {
		return nil, Certificate{}, err
	}
	now := time.Now().UTC().Truncate(time.Second)
	c := Certificate{Unit: unit, Serial: number.Text(16), Issued: now, Expires: now.Add(lifetime)}
	if c.Expires.After(a.certificate.NotAfter) {
		c.Expires = a.certificate.NotAfter
	}
	chain, err := a.sign(c, csr)
	return chain, c, err
}

// sign returns a certificate for the key of a request, with the authority's after it.
func (a *Authority) sign(c Certificate, csr *x509.CertificateRequest) ([]byte, error) {
	number, ok := new(big.Int).SetString(c.Serial, 16)
	if !ok {
		return nil, fmt.Errorf("%s: %q is no serial", certificatesFile, c.Serial)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: string(c.Unit)},
		NotBefore: c.Issued.Add(-clockError), NotAfter: c.Expires,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}, a.certificate, csr.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return append(encode("CERTIFICATE", der), encode("CERTIFICATE", a.certificate.Raw)...), nil
}
