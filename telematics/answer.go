package telematics

import "time"

// Reasons for which a unit rejects or fails a command [CMD-4] [CMD-5].
const (
	BadSignature  = "bad_signature"
	WrongAudience = "wrong_audience"
	ClockUnset    = "clock_unset"
	ClockBehind   = "clock_behind"
	TTLTooLong    = "ttl_too_long"
	TooLate       = "expired"
	OutOfOrder    = "out_of_order"
	Unsupported   = "unsupported"
	StateConflict = "state_conflict"
	Interrupted   = "interrupted"
)

// ByHalt is Motorpool's reason for a command that expired: a halt kept it from being published.
const ByHalt = "halted"

// Details of StateConflict.
const (
	Moving     = "moving"
	DoorOpen   = "door_open"
	IgnitionOn = "ignition_on"
)

// remembersRejection reports whether a unit remembers that it rejected a command for this reason
// [CMD-4]. If not, it checks the next copy of the same message again.
func remembersRejection(reason string) bool { return reason != BadSignature && reason != WrongAudience }

// Answer is a unit's message about a command.
type Answer struct {
	Command CommandID
	State   State // Received, Succeeded, Rejected or Failed [ACK-1]
	At      time.Time
	Reason  string
	Detail  string
	Report  *Report // what the command changed [ACK-2]; nil: not reported
	Trace   string  // the traceparent of the command, which the unit returns [ACK-5]; empty: none
}

// Forgotten reports whether the unit does not remember its answer. After such a rejection another
// copy of the command, still in transit, may be executed.
func (a Answer) Forgotten() bool { return a.State == Rejected && !remembersRejection(a.Reason) }

// Settles returns the state that the command enters with this answer.
func (a Answer) Settles() State {
	if a.Forgotten() {
		return Unknown
	}
	return a.State
}
