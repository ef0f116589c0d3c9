package operators

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"
)

// LinkFor is how long a link sets a password. Half: a person who is off on the next day needs
// another; double: a link in a mailbox is good for longer.
const LinkFor = 24 * time.Hour

const codeSize = 32

// NewCode returns the code of a link, and its digest, which alone is stored.
func NewCode() (code string, digest []byte) {
	secret := make([]byte, codeSize)
	rand.Read(secret)
	sum := sha256.Sum256(secret)
	return base64.RawURLEncoding.EncodeToString(secret), sum[:]
}

// Digest returns the digest of a link's code; false: it is none.
func Digest(code string) ([]byte, bool) {
	secret, err := base64.RawURLEncoding.Strict().DecodeString(code)
	if err != nil || len(secret) != codeSize {
		return nil, false
	}
	sum := sha256.Sum256(secret)
	return sum[:], true
}
