package enrolment

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

func newAuthority(t *testing.T) *Authority {
	t.Helper()
	dir := t.TempDir()
	a, err := Create(t.Context(), filepath.Join(dir, "authority"), filepath.Join(dir, "units.crl"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newCSR(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// issue stores a certificate that was issued some time ago.
func issue(t *testing.T, a *Authority, ago, lifetime time.Duration) *x509.Certificate {
	t.Helper()
	csr, err := parseRequest(newCSR(t))
	if err != nil {
		t.Fatal(err)
	}
	_, c, err := a.create("unit-1", csr, lifetime)
	if err != nil {
		t.Fatal(err)
	}
	c.Issued, c.Expires = c.Issued.Add(-ago), c.Expires.Add(-ago)
	c.Enrolled = c.Issued
	chain, err := a.sign(c, csr)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.editCertificates(t.Context(), func(list []Certificate) ([]Certificate, error) { return append(list, c), nil }); err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(chain)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestRenew_FromHalfOfTheLifetimeUntilItsEnd(t *testing.T) {
	a := newAuthority(t)
	for name, c := range map[string]struct {
		ago  time.Duration
		want error
	}{
		"before half of it": {29 * time.Minute, ErrEarly},
		"after half of it":  {31 * time.Minute, nil},
		"near its end":      {59 * time.Minute, nil},
		"expired":           {61 * time.Minute, ErrCertificate},
	} {
		chain, issued, err := a.Renew(t.Context(), issue(t, a, c.ago, time.Hour), newCSR(t))
		if !errors.Is(err, c.want) || (err == nil) != (len(chain) > 0) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
		if err == nil && (issued.Unit != "unit-1" || issued.Expires.Sub(issued.Issued) > time.Hour || time.Until(issued.Expires) < 50*time.Minute) {
			t.Errorf("%s: issued %+v", name, issued)
		}
	}
}

// A thief renews a stolen certificate after its unit has enrolled again: what is superseded is the
// thief's, although it is the newest.
func TestRevoke_SupersededIsWhatTheLatestEnrolmentReplaced(t *testing.T) {
	for name, recorded := range map[string]bool{"enrolments on record": true, "stored by the version before": false} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			stolen := issue(t, a, 40*time.Minute, time.Hour)
			code, err := a.NewCode(t.Context(), "unit-1", CodeConfig{Lifetime: time.Hour, CertificateLifetime: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			_, own, err := a.Issue(t.Context(), code, newCSR(t))
			if err != nil {
				t.Fatal(err)
			}
			_, renewed, err := a.Renew(t.Context(), stolen, newCSR(t))
			if err != nil {
				t.Fatal(err)
			}
			if !recorded {
				err := a.editCertificates(t.Context(), func(list []Certificate) ([]Certificate, error) {
					for i := range list {
						list[i].Enrolled = time.Time{}
					}
					return list, nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if n, err := a.Revoke(t.Context(), Superseded, "unit-1"); err != nil || n["unit-1"] != 2 {
				t.Fatalf("Revoke = %v, %v; want 2", n, err)
			}
			certificates, err := a.Certificates()
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range certificates {
				if want := c.Serial != own.Serial; want != (c.Revoked != nil) {
					t.Errorf("%s (renewed: %t) is revoked: %t, want %t", c.Serial, c.Serial == renewed.Serial, !want, want)
				}
			}
		})
	}
}

func TestRenew_OfAnotherAuthorityIsRefused(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	if _, _, err := a.Renew(t.Context(), issue(t, other, 40*time.Minute, time.Hour), newCSR(t)); !errors.Is(err, ErrCertificate) {
		t.Errorf("another authority: %v, want ErrCertificate", err)
	}
	// The certificate has a valid signature, but is not on record.
	unknown := issue(t, a, 40*time.Minute, time.Hour)
	if err := a.editCertificates(t.Context(), func([]Certificate) ([]Certificate, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Renew(t.Context(), unknown, newCSR(t)); !errors.Is(err, ErrCertificate) {
		t.Errorf("not on record: %v, want ErrCertificate", err)
	}
}
