package telematics

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
)

// Report is a vehicle's state at one moment, whole or partial, as its unit sent it.
type Report struct {
	At time.Time // by the unit's clock, in milliseconds [TEL-2]
	// Values holds the reported values, in the types of ParseValue. A field that is
	// absent was not reported; nil means no longer known [TEL-1].
	Values map[Field]any
	// Answers repeats the final answers of the unit's latest commands [TEL-3].
	Answers []Answer
	Undated bool    // the message has no time: At is the time of arrival
	Alarms  []Alarm // raised by the unit
	// Arrived is when the report arrived, in milliseconds. Bound sets it; without it the report is
	// merged by At alone.
	Arrived time.Time
}

// Readings returns the reported values with their times, and for Forbids the speed once more by its
// arrival.
func (r *Report) Readings() iter.Seq2[Field, Reading] {
	return func(yield func(Field, Reading) bool) {
		for field, value := range r.Values {
			if !yield(field, Reading{Value: value, At: r.At, Undated: r.Undated}) {
				return
			}
		}
		speed, reported := r.Values[SpeedKmh]
		if !reported || r.Arrived.IsZero() || !yield(ArrivedSpeed, Reading{Value: speed, At: r.Arrived}) {
			return
		}
		if !r.At.Before(r.Arrived) {
			yield(SpeedByArrival, Reading{Value: true, At: r.Arrived})
		}
	}
}

// Alarm is an event that a unit reports immediately, such as that the vehicle is towed away.
type Alarm struct {
	Kind string // as the protocol names it
	Text string // for people; empty: none
}

// Bound dates the report, and the position in it, by its arrival where they are dated later: until
// that time was reached, nothing that the unit reports by a right clock would count [TEL-2]. It
// notes the arrival.
func (r *Report) Bound(received time.Time) {
	received = received.UTC().Truncate(time.Millisecond)
	r.Arrived = received
	if r.At.After(received) {
		r.At = received
	}
	if at, ok := r.Values[LocatedAt].(time.Time); ok && at.After(received) {
		r.Values[LocatedAt] = received
	}
}

// MaxAhead is how far a unit's clock may be ahead of ours: a report with a later time,
// or one before 2020, gets the time of its arrival [TEL-5].
const MaxAhead = 5 * time.Minute

var earliest = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// IsPlausible reports whether a unit's time is neither before 2020 nor more than MaxAhead after
// the message was received.
func IsPlausible(at, received time.Time) bool {
	return !at.Before(earliest) && !at.After(received.Add(MaxAhead))
}

// VehicleTime returns the unit's time at, or received if at is not plausible; in UTC and
// milliseconds.
func VehicleTime(at, received time.Time) time.Time {
	if !IsPlausible(at, received) {
		at = received
	}
	return at.UTC().Truncate(time.Millisecond)
}

// FormatTime formats an instant as the wire and the interface do: RFC 3339, UTC, milliseconds.
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
		name, rest, nested := strings.Cut(field.String(), ".")
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

// Fault is the reason why a part of a message is not valid [TEL-4].
type Fault string

const (
	WrongType   Fault = "type"  // not of its field's JSON type
	OutOfRange  Fault = "range" // a number, a length or a time outside its range
	UnknownWord Fault = "word"  // not in its field's vocabulary
	// The report's time is not plausible [TEL-5].
	WrongTime Fault = "time"
)

// Dropped is a part of a message that was ignored, and why [TEL-4].
type Dropped struct {
	Field  string
	Fault  Fault // empty: of another kind, such as half a position
	Reason string
	Said   time.Time // of WrongTime: the time that is not plausible; zero: none
}

// faultyError is the error of a value of the right type, with its fault.
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

// FaultOf returns the fault of an error of ParseValue.
func FaultOf(err error) Fault {
	if faulty, ok := errors.AsType[faultyError](err); ok {
		return faulty.fault
	}
	return WrongType
}
