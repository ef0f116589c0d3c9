package audit

import (
	"testing"
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

func TestUnbroken_CommandThatFailsIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		law    string // that finds it; empty: none does
		commit func(*Evidence, *Call)
	}{
		"executed":    {"", func(*Evidence, *Call) {}},
		"no response": {unbrokenLaw, func(_ *Evidence, c *Call) { c.Status, c.Outcome = 0, "" }},
		"refused": {unbrokenLaw, func(_ *Evidence, c *Call) {
			c.Status, c.Code, c.Outcome = 503, telematics.TelematicsUnavailable, telematics.NotExecuted
		}},
		"refused, as the vehicle is in use": {"", func(_ *Evidence, c *Call) {
			c.Status, c.Code, c.Outcome, c.RequestID = 409, telematics.CommandInProgress, telematics.NotExecuted, "another"
		}},
		"refused as in use, which the vehicle is not": {unbrokenLaw, func(_ *Evidence, c *Call) {
			c.Status, c.Code, c.Outcome, c.RequestID = 409, telematics.CommandInProgress, telematics.NotExecuted, "another"
			c.Start, c.End = c.Start.Add(time.Minute), c.End.Add(time.Minute)
		}},
		"struck by the fault":      {"", func(e *Evidence, c *Call) { e.Unbroken, c.Status = map[telematics.VehicleID]time.Time{}, 0 }},
		"struck by it until later": {"", func(e *Evidence, c *Call) { e.Unbroken[6], c.Status = c.End, 0 }},
		"struck by it until now":   {unbrokenLaw, func(e *Evidence, c *Call) { e.Unbroken[6], c.Status, c.Outcome = c.Start, 0, "" }},
		"executed for another": {answeredLaw, func(_ *Evidence, c *Call) {
			c.Command = id(doneOne)
		}},
	} {
		e := healthy()
		call := *e.call(soundOne)
		if c.commit(&e, &call); call.RequestID == "another" {
			e.Calls = append(e.Calls, call)
		} else {
			*e.call(soundOne) = call
		}
		r := Check(e)
		for _, law := range []string{unbrokenLaw, answeredLaw} {
			found := len(r.Of(law)) > 0
			if both := law == answeredLaw && c.law == unbrokenLaw && call.RequestID != "another"; found != (law == c.law || both) {
				t.Errorf("%s: %q: %v", name, law, r.Of(law))
			}
		}
	}
}

const (
	unbrokenLaw = "a command that no fault strikes is executed"
	answeredLaw = "what is executed is answered so to its caller"
)

func TestLostCommits_WhatIsForgottenIsFound(t *testing.T) {
	lose := func(e *Evidence) { // the last command that was executed
		e.Commands = e.Commands[:len(e.Commands)-1]
		e.AuditLog = e.AuditLog[:len(e.AuditLog)-1]
	}
	answer := LogEntry{ID: 1000, Action: "answer.unrecorded", Command: id(soundOne)}
	for name, c := range map[string]struct {
		law    string // that finds it; empty: none does
		commit func(*Evidence)
	}{
		"nothing is lost": {"", func(*Evidence) {}},
		"of another protocol, whose messages name no command": {"", func(e *Evidence) {
			e.Others = map[telematics.VehicleID]Installed{7: {Unit: "unit-7", Protocol: "ovms"}}
			start := simulator.Event{Kind: simulator.CommandStarted, Unit: "unit-7", True: noon}
			e.Flights = append(e.Flights, start, start)
		}},
		"lost, and its answer stored": {"", func(e *Evidence) {
			lose(e)
			e.Unrecorded[id(soundOne)], e.AuditLog = true, append(e.AuditLog, answer)
		}},
		"lost, and forgotten": {"an executed command, or its answer, is on record", lose},
		"logged twice": {"a stored answer to a lost command has one entry in the audit log", func(e *Evidence) {
			lose(e)
			e.Unrecorded[id(soundOne)], e.AuditLog = true, append(e.AuditLog, answer, answer)
		}},
		"refused as out of order": {"no vehicle refuses a command as out of order", func(e *Evidence) {
			refusal := e.event(rejectedOne, simulator.CommandAnswered)
			refusal.Reason = telematics.OutOfOrder
		}},
		"a number that was given before": {"one at a time in a lane", func(e *Evidence) {
			e.event(doneTwo, simulator.CommandStarted).Seq = 1
		}},
	} {
		e := healthy()
		e.Unrecorded = map[telematics.CommandID]bool{}
		c.commit(&e)
		r := Check(e)
		for _, v := range r.Violations {
			if v.Law != c.law {
				t.Errorf("%s: %q: %s", name, v.Law, v.What)
			}
		}
		if c.law != "" && len(r.Of(c.law)) == 0 {
			t.Errorf("%s: not found", name)
		}
		if want := map[bool]int{true: 1}[name != "nothing is lost" && len(e.Commands) < soundOne]; e.Lost() != want {
			t.Errorf("%s: %d lost, want %d", name, e.Lost(), want)
		}
	}
}
