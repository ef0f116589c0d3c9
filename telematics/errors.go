package telematics

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Code names an error for programs. A table in package httpapi maps each to its HTTP status.
type Code string

const (
	VehicleNotFound       Code = "vehicle_not_found"
	CommandNotFound       Code = "command_not_found"
	BulkNotFound          Code = "bulk_not_found"
	StationNotFound       Code = "station_not_found"
	AgencyNotFound        Code = "agency_not_found"
	IDTaken               Code = "id_taken" // by a vehicle or station; the code of an agency
	VehicleHasNoUnit      Code = "vehicle_has_no_unit"
	CommandNotSupported   Code = "command_not_supported"
	VehicleStateConflict  Code = "vehicle_state_conflict"
	BestEffortIsDenied    Code = "best_effort_denied"
	CommandInProgress     Code = "command_in_progress"
	VehicleOffline        Code = "vehicle_offline"
	TelematicsUnavailable Code = "telematics_unavailable"
	CommandRejected       Code = "command_rejected"
	CommandFailed         Code = "command_failed"
	CommandTimeout        Code = "command_timeout"
	CommandsHalted        Code = "commands_halted"
	IdempotencyInProgress Code = "idempotency_in_progress"
	IdempotencyMismatch   Code = "idempotency_mismatch"
	// Only in the audit log: answered with the result of an earlier request.
	IdempotencyReplayed Code = "idempotency_replayed"
	Internal            Code = "internal"
)

// Error is the error that callers of the service get: a code and a message for the
// caller, a cause for the log.
type Error struct {
	Code       Code
	Message    string        // a sentence for a person
	Retryable  bool          // sending the same again is safe and sensible
	RetryAfter time.Duration // when to send it again, or to read again; zero: of no use
	Outcome    Outcome       // commands only
	Command    CommandID     // the command concerned; zero: none
	Reason     string        // the unit's, where it gave one
	Detail     string        // the unit's, where it gave one
	Cause      error         // never shown to the caller
}

