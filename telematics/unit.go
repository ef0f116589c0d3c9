package telematics

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"
)

// Unit is the serial of a telematics unit, an IMEI for example. It is the unit's
// MQTT user name and client id, and its name in every topic.
type Unit string

var unitPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// ParseUnit returns s as a serial, or an error that states the valid form.
func ParseUnit(s string) (Unit, error) {
	if !unitPattern.MatchString(s) {
		return "", fmt.Errorf("unit serial %q: want 1 to 64 letters, digits, - or _", s)
	}
	return Unit(s), nil
}

// probes begins the names of the topics on which instances of the service look for each other.
const probes = "probe-"

// ParseSerial is ParseUnit for a unit that is to get a login: its own presence must not be taken
// for a message of the service. It fails as ParseUnit does.
func ParseSerial(s string) (Unit, error) {
	if strings.HasPrefix(s, probes) {
		return "", fmt.Errorf("unit serial %q: names that begin with %s are the service's", s, probes)
	}
	return ParseUnit(s)
}

// UnknownUnit is a unit that sends messages and is assigned to no vehicle: its row is
// missing, or it should have been switched off.
type UnknownUnit struct {
	No        int64 // grows with the time of the first message
	Unit      Unit
	FirstSeen time.Time // by our clock
	LastSeen  time.Time // by our clock
	Messages  int64     // approximate: each instance counts a presence
}

// Reject is why a message of a unit, or a value in one, was rejected.
type Reject string

const (
	// Whole messages.
	Malformed       Reject = "malformed"         // it cannot be read
	TooLarge        Reject = "too_large"         // over MaxMessage
	KeptByBroker    Reject = "retained"          // only presence may be retained
	OverAllowance   Reject = "over_allowance"    // the unit sends too many messages
	ForeignProtocol Reject = "protocol_mismatch" // not the protocol recorded for the unit
	// Single values; the rest of the message was accepted [TEL-4].
	BadTime  Reject = "wrong_time" // missing or not plausible: replaced by our time [TEL-5]
	BadType  Reject = "wrong_type"
	BadRange Reject = "out_of_range"
	BadWord  Reject = "unknown_word"
	BadOther Reject = "other" // such as half a position
)

// Rejects lists every reason.
var Rejects = []Reject{Malformed, TooLarge, KeptByBroker, OverAllowance, ForeignProtocol, BadTime, BadType, BadRange, BadWord, BadOther}

// Reject returns the reason of a fault.
func (f Fault) Reject() Reject {
	switch f {
	case WrongTime:
		return BadTime
	case WrongType:
		return BadType
	case OutOfRange:
		return BadRange
	case UnknownWord:
		return BadWord
	}
	return BadOther
}

// Tally is how often something happened, and when last.
type Tally struct {
	Count int
	Last  time.Time // by our clock
}

// Add returns the sum of both tallies, with the later time.
func (t Tally) Add(other Tally) Tally {
	t.Count += other.Count
	if other.Last.After(t.Last) {
		t.Last = other.Last
	}
	return t
}

// ClockReading is how far a unit's clock is ahead of ours; negative: behind. It includes the
// transit time of the report, by which every clock seems to be behind.
type ClockReading struct {
	Ahead time.Duration
	At    time.Time // by our clock
}

// UnitHealth is what the service has measured of a unit, in addition to its reports.
type UnitHealth struct {
	Unit       Unit
	Clock      *ClockReading // nil: nothing new
	Reconnects Tally
	Rejects    map[Reject]Tally
}

// Merge returns the health with later measurements added. Neither argument is changed.
func (h UnitHealth) Merge(later UnitHealth) UnitHealth {
	if later.Clock != nil && (h.Clock == nil || later.Clock.At.After(h.Clock.At)) {
		h.Clock = later.Clock
	}
	rejects := maps.Clone(h.Rejects)
	if rejects == nil {
		rejects = make(map[Reject]Tally, len(later.Rejects))
	}
	for why, tally := range later.Rejects {
		rejects[why] = rejects[why].Add(tally)
	}
	h.Unit, h.Reconnects, h.Rejects = later.Unit, h.Reconnects.Add(later.Reconnects), rejects
	return h
}

// UnitHealthFor is how long reconnects and rejects are counted.
const UnitHealthFor = 24 * time.Hour

// UnitProblem is why a unit needs attention.
type UnitProblem string

const (
	NeverSeen       UnitProblem = "never_seen" // no message since it was assigned to its vehicle
	Silent          UnitProblem = "silent"     // offline, or silent, for longer than SilentFor
	MissingKey      UnitProblem = "key"        // it lacks the key that signs
	RejectsCommands UnitProblem = "commands"   // for reasons other than the vehicle's state
	WrongClock      UnitProblem = "clock"
	RejectedReports UnitProblem = "rejects"
	Unstable        UnitProblem = "reconnects" // more than MaxReconnects within UnitHealthFor
	NoSignal        UnitProblem = "signal"     // SignalQuality none

	AnyProblem UnitProblem = "any" // only in a query
)

// UnitProblems lists every problem, the most severe first.
var UnitProblems = []UnitProblem{NeverSeen, Silent, MissingKey, RejectsCommands, WrongClock, RejectedReports, Unstable, NoSignal}

// Limits beyond which a unit has a problem.
const (
	SilentFor      = time.Hour       // most stays in car parks without reception are shorter
	MaxReconnects  = 24              // one an hour
	MaxClockAhead  = 5 * time.Second // the tolerance of units for commands [CMD-9]
	MaxClockBehind = time.Minute     // less may be due to a slow network
)

// ListedUnit is a unit that is assigned to a vehicle, with its health and problems.
type ListedUnit struct {
	Vehicle  Vehicle // only id, agency, plate, unit and protocol
	Contact  Contact
	Snapshot Snapshot      // only the section connectivity
	Clock    *ClockReading // nil: not measured
	// Within UnitHealthFor.
	Reconnects int
	Rejects    []RejectTally
	// Commands that the unit rejected, by its reasons.
	Commands []RejectTally
	Problems []UnitProblem // in the order of UnitProblems
}

// RejectTally counts the rejects for one reason.
type RejectTally struct {
	Reason string
	Tally
}

// UnitQuery selects units of vehicles, ordered by the id of the vehicle, the highest first. Zero
// fields select everything.
type UnitQuery struct {
	Agency       AgencyID
	Connectivity PresenceStatus
	Problem      UnitProblem
	Text         string // part of serial, plate or firmware version; case-insensitive
	SigningKey   string // id of the key that signs commands; empty: MissingKey is not checked
	Page
}

// KeyHolders counts the units of vehicles by whether they hold one of the fleet's public keys.
type KeyHolders struct {
	Holding    int
	Missing    int // sent the list of their keys, without this one
	Unreported int // never sent the list of their keys [PRE-4]
	// The first units that miss it, by serial; at most MaxMissingUnits.
	MissingUnits []Unit
}

// MaxMissingUnits is the maximum length of KeyHolders.MissingUnits.
const MaxMissingUnits = 20

// Limits of the list of unknown units.
const (
	// Beyond it, the units that have been silent for longest are deleted.
	MaxUnknownUnits     = 10_000
	UnknownUnitsKeptFor = 30 * 24 * time.Hour // after the last message
)

// Merge returns the unit with later messages added. The order of merges does not matter.
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
