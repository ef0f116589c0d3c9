package telematics

import (
	"fmt"
	"regexp"
	"time"
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

// UnknownUnit is a unit that sends messages and has no vehicle: it was installed
// without a record, or should have been switched off.
type UnknownUnit struct {
	No        int64 // grows with the first message
	Unit      Unit
	FirstSeen time.Time // by our clock
	LastSeen  time.Time // by our clock
	Messages  int64     // about: each instance counts a presence
}

// KeyHolders counts the units of vehicles by whether they hold one of the fleet's public keys.
type KeyHolders struct {
	Holding    int
	Missing    int // said which keys they hold, and not this one
	Unreported int // never said which keys they hold [PRE-4]
	// The first of those that miss it, by serial; at most MaxMissingUnits.
	MissingUnits []Unit
}

// MaxMissingUnits is how many units that miss a key are named.
const MaxMissingUnits = 20

// Limits of the list of unknown units.
const (
	// Beyond it the units that were silent for longest are removed.
	MaxUnknownUnits     = 10_000
	UnknownUnitsKeptFor = 30 * 24 * time.Hour // after the last message
)

// Merge returns the unit with later messages counted. The order in which instances
// report them does not matter.
func (s UnknownUnit) Merge(later UnknownUnit) UnknownUnit {
	if s.FirstSeen.IsZero() || later.FirstSeen.Before(s.FirstSeen) {
		s.FirstSeen = later.FirstSeen
	}
	if later.LastSeen.After(s.LastSeen) {
		s.LastSeen = later.LastSeen
	}
	s.Unit, s.Messages = later.Unit, s.Messages+later.Messages
	return s
}
