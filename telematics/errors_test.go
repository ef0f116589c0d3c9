package telematics

import (
	"errors"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
)

func TestErr_EachSettledStateHasItsError(t *testing.T) {
	const s = time.Second
	cases := []struct {
		state          State
		reason, detail string
		code           Code
		outcome        Outcome
		retryable      bool
		after          time.Duration
		message        string
	}{
		{Rejected, StateConflict, Moving, VehicleStateConflict, NotExecuted, true, 30 * s, "Cannot lock: the vehicle is moving."},
		{Rejected, StateConflict, DoorOpen, VehicleStateConflict, NotExecuted, true, 30 * s, "Cannot lock: a door is open."},
		{
			Rejected, StateConflict, "", VehicleStateConflict, NotExecuted, true, 30 * s,
			"Cannot lock: the vehicle's state does not allow it.",
		},
		{Rejected, Unsupported, "", CommandNotSupported, NotExecuted, false, time.Hour, "does not support the command lock"},
		{Unknown, BadSignature, "", CommandRejected, MayHave, false, 10 * s, "(bad_signature), but may still execute another copy"},
		{Unknown, WrongAudience, "", CommandRejected, MayHave, false, 10 * s, "(wrong_audience), but may still execute another copy"},
		{Rejected, ClockUnset, "", CommandRejected, NotExecuted, false, 10 * s, "(clock_unset)"},
		{Rejected, ClockBehind, "", CommandRejected, NotExecuted, false, 10 * s, "(clock_behind)"},
		{Rejected, TTLTooLong, "", CommandRejected, NotExecuted, false, 10 * s, "(ttl_too_long)"},
		{Rejected, TooLate, "", CommandRejected, NotExecuted, false, 10 * s, "(expired)"},
		{Rejected, OutOfOrder, "", CommandRejected, NotExecuted, false, 10 * s, "(out_of_order)"},
		{Rejected, "", "", CommandRejected, NotExecuted, false, 10 * s, "refused the command; nothing"},
		{Failed, Interrupted, "", CommandFailed, HasFailed, false, 10 * s, "tried to lock and failed."},
		{Failed, "", "motor_blocked", CommandFailed, HasFailed, false, 10 * s, "(motor_blocked)"},
		{Expired, "", "", TelematicsUnavailable, NotExecuted, true, 5 * s, "could not be sent in time"},
		{Unknown, "", "", CommandTimeout, MayHave, false, 10 * s, "within 10 seconds; it may still execute"},
	}
	for _, c := range cases {
		command := Command{ID: aCommand, Action: Lock, State: c.state, Reason: c.reason, Detail: c.detail,
			Requested: now, Deadline: now.Add(DefaultBudget)}
		err := command.Err()
		if err == nil {
			t.Errorf("%s %s: no error", c.state, c.reason)
			continue
		}
		if err.Code != c.code || err.Outcome != c.outcome || err.Retryable != c.retryable || err.RetryAfter != c.after {
			t.Errorf("%s %s: %+v, want %+v", c.state, c.reason, err, c)
		}
		if err.Command != aCommand || err.Reason != c.reason || err.Detail != c.detail || !strings.Contains(err.Message, c.message) {
			t.Errorf("%s %s: %+v, want it to say %q", c.state, c.reason, err, c.message)
		}
	}
}

func TestErr_SuccessIsNoError(t *testing.T) {
	if err := (&Command{State: Succeeded}).Err(); err != nil {
		t.Error("error of a success:", err)
	}
}

// [LAW-10]
func TestErr_OnlyNotExecutedIsRetryable(t *testing.T) {
	for _, state := range States {
		for _, reason := range []string{"", StateConflict, Unsupported, BadSignature, Interrupted} {
			err := (&Command{State: state, Reason: reason}).Err()
			if err != nil && err.Retryable && err.Outcome != NotExecuted {
				t.Errorf("%s %s: retryable with outcome %q", state, reason, err.Outcome)
			}
		}
	}
}