// Error returns the message, with the cause.
func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Failure is an Error as it is stored, without its cause.
type Failure struct {
	Code       Code      `json:"code"`
	Message    string    `json:"message"`
	Retryable  bool      `json:"retryable,omitempty"`
	RetryAfter int64     `json:"retry_after_ms,omitempty"`
	Outcome    Outcome   `json:"outcome,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Detail     string    `json:"detail,omitempty"`
	Command    CommandID `json:"command_id"`
}

// NewFailure returns an error as it is stored.
func NewFailure(e *Error) *Failure {
	return &Failure{
		Code: e.Code, Message: e.Message, Retryable: e.Retryable, RetryAfter: e.RetryAfter.Milliseconds(), Outcome: e.Outcome,
		Reason: e.Reason, Detail: e.Detail, Command: e.Command,
	}
}

// Err returns the stored error.
func (f *Failure) Err() *Error {
	return &Error{
		Code: f.Code, Message: f.Message, Retryable: f.Retryable, RetryAfter: time.Duration(f.RetryAfter) * time.Millisecond,
		Outcome: f.Outcome, Reason: f.Reason, Detail: f.Detail, Command: f.Command,
	}
}

// When to retry, or to read again.
const (
	retryConflict    = 30 * time.Second // a door is closed, a drive ends
	retryUnavailable = 5 * time.Second
	retryLook        = 10 * time.Second // a late answer has usually come by then
	retryHalted      = time.Minute
	retryRepeated    = time.Second
	retryEquipment   = time.Hour // another unit, or another version of its firmware
)

// NoSuchVehicle is the error for a vehicle that does not exist, or is not the caller's: the
// message is the same.
func NoSuchVehicle(id VehicleID) *Error {
	return &Error{Code: VehicleNotFound, Message: fmt.Sprintf("There is no vehicle %d.", id)}
}

// NoSuchAgency is the error for an agency that does not exist, or is not the caller's.
func NoSuchAgency(id AgencyID) *Error {
	return &Error{Code: AgencyNotFound, Message: fmt.Sprintf("There is no agency %d.", id)}
}

// NoSuchCommand is the error for a command that is unknown, or not the caller's.
func NoSuchCommand(id CommandID) *Error {
	return &Error{Code: CommandNotFound, Message: fmt.Sprintf("There is no command %s.", id)}
}

// FieldError is an error of one field of a request.
type FieldError struct {
	Field   string // as the interface names it: start_date
	Message string // completes a sentence that begins with Field: must be after start_date
}

// Error returns field and message as one sentence.
func (e *FieldError) Error() string { return e.Field + " " + e.Message }

// NoSuchBulk is the error for a bulk that is unknown, or not the caller's.
func NoSuchBulk(id BulkID) *Error {
	return &Error{Code: BulkNotFound, Message: fmt.Sprintf("There is no bulk command %s.", id)}
}

// NoUnit is the error for a vehicle in which no unit is installed.
func NoUnit() *Error {
	return &Error{Code: VehicleHasNoUnit, Outcome: NotExecuted, RetryAfter: retryEquipment,
		Message: "No telematics unit is installed in this vehicle; nothing was sent."}
}

// NotSupported is the error for an action that the vehicle does not support.
func NotSupported(a Action) *Error {
	return &Error{Code: CommandNotSupported, Outcome: NotExecuted, RetryAfter: retryEquipment, Reason: Unsupported,
		Message: fmt.Sprintf("This vehicle does not support the command %s.", a)}
}

// BestEffortDenied is the error for an action that opens a vehicle whose unit checks no expiry, if
// its agency has not allowed that.
func BestEffortDenied(a Action) *Error {
	return &Error{
		Code: BestEffortIsDenied, Outcome: NotExecuted, RetryAfter: retryEquipment,
		Message: fmt.Sprintf(
			"The unit of this vehicle checks no expiry, so that it may execute %s up to %s late, when no client stands at the vehicle; "+
				"nothing was sent. "+
				"Set best_effort_unlock of the agency to allow in the fleet file if you accept that.",
			a, Words(WorstLateness),
		),
	}
}

// Conflict is the error for an action that the vehicle's state forbids now.
func Conflict(a Action, detail string) *Error {
	return &Error{Code: VehicleStateConflict, Outcome: NotExecuted, Retryable: true, RetryAfter: retryConflict,
		Reason: StateConflict, Detail: detail,
		Message: fmt.Sprintf("Cannot %s: %s.", a.words(), conflictText(detail))}
}

// conflictText returns why the state of a vehicle forbids an action.
func conflictText(detail string) string {
	switch detail {
	case Moving:
		return "the vehicle is moving"
	case DoorOpen:
		return "a door is open"
	case IgnitionOn:
		return "the ignition is on"
	}
	return "the vehicle's state does not allow it" + reasonText(detail)
}

// words returns an action as the words of a sentence: disable driving.
func (a Action) words() string {
	if a == AttentionSignal {
		return "use horn and lights"
	}
	return strings.ReplaceAll(string(a), "-", " ")
}

// InProgress is the error for an action whose lane another command occupies: an open one, or an
// earlier one that a unit whose answers name no command may still answer.
func InProgress(occupant *Command, now time.Time) *Error {
	e := &Error{Code: CommandInProgress, Outcome: NotExecuted, Retryable: true, Command: occupant.ID,
		RetryAfter: min(max(occupant.Deadline.Sub(now), time.Second), MaxBudget),
		Message:    fmt.Sprintf("Another command of this vehicle (%s) is still in progress; nothing was sent.", occupant.Action)}
	if by := occupant.BestEffort.AnswerBy; !by.IsZero() && !occupant.State.IsOpen() {
		e.RetryAfter = max(by.Sub(now), time.Second)
		e.Message = fmt.Sprintf(
			"The unit may still answer an earlier command (%s), and its answers do not identify the command; nothing was sent.",
			occupant.Action,
		)
	}
	return e
}

// UnitOffline is the error for a unit that cannot be reached, by its contact.
func UnitOffline(c Contact, now time.Time) *Error {
	seen := "it was never seen"
	if !c.LastSeen.IsZero() {
		seen = fmt.Sprintf("last seen %s ago", Words(now.Sub(c.LastSeen)))
	}
	subject, status := "The vehicle", c.At(now)
	switch status {
	case Absent:
		subject = "The connectivity of the vehicle" // the vehicle itself is on record
	case Online: // by a message that may be one from before the last will
		status = c.Status
	}
	return &Error{Code: VehicleOffline, Outcome: NotExecuted, Retryable: true, RetryAfter: c.RetryAfter(now),
		Message: fmt.Sprintf("%s is %s (%s); nothing was sent.", subject, status, seen)}
}

// Unavailable is the error for a dependency of Motorpool, named by what, that is unavailable;
// nothing was executed.
func Unavailable(what string, cause error) *Error {
	return &Error{Code: TelematicsUnavailable, Outcome: NotExecuted, Retryable: true, RetryAfter: retryUnavailable,
		Message: fmt.Sprintf("%s is not available; nothing was sent.", what), Cause: cause}
}

// UnknownProtocol is the error for a vehicle whose row names a protocol that this version does not
// have. It is retryable: during an upgrade, another version may have it.
func UnknownProtocol(p Protocol) *Error {
	return Unavailable(fmt.Sprintf("The protocol %q of the vehicle's unit", p), nil)
}

// Halted is the error for a command that is not sent because of an operator's halt.
func Halted(h Halt) *Error {
	return &Error{Code: CommandsHalted, Outcome: NotExecuted, Retryable: true, RetryAfter: retryHalted,
		Message: fmt.Sprintf("An operator has halted commands%s; nothing was sent.", reasonText(h.Why))}
}

// StillOpen is the error for a request that is repeated while the first one is in flight.
// Pass NoCommand while the first one has no command yet.
func StillOpen(c CommandID) *Error {
	return &Error{Code: IdempotencyInProgress, Retryable: true, RetryAfter: retryRepeated, Command: c,
		Message: "A request with this Idempotency-Key is still in progress; repeat the request with the same key."}
}

// KeyMismatch is the error for an idempotency key that was used for a different request.
func KeyMismatch() *Error {
	return &Error{Code: IdempotencyMismatch,
		Message: "This Idempotency-Key was used for another request; use a new key for each new request."}
}

// Broken is the error for an internal fault; its cause is only for the log.
func Broken(cause error) *Error {
	return &Error{
		Code: Internal, Retryable: true,
		Message: "Internal error; the service's log has the cause under this request id.", Cause: cause,
	}
}

// Err returns the error of a settled command for its caller; nil: the vehicle
// executed it.
func (c *Command) Err() *Error {
	err := c.outcomeError()
	if err != nil {
		err.Command, err.Outcome = c.ID, c.State.Outcome()
		err.Reason, err.Detail = c.Reason, c.Detail
	}
	return err
}

func (c *Command) outcomeError() *Error {
	switch {
	case c.State == Succeeded:
		return nil
	case c.State == Rejected && c.Reason == StateConflict:
		return Conflict(c.Action, c.Detail)
	case c.State == Rejected && c.Reason == Unsupported:
		return NotSupported(c.Action)
	case c.State == Unknown && c.Reason != "":
		return &Error{
			Code: CommandRejected, RetryAfter: retryLook,
			Message: fmt.Sprintf(
				"The vehicle's unit refused the message%s, but may still execute another copy of it.",
				reasonText(c.Reason),
			),
		}
	case c.State == Rejected:
		return &Error{Code: CommandRejected, RetryAfter: retryLook,
			Message: fmt.Sprintf("The vehicle's unit refused the command%s; nothing was executed.", reasonText(c.Reason))}
	case c.State == Failed:
		return &Error{Code: CommandFailed, RetryAfter: retryLook,
			Message: fmt.Sprintf("The vehicle tried to %s and failed%s.", c.Action.words(), reasonText(c.Detail))}
	case c.State == Expired && c.Reason == ByHalt:
		return Halted(Halt{Why: c.Detail})
	case c.State == Expired:
		return &Error{Code: TelematicsUnavailable, Retryable: true, RetryAfter: retryUnavailable,
			Message: "The command could not be sent in time; nothing was executed."}
	case c.State == Unknown && c.Detail == AcceptedByUnit:
		return &Error{
			Code: CommandTimeout, RetryAfter: retryLook,
			Message: fmt.Sprintf(
				"The unit accepted the command, and nothing has confirmed within %v that the vehicle executed it; it may have.",
				seconds(c.Budget()),
			),
		}
	default:
		return &Error{Code: CommandTimeout, RetryAfter: retryLook,
			Message: fmt.Sprintf("No answer from the vehicle within %v; it may still execute the command.", seconds(c.Budget()))}
	}
}

// reasonText returns a reason or detail in brackets; empty: there is none.
func reasonText(code string) string {
	if code == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", code)
}

func seconds(d time.Duration) string {
	if d == time.Second {
		return "1 second"
	}
	return fmt.Sprintf("%g seconds", d.Seconds())
}

// NoCommand is the zero CommandID.
var NoCommand = uuid.Nil
