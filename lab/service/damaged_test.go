package service_test

import (
	"net/http"
	"testing"
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

// damaging is a car whose radio delivers each command twice, first damaged.
func damaging(id telematics.VehicleID) simulator.Profile {
	p := healthy(id)
	p.Faults.Damage = simulator.Always
	return p
}

func TestDamagedCommand_IsUnknownAndKeepsItsKey(t *testing.T) {
	t.Parallel()
	s := startStack(t, 1)
	var recorder simulator.Recorder
	instances := []*instance{s.serve(), s.serve()}
	s.drive(&recorder, damaging)
	first := instances[0].control(1, telematics.Lock, "Idempotency-Key", "k")
	first.wants(http.StatusBadGateway, "command_rejected", "bad_signature", "unknown")
	var c command
	s.eventually(20*time.Second, "the intact copy settles the command", func() bool {
		return instances[1].get("/api/v1/admin/commands/"+first.Error.CommandID, &c).status == 200 && c.State == "succeeded"
	})
	if !c.Late || c.Outcome != "executed" {
		s.Errorf("the command is %+v, want it late and executed", c)
	}
	again := instances[1].control(1, telematics.Lock, "Idempotency-Key", "k")
	if again.status != 200 || again.header.Get("Idempotency-Replayed") != "true" || commandOf(s.T, again).ID != c.ID {
		s.Errorf("the repeated request: %d %+v, want the replayed command", again.status, again.Error)
	}
	starts := 0
	for _, e := range recorder.Events() {
		if e.Kind == simulator.CommandStarted {
			starts++
		}
	}
	if starts != 1 {
		s.Errorf("the car executed the command %d times with one key, want once", starts)
	}
}
