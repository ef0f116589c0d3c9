package telematics

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Report is what a vehicle said about itself at one moment, whole or in part.
type Report struct {
	At time.Time // by the unit's clock, in milliseconds [TEL-2]
	// Values holds what was reported, in the types of ParseValue. A field that is
	// absent was not reported; nil means no longer known [TEL-1].
	Values map[Field]any
	// Answers repeats the final answers of the unit's latest commands [TEL-3].
	Answers []Answer
	Undated bool    // the unit did not say when: At is the time of arrival
	Alarms  []Alarm // that the unit raised
}

// Alarm is what a unit reports at the moment it happens, such as that the vehicle is towed away.
type Alarm struct {
	Kind string // in the words of the protocol
	Text string // for people; empty: none
}

// MaxAhead is how far a unit's clock may run before ours: a report from further
// ahead, or from before 2020, is taken with the receiver's time [TEL-5].
const MaxAhead = 5 * time.Minute

var earliest = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// IsPlausible reports whether a unit's time can be true.
func IsPlausible(at, received time.Time) bool {
	return !at.Before(earliest) && !at.After(received.Add(MaxAhead))
}

// VehicleTime returns the unit's time at, or the receiver's where at cannot be true.
func VehicleTime(at, received time.Time) time.Time {
	if !IsPlausible(at, received) {
		at = received
	}
	return at.UTC().Truncate(time.Millisecond)
}

// FormatTime returns an instant as it is written everywhere: RFC 3339, in UTC, with milliseconds.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// Nested returns the reported values as the nested objects that the wire and the interface share,
// ready for JSON: "location.latitude" is latitude within location.
func (r Report) Nested() map[string]any {
	root := map[string]any{}
	for field, value := range r.Values {
		if field.IsRaw() {
			continue
		}
		if at, ok := value.(time.Time); ok {
			value = FormatTime(at)
		}
		object := root
		name, rest, nested := strings.Cut(string(field), ".")
		for ; nested; name, rest, nested = strings.Cut(rest, ".") {
			inner, ok := object[name].(map[string]any)
			if !ok {
				inner = map[string]any{}
				object[name] = inner
			}
			object = inner
		}
		object[name] = value
	}
	return root
}

// Fault is the way in which a part of a message is unsound [TEL-4].
type Fault string

const (
	WrongType   Fault = "type"  // not of its field's JSON type
	OutOfRange  Fault = "range" // a number, a length or a time that cannot be
	UnknownWord Fault = "word"  // none of its field's words
	// The report's own time cannot be true; the receiver's was taken [TEL-5]
	WrongTime Fault = "time"
)

// Dropped is a part of a message that was not taken, and why [TEL-4].
type Dropped struct {
	Field  string
	Fault  Fault // empty: of another kind, such as half a position
	Reason string
	Said   time.Time // of WrongTime: the time that cannot be true; zero: none
}

// faultyError is the error of a value whose type is right.
type faultyError struct {
	fault Fault
	error
}

func outOfRange(format string, args ...any) error {
	return faultyError{OutOfRange, fmt.Errorf(format, args...)}
}

func unknownWord(format string, args ...any) error {
	return faultyError{UnknownWord, fmt.Errorf(format, args...)}
}

// FaultOf returns what is wrong with a value that ParseValue refused.
func FaultOf(err error) Fault {
	var faulty faultyError
	if errors.As(err, &faulty) {
		return faulty.fault
	}
	return WrongType
}
