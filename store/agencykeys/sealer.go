package agencykeys

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"motorpool/store/unavailable"
)

// Sealer encrypts secrets for the database: AES-256-GCM with keys of the installation. The first
// key seals and all of them open, so that keys can be rotated. A zero or nil Sealer has no key and
// returns errors. It is safe for concurrent use.
type Sealer struct {
	keys []cipher.AEAD
}

// Errors of a sealer count as those of an unavailable server: an operator can fix them, a caller
// cannot.
var (
	errNoSealer  = unavailable.Mark(errors.New("there is no key that secrets are sealed with: set --agency-secrets-key"))
	errNotOpened = unavailable.Mark(errors.New("no key of --agency-secrets-key opens it"))
)

// sealKeySize makes it AES-256.
const sealKeySize = 32

// NewSealer reads keys: 32 bytes each, in hexadecimal digits or base64, separated by commas. An
// empty text is a sealer without keys. Its errors do not show the text.
func NewSealer(keys string) (*Sealer, error) {
	s := &Sealer{}
	if strings.TrimSpace(keys) == "" {
		return s, nil
	}
	for i, text := range strings.Split(keys, ",") {
		key, ok := sealKey(strings.TrimSpace(text))
		if !ok {
			return nil, fmt.Errorf("key %d is not 32 bytes in hexadecimal digits or base64 (make one: openssl rand -hex 32)", i+1)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		// Each sealing takes a random nonce: secrets are some thousands in all, so no two will be
		// the same.
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		s.keys = append(s.keys, aead)
	}
	return s, nil
}

func (s *Sealer) has() bool { return s != nil && len(s.keys) > 0 }

func sealKey(text string) ([]byte, bool) {
	if key, err := hex.DecodeString(text); err == nil && len(key) == sealKeySize {
		return key, true
	}
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	key, err := base64.RawStdEncoding.DecodeString(text)
	return key, err == nil && len(key) == sealKeySize
}

// sealedGCM is the first byte of a secret that is sealed in this format.
const sealedGCM = 1

// seal returns a secret that can be opened only as the one that belongs to owner.
func (s *Sealer) seal(secret []byte, owner string) ([]byte, error) {
	if !s.has() {
		return nil, errNoSealer
	}
	return s.keys[0].Seal([]byte{sealedGCM}, nil, secret, []byte(owner)), nil
}

// open returns the secret, and whether the first key has sealed it.
func (s *Sealer) open(sealed []byte, owner string) (secret []byte, first bool, err error) {
	if !s.has() {
		return nil, false, errNoSealer
	}
	if len(sealed) == 0 || sealed[0] != sealedGCM {
		return nil, false, errNotOpened
	}
	for i, key := range s.keys {
		if secret, err := key.Open(nil, nil, sealed[1:], []byte(owner)); err == nil {
			return secret, i == 0, nil
		}
	}
	return nil, false, errNotOpened
}

// newSecret returns random bytes.
func newSecret(size int) []byte {
	secret := make([]byte, size)
	_, _ = rand.Read(secret) // never fails
	return secret
}
