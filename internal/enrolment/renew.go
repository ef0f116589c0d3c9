package enrolment

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"motorpool/telematics"
)

// Errors of Renew that the caller caused. Their texts are for the caller.
var (
	ErrCertificate = errors.New("the certificate is none of this authority, has expired, was revoked, or was renewed with another key: get a code")
	ErrEarly       = errors.New("the certificate cannot be renewed yet")
)

// Renew returns the certificate that follows a unit's current one, with the authority's after it,
// for a request (CSR, PEM). TLS must have verified that the unit has the key of the current one.
// The new certificate has the lifetime of the current one, which stays valid.
//
// A certificate is renewed once, for the first key that is requested, from half of its lifetime on:
// so a stolen one that its owner has renewed cannot be renewed, and no unit can make the list grow.
// The same key gets the same certificate again, signed anew, since the response may have been lost;
// issued has no serial then.
func (a *Authority) Renew(ctx context.Context, current *x509.Certificate, request []byte) (chain []byte, issued Certificate, err error) {
	// Before the lock: only units may hold up an operator.
	if err := a.verify(current); err != nil {
		return nil, issued, err
	}
	csr, err := parseRequest(request)
	if err != nil {
		return nil, issued, err
	}
	unit := telematics.Unit(current.Subject.CommonName)
	if name := csr.Subject.CommonName; name != "" && name != string(unit) {
		return nil, issued, fmt.Errorf("%w: it names %q, and the certificate is another unit's", ErrRequest, name)
	}
	err = a.locked(ctx, func(codes []code) ([]code, error) {
		return codes, a.editCertificates(ctx, func(list []Certificate) ([]Certificate, error) {
			var err error
			list, chain, issued, err = a.renewIn(list, unit, current.SerialNumber, csr)
			return list, err
		})
	})
	if err != nil {
		return nil, Certificate{}, err
	}
	return chain, issued, nil
}

// verify returns ErrCertificate unless this authority has signed the certificate for a unit, and it
// has not expired.
func (a *Authority) verify(c *x509.Certificate) error {
	own := x509.NewCertPool()
	own.AddCert(a.certificate)
	if _, err := c.Verify(x509.VerifyOptions{Roots: own, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return fmt.Errorf("%w (%w)", ErrCertificate, err)
	}
	return nil
}

// renewIn returns the list with a unit's next certificate added. If that was issued before, issued
// has no serial.
func (a *Authority) renewIn(
	list []Certificate, unit telematics.Unit, serial *big.Int, csr *x509.CertificateRequest,
) ([]Certificate, []byte, Certificate, error) {
	i := slices.IndexFunc(list, func(c Certificate) bool { return c.Unit == unit && c.Serial == serial.Text(16) })
	if i < 0 || list[i].Revoked != nil {
		return list, nil, Certificate{}, ErrCertificate
	}
	current := &list[i]
	key := hash(csr.RawSubjectPublicKeyInfo)
	if current.RenewedBy != "" {
		next := slices.IndexFunc(list, func(c Certificate) bool { return c.Serial == current.RenewedBy })
		if next < 0 || list[next].Key != key || list[next].Revoked != nil {
			return list, nil, Certificate{}, ErrCertificate
		}
		chain, err := a.sign(list[next], csr)
		return list, chain, Certificate{Unit: unit}, err
	}
	lifetime := current.Expires.Sub(current.Issued)
	if from := current.Issued.Add(lifetime / 2); time.Now().Before(from) {
		return list, nil, Certificate{}, fmt.Errorf("%w: from %s on", ErrEarly, from.Format(time.RFC3339))
	}
	chain, issued, err := a.create(unit, csr, lifetime)
	if err != nil {
		return list, nil, Certificate{}, err
	}
	issued.Key, issued.Enrolled, current.RenewedBy = key, current.Enrolled, issued.Serial
	return append(list, issued), chain, issued, nil
}
