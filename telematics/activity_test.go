package telematics

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
)

func TestActivity_HasTheResultOfACommand(t *testing.T) {
	request := uuid.MustParse("11111111-2222-4333-8444-555555555555")
	base := Command{
		ID: aCommand, Vehicle: 42, Agency: 1, Unit: "unit-1", Action: AttentionSignal, Attention: &Attention{Both, time.Second},
		Actor: Actor{Subject: "admin-7", Role: Admin, Agency: 1}, RequestID: request,
		Requested: now, Deadline: now.Add(DefaultBudget), Completed: now.Add(2 * time.Second),
	}
	cases := []struct {
		state   State
		reason  string
		late    bool
		outcome Outcome
		code    Code
	}{
		{Succeeded, "", false, Executed, ""},
		{Succeeded, "", true, Executed, ""},
		{Unknown, BadSignature, false, MayHave, CommandRejected},
		{Rejected, StateConflict, false, NotExecuted, VehicleStateConflict},
		{Failed, "", false, HasFailed, CommandFailed},
		{Expired, "", false, NotExecuted, TelematicsUnavailable},
		{Unknown, "", false, MayHave, CommandTimeout},
	}
	for _, c := range cases {
		command := base
		command.State, command.Reason, command.Late = c.state, c.reason, c.late
		want := Activity{
			At: command.Completed, Actor: base.Actor, Agency: 1, Vehicle: 42, Action: "command.attention", Attention: base.Attention,
			Outcome: c.outcome, Code: c.code, Command: aCommand, RequestID: request, Latency: 2 * time.Second, Late: c.late,
		}
		assert.DeepEqual(t, command.Activity(), want, "%s: entry", c.state)
	}
}
