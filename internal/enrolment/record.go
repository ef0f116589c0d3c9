package enrolment

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"motorpool/internal/keyfile"
	"motorpool/telematics"
)

// Certificate is the stored entry of an issued certificate.
type Certificate struct {
	Unit      telematics.Unit `json:"unit"`
	Serial    string          `json:"serial"` // hexadecimal
	Issued    time.Time       `json:"issued"`
	Expires   time.Time       `json:"expires"`
	Revoked   *time.Time      `json:"revoked,omitempty"`
	Key       string          `json:"key_sha256,omitempty"` // of its public key, if Renew issued it
	RenewedBy string          `json:"renewed_by,omitempty"` // serial of the next certificate
	// When a code was used for it, or for the first of those that it renews; zero: not known.
	Enrolled time.Time `json:"enrolled"`
}

// code is the stored entry of a one-time code, with which a unit gets one certificate.
type code struct {
	Unit     telematics.Unit `json:"unit"`
	Hash     string          `json:"sha256"` // of the code
	Expires  time.Time       `json:"expires"`
	Lifetime time.Duration   `json:"lifetime_ns"`           // of the certificate
	Key      string          `json:"key_sha256,omitempty"`  // of the public key that has used it
	Chain    string          `json:"certificate,omitempty"` // that was issued, with the authority's
}

// CodeConfig configures a one-time code.
type CodeConfig struct {
	Lifetime            time.Duration // in which it can be used
	CertificateLifetime time.Duration
}

// NewCode returns a code with which a unit gets one certificate.
func (a *Authority) NewCode(ctx context.Context, unit telematics.Unit, c CodeConfig) (string, error) {
	text := rand.Text()
	return text, a.locked(ctx, func(codes []code) ([]code, error) {
		return append(codes, code{Unit: unit, Hash: hash([]byte(text)), Expires: time.Now().Add(c.Lifetime).UTC().Truncate(time.Second), Lifetime: c.CertificateLifetime}), nil
	})
}

// RevokeScope is which certificates and codes of a unit are revoked.
type RevokeScope int

// Scopes of a revocation.
const (
	Everything RevokeScope = iota // its certificates, and codes that were not used
	Superseded                    // its certificates but the newest of the latest enrolment
)

// current returns for each unit the index of its newest certificate of the latest enrolment. That
// is not always the newest one: a stolen certificate can be renewed after the unit has enrolled
// again.
func current(certificates []Certificate) map[telematics.Unit]int {
	newest := map[telematics.Unit]int{}
	enrolled := map[string]time.Time{} // by serial
	for i, c := range certificates {   // the oldest first
		switch {
		case !c.Enrolled.IsZero():
			enrolled[c.Serial] = c.Enrolled
		case c.Key == "": // stored by a version that did not record it, as is what follows
			enrolled[c.Serial] = c.Issued
		}
		if c.RenewedBy != "" {
			enrolled[c.RenewedBy] = enrolled[c.Serial]
		}
		if before, ok := newest[c.Unit]; !ok || !enrolled[c.Serial].Before(enrolled[certificates[before].Serial]) {
			newest[c.Unit] = i
		}
	}
	return newest
}

// Revoke revokes certificates of units and writes the revocation list; make the MQTT broker read it
// afterwards. It returns how many certificates and codes of each unit it has revoked, without those
// that were revoked before. It may be repeated.
func (a *Authority) Revoke(ctx context.Context, scope RevokeScope, units ...telematics.Unit) (map[telematics.Unit]int, error) {
	revoked := map[telematics.Unit]int{}
	now := time.Now().UTC().Truncate(time.Second)
	return revoked, a.locked(ctx, func(codes []code) ([]code, error) {
		if scope == Everything {
			codes = slices.DeleteFunc(codes, func(c code) bool {
				ends := slices.Contains(units, c.Unit)
				if ends && c.Key == "" {
					revoked[c.Unit]++
				}
				return ends
			})
		}
		var all []Certificate
		err := a.editCertificates(ctx, func(certificates []Certificate) ([]Certificate, error) {
			newest := current(certificates)
			for i := range certificates {
				c := &certificates[i]
				if slices.Contains(units, c.Unit) && c.Revoked == nil && (scope == Everything || newest[c.Unit] != i) {
					c.Revoked = &now
					revoked[c.Unit]++
				}
			}
			all = certificates
			return certificates, nil
		})
		if err != nil {
			return nil, err
		}
		return codes, a.publishCRL(ctx, all)
	})
}

