package mosquitto

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
)

// unitPasswordLength keeps 144 of the 256 bits: too many to guess.
const unitPasswordLength = 24

// UnitPassword derives the password of a unit from a secret of the installation: a holder of the secret knows the
// passwords of every unit, and none needs to be stored. It suits simulated fleets; a real unit gets a random one.
func UnitPassword(secret, serial string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(serial))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))[:unitPasswordLength]
}
