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

// ByHalt is our own reason for a command that expired: a halt kept it from leaving.
const ByHalt = "halted"

// Details of StateConflict.
const (
	Moving     = "moving"
	DoorOpen   = "door_open"
	IgnitionOn = "ignition_on"
)

// Answer is what a unit says about a command.
type Answer struct {
	Command CommandID
	State   State // Received, Succeeded, Rejected or Failed [ACK-1]
	At      time.Time
	Reason  string
	Detail  string
	Report  *Report // what the command changed [ACK-2]; nil: nothing said
}
