// Package signing signs the commands of a fleet and verifies them: the fleet's keys, their
// rotation, and the signed message [CMD-1].
//
// Functions fail where a key or a set of keys is not valid, or cannot sign; their errors contain no
// private key.
package signing

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
)

// Key signs the commands of a fleet.
type Key struct {
	ID      string // kid
	Private ed25519.PrivateKey
}

// NewKey makes a key with a random id.
func NewKey() (Key, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return Key{}, fmt.Errorf("make signing key: %w", err)
	}
	// Letters and digits only: people type it, and a dash in front would look like a flag.
	return Key{ID: strings.ToLower(rand.Text()[:12]), Private: private}, nil
}

// String hides the private key.
func (k Key) String() string { return "signing key " + k.ID }

// Format hides the private key from every verb.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// MarshalText hides the private key from JSON and from structured logs:
// only Keychain.Encode writes it.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Keyring holds the public keys whose signatures a unit accepts, by id [CMD-1].
type Keyring map[string]ed25519.PublicKey

// Keyring returns a ring with the public key of k only.
func (k Key) Keyring() Keyring {
	return Keyring{k.ID: k.Private.Public().(ed25519.PublicKey)}
}

// ParseKeyring reads public keys from a JWKS.
func ParseKeyring(jwks []byte) (Keyring, error) {
	set, err := jwk.Parse(jwks)
	if err != nil {
		return nil, fmt.Errorf("parse keyring: %w", err)
	}
	ring := Keyring{}
	for i := range set.Len() {
		key, _ := set.Key(i)
		id, _ := key.KeyID()
		var public ed25519.PublicKey
		if err := jwk.Export(key, &public); err != nil || id == "" {
			return nil, fmt.Errorf("parse keyring: key %d (%q): want a public Ed25519 key with a kid", i, id)
		}
		if _, taken := ring[id]; taken {
			return nil, fmt.Errorf("parse keyring: two keys are called %q", id)
		}
		ring[id] = public
	}
	return ring, nil
}

// EncodeKeyring returns the JWKS that ParseKeyring reads.
func EncodeKeyring(ring Keyring) ([]byte, error) {
	set := jwk.NewSet()
	for _, id := range slices.Sorted(maps.Keys(ring)) {
		key, err := newJWK(id, ring[id])
		if err == nil {
			err = set.AddKey(key)
		}
		if err != nil {
			return nil, fmt.Errorf("encode key %q: %w", id, err)
		}
	}
	return json.MarshalIndent(set, "", "  ")
}

func newJWK(id string, raw any) (jwk.Key, error) {
	key, err := jwk.Import(raw)
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]any{jwk.KeyIDKey: id, jwk.AlgorithmKey: jwa.EdDSA(), jwk.KeyUsageKey: "sig"} {
		if err := key.Set(name, value); err != nil {
			return nil, err
		}
	}
	return key, nil
}