func TestErr_BudgetOfOneSecondIsSingular(t *testing.T) {
	for budget, want := range map[time.Duration]string{
		time.Second: "within 1 second;", 1500 * time.Millisecond: "within 1.5 seconds;", 30 * time.Second: "within 30 seconds;",
	} {
		err := (&Command{State: Unknown, Requested: now, Deadline: now.Add(budget)}).Err()
		if !strings.Contains(err.Message, want) {
			t.Errorf("budget %v: message %q, want %q", budget, err.Message, want)
		}
	}
}

func TestErrors_BeforeACommandIsPublished(t *testing.T) {
	occupant := Command{ID: aCommand, Action: Unlock, Deadline: now.Add(4 * time.Second)}
	unanswered := Command{Action: Lock, State: Unknown, BestEffort: BestEffort{AnswerBy: now.Add(time.Minute)}}
	cases := []struct {
		err       *Error
		code      Code
		outcome   Outcome
		retryable bool
		after     time.Duration
		message   string
	}{
		{NoSuchVehicle(7), VehicleNotFound, "", false, 0, "no vehicle 7"},
		{NoSuchCommand(aCommand), CommandNotFound, "", false, 0, aCommand.String()},
		{NoUnit(), VehicleHasNoUnit, NotExecuted, false, time.Hour, "No telematics unit"},
		{NotSupported(OpenTopCase), CommandNotSupported, NotExecuted, false, time.Hour, "open-top-case"},
		{Conflict(Unlock, Moving), VehicleStateConflict, NotExecuted, true, 30 * time.Second, "Cannot unlock: the vehicle is moving."},
		{InProgress(&occupant, now), CommandInProgress, NotExecuted, true, 4 * time.Second, "unlock"},
		{InProgress(&occupant, now.Add(time.Minute)), CommandInProgress, NotExecuted, true, time.Second, "unlock"},
		{InProgress(&unanswered, now), CommandInProgress, NotExecuted, true, time.Minute, "lock"},
		{UnitOffline(Contact{Status: Offline, LastSeen: now.Add(-time.Hour), ChangedAt: now.Add(-time.Hour)}, now),
			VehicleOffline, NotExecuted, true, 30 * time.Second, "offline (last seen 1 h ago)"},
		{
			UnitOffline(Contact{}, now), VehicleOffline, NotExecuted, true, 30 * time.Second,
			"The connectivity of the vehicle is unknown (it was never seen)",
		},
		{UnitOffline(Contact{Status: Offline, LastSeen: now.Add(-time.Second), ChangedAt: now.Add(-time.Minute)}, now),
			VehicleOffline, NotExecuted, true, 30 * time.Second, "The vehicle is offline (last seen 1 s ago)"},
		{UnitOffline(Contact{Status: Standby}, now), VehicleOffline, NotExecuted, true, 30 * time.Second, "standby (it was never seen)"},
		{
			Unavailable("The MQTT broker", nil), TelematicsUnavailable, NotExecuted, true, 5 * time.Second,
			"The MQTT broker is not available",
		},
		{Broken(errors.New("disk full")), Internal, "", true, 0, "Internal error"},
	}
	for _, c := range cases {
		e := c.err
		if e.Code != c.code || e.Outcome != c.outcome || e.Retryable != c.retryable || e.RetryAfter != c.after ||
			!strings.Contains(e.Message, c.message) {
			t.Errorf("error %+v, want %+v", e, c)
		}
	}
	if got := InProgress(&occupant, now).Command; got != aCommand {
		t.Errorf("InProgress names command %s, want the occupant", got)
	}
}

func TestError_CauseIsNotInTheMessage(t *testing.T) {
	cause := errors.New("dial tcp 10.0.0.7:5432: refused")
	err := Unavailable("The database", cause)
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "10.0.0.7") || strings.Contains(err.Message, "10.0.0.7") {
		t.Errorf("error %v, message %s; want the cause only in the former", err, err.Message)
	}
	assert.Equal(t, NoSuchVehicle(7).Error(), "vehicle_not_found: There is no vehicle 7.", "text")
}
