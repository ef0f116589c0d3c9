package mosquitto

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// The broker hashes on its only thread, on every connect. A unit's password is 128 random bits, which no dictionary
// holds, so more iterations would buy nothing and stretch a fleet's reconnection. It is also mosquitto_passwd's default.
const iterations = 101

const (
	saltBytes = 12 // all that Mosquitto 2.0 accepts
	hashBytes = sha512.Size
)

// PasswordLine is the line of a Mosquitto password file (PBKDF2-SHA512, "$7$") that lets user in with password. It has no line end.
func PasswordLine(user, password string) (string, error) {
	if user == "" || strings.ContainsAny(user, ":\r\n\x00") {
		return "", fmt.Errorf("user name %q: empty, or with a colon or line end in it", user)
	}
	if password == "" {
		return "", errors.New("password is empty")
	}
	salt := make([]byte, saltBytes)
	if _, err := rand.Read(salt); err != nil {
		return "", fmt.Errorf("draw salt: %w", err)
	}
	hash, err := pbkdf2.Key(sha512.New, password, salt, iterations, hashBytes)
	if err != nil {
		return "", fmt.Errorf("hash password: %w", err)
	}
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("%s:$7$%d$%s$%s", user, iterations, encode(salt), encode(hash)), nil
}