// Restore makes revoked certificates valid again, by their serials, and writes the revocation list;
// make the MQTT broker read it afterwards.
func (a *Authority) Restore(ctx context.Context, serials ...string) error {
	return a.locked(ctx, func(codes []code) ([]code, error) {
		var all []Certificate
		err := a.editCertificates(ctx, func(certificates []Certificate) ([]Certificate, error) {
			for i := range certificates {
				if slices.Contains(serials, certificates[i].Serial) {
					certificates[i].Revoked = nil
				}
			}
			all = certificates
			return certificates, nil
		})
		if err != nil {
			return nil, err
		}
		return codes, a.publishCRL(ctx, all)
	})
}

// Certificates returns the stored certificates, the oldest first, revoked ones included. Changes of
// the folder remove those that have expired.
func (a *Authority) Certificates() ([]Certificate, error) {
	text, err := os.ReadFile(filepath.Join(a.dir, certificatesFile))
	if err != nil {
		return nil, err
	}
	return parse[Certificate](certificatesFile, text)
}

// Pending returns the units of codes that were not used and have not expired.
func (a *Authority) Pending() ([]telematics.Unit, error) {
	codes, err := a.codes()
	if err != nil {
		return nil, err
	}
	var units []telematics.Unit
	now := time.Now()
	for _, c := range codes {
		if c.Key == "" && now.Before(c.Expires) {
			units = append(units, c.Unit)
		}
	}
	return units, nil
}

func (a *Authority) codes() ([]code, error) {
	text, err := os.ReadFile(filepath.Join(a.dir, codesFile))
	if err != nil {
		return nil, err
	}
	return parse[code](codesFile, text)
}

// locked changes the codes under the lock of the folder, and removes expired ones.
func (a *Authority) locked(ctx context.Context, change func([]code) ([]code, error)) error {
	return edit(ctx, filepath.Join(a.dir, codesFile), func(codes []code) ([]code, error) {
		now := time.Now()
		return change(slices.DeleteFunc(codes, func(c code) bool { return now.After(c.Expires) }))
	})
}

// editCertificates changes the list of certificates. The caller holds the folder's lock. Expired
// ones are removed: no broker accepts them, and the revocation list need not name them.
func (a *Authority) editCertificates(ctx context.Context, change func([]Certificate) ([]Certificate, error)) error {
	return edit(ctx, filepath.Join(a.dir, certificatesFile), func(certificates []Certificate) ([]Certificate, error) {
		now := time.Now()
		return change(slices.DeleteFunc(certificates, func(c Certificate) bool { return now.After(c.Expires.Add(clockError)) }))
	})
}

func edit[T any](ctx context.Context, file string, change func([]T) ([]T, error)) error {
	return keyfile.EditContent(ctx, file, func(text []byte) ([]byte, error) {
		list, err := parse[T](file, text)
		if err != nil {
			return nil, err
		}
		if list, err = change(list); err != nil {
			return nil, err
		}
		if list == nil {
			list = []T{}
		}
		text, err = json.MarshalIndent(list, "", " ")
		return append(text, '\n'), err
	}, func(written []byte) error {
		_, err := parse[T](file, written)
		return err
	})
}

func parse[T any](file string, text []byte) ([]T, error) {
	var list []T
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list, nil
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Errors of Issue that the caller caused. Their texts are for the caller.
var (
	ErrCode    = errors.New("the code is unknown, has expired, was used with another key, or was revoked")
	ErrRequest = errors.New("certificate request")
)
