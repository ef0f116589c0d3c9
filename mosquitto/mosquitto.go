// Package mosquitto holds the configuration of the production MQTT broker as text. The tests attack
// a Mosquitto with this configuration, and the embedded broker of a development world enforces the
// same access files.
//
// The broker has two listeners, [TOP-4]. Units connect to one, each with a password and a client id
// that is forced to its serial; the service connects to the other, which units cannot reach.
// Passwords and access rules are per listener.
package mosquitto

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// Conf is mosquitto.conf: ports 8883 (units, over TLS) and 1884 (service), files under
// /mosquitto/config and /mosquitto/data.
//
//go:embed mosquitto.conf
var Conf string

// CertificatesConf is certificates.conf, which is appended to Conf where units log in with
// certificates: port 8884.
//
//go:embed certificates.conf
var CertificatesConf string

// UnitsACL is the access file of the units' listener, [TOP-1].
//
//go:embed units.acl
var UnitsACL string

// ServiceACL is the access file of the service's listener. It has one user, ServiceUser.
//
//go:embed service.acl
var ServiceACL string

// ServiceUser is the account in ServiceACL.
const ServiceUser = "motorpool"

// iterations is low, since the broker hashes on its only thread, on every connect. A unit's
// password has 144 random bits or more, which no dictionary contains, so more iterations would gain
// nothing and slow down a fleet's reconnection. It is also mosquitto_passwd's default.
const iterations = 101

const (
	saltBytes = 12 // all that Mosquitto 2.0 accepts
	hashBytes = sha512.Size
)

// PasswordLine returns the line of a Mosquitto password file (PBKDF2-SHA512, "$7$") for a user with
// this password, without a line end. It fails for a user name that a line cannot contain.
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

// unitPasswordLength keeps 144 of the 256 bits: too many to guess.
const unitPasswordLength = 24

// UnitPassword derives the password of a unit from a secret of the installation: a holder of the
// secret knows the passwords of every unit, and none needs to be stored. It suits simulated fleets;
// a real unit gets a random one.
func UnitPassword(secret, serial string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(serial))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))[:unitPasswordLength]
}
