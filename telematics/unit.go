package telematics

import (
	"fmt"
	"regexp"
)

// Unit is the serial of a telematics unit, an IMEI for example. It is the unit's
// MQTT user name and client id, and its name in every topic.
type Unit string

var unitPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// ParseUnit returns the serial in s, or an error that says what a serial looks like.
func ParseUnit(s string) (Unit, error) {
	if !unitPattern.MatchString(s) {
		return "", fmt.Errorf("unit serial %q: want 1 to 64 letters, digits, - or _", s)
	}
	return Unit(s), nil
}
