package telematics

import (
	"errors"
	"fmt"
)

// Fault is the way in which a part of a message is unsound [TEL-4].
type Fault string

const (
	WrongType   Fault = "type"  // not of its field's JSON type
	OutOfRange  Fault = "range" // a number, a length or a time that cannot be
	UnknownWord Fault = "word"  // none of its field's words
	WrongTime   Fault = "time"  // the report's own time cannot be true; the receiver's was taken [TEL-5]
)

// Dropped is a part of a message that was not taken, and why [TEL-4].
type Dropped struct {
	Field  string
	Fault  Fault // empty: of another kind, such as half a position
	Reason string
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
