package operators

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// Parameters of Argon2id, the smallest that OWASP recommends: a verification takes some 30 ms of
// one processor. Half lets who has stolen the table try twice as many passwords; double halves the
// sign-ins a second, and doubles their memory.
const (
	memoryKiB = 19 << 10
	passes    = 2
	lanes     = 1
	saltSize  = 16
	hashSize  = 32
)

const (
	// MinPassword is the least length of a password, in characters. There are no other rules: they
	// make passwords that are hard to remember and easy to guess (NIST SP 800-63B).
	MinPassword = 12
	// MaxPassword bounds it, in bytes.
	MaxPassword = 1024
)

// Why a password is refused, for the person who chose it.
const (
	TooShort = "The password is too short: use 12 characters or more."
	TooLong  = "The password is too long."
	HasName  = "The password must not contain your name."
)

// CheckPassword returns why an operator may not choose a password; empty: it may.
func CheckPassword(name, password string) (problem string) {
	switch {
	case len(password) > MaxPassword || !utf8.ValidString(password):
		return TooLong
	case utf8.RuneCountInString(password) < MinPassword:
		return TooShort
	case len(name) > 2 && strings.Contains(strings.ToLower(password), name):
		return HasName
	}
	return ""
}

// HashPassword returns what is stored of a password: Argon2id in the PHC string format.
func HashPassword(password string) string {
	salt := make([]byte, saltSize)
	rand.Read(salt)
	return encode(salt, derive(password, salt, memoryKiB, passes, lanes, hashSize))
}

// Unmatched is a hash that no password has. To verify it takes as long as to verify another, so
// that the time of an answer does not tell whether a name exists.
var Unmatched = encode(make([]byte, saltSize), make([]byte, hashSize))

// VerifyPassword reports whether a password has a hash of HashPassword. It uses 19 MiB of memory:
// bound the concurrent calls.
func VerifyPassword(hash, password string) bool {
	var version, memory, time, threads int
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || len(password) > MaxPassword {
		return false
	}
	if _, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &memory, &time, &threads); err != nil ||
		version != argon2.Version {
		return false
	}
	salt, errSalt := base64.RawStdEncoding.DecodeString(parts[4])
	want, errWant := base64.RawStdEncoding.DecodeString(parts[5])
	if errSalt != nil || errWant != nil || len(want) != hashSize || memory < 1 || time < 1 || threads < 1 || threads > 255 {
		return false
	}
	return subtle.ConstantTimeCompare(derive(password, salt, uint32(memory), uint32(time), uint8(threads), hashSize), want) == 1
}

func encode(salt, hash []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, memoryKiB, passes, lanes,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(hash))
}

// derive normalises the password: keyboards differ in how they write an ü.
func derive(password string, salt []byte, memory, time uint32, threads uint8, size uint32) []byte {
	return argon2.IDKey(norm.NFKC.Bytes([]byte(password)), salt, time, memory, threads, size)
}
