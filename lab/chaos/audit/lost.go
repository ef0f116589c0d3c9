package audit

import (
	"slices"
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

// lawsOfLostCommits are the laws of a round that loses commits, in which an executed command need
// not be on record, and its caller's answer may be about such a one.
var lawsOfLostCommits = []law{
	{"executed at most once", atMostOnce, false},
	{"never late", neverLate, false},
	{"no vehicle refuses a command as out of order", noneOutOfOrder, false},
	{"one at a time in a lane", oneAtATime, false},
	{"an executed command, or its answer, is on record", executedIsNotForgotten, false},
	{"a stored answer to a lost command has one entry in the audit log", lostIsLoggedOnce, true},
}

// noneOutOfOrder checks that numbers go on above those that were lost, even where units have
// executed such.
func noneOutOfOrder(chk *checker) {
	for id := range chk.flights {
		refusal := chk.find(id, func(e *simulator.Event) bool {
			return e.Kind == simulator.CommandAnswered && e.Status == telematics.Rejected && e.Reason == telematics.OutOfOrder
		})
		chk.must(refusal == nil, command(id), "a unit refused it as out of order")
	}
}

// executedIsNotForgotten checks that Postgres has each command that ended successfully, or its
// answer.
func executedIsNotForgotten(chk *checker) {
	for id := range chk.flights {
		if chk.succeeded(id) != nil {
			chk.must(chk.rows[id] != nil || chk.Unrecorded[id], command(id), "it was executed, and neither it nor its answer is on record")
		}
	}
}

func lostIsLoggedOnce(chk *checker) {
	for id := range chk.Unrecorded {
		logged := 0
		for _, entry := range chk.entries[id] {
			if entry.Action == "answer.unrecorded" {
				logged++
			}
		}
		chk.must(logged == 1 && chk.rows[id] == nil, command(id), "its answer has %d entries; on record: %t", logged, chk.rows[id] != nil)
	}
}

// Lost counts the commands that cars have executed and that are not on record.
func (e Evidence) Lost() (lost int) {
	v := newView(e.Of(telematics.DefaultProtocol))
	for id := range v.flights {
		if v.succeeded(id) != nil && v.rows[id] == nil {
			lost++
		}
	}
	return lost
}

// unbrokenIsExecuted checks that every command to a vehicle that a fault does not strike is
// executed, unless the vehicle was in use; but during a stall of the machine.
func unbrokenIsExecuted(chk *checker) {
	for i := range chk.Calls {
		if c := &chk.Calls[i]; chk.unbroken(c.Vehicle, c.Start) && chk.judges(c) {
			holds := !failed(c) && (c.Code != telematics.CommandInProgress || chk.inUse(c))
			chk.must(holds, called(c), "after %v: %s", c.End.Sub(c.Start), c.answer())
		}
	}
}

// unbroken reports whether a fault does not strike a vehicle since a time.
func (v *view) unbroken(id telematics.VehicleID, at time.Time) bool {
	since, never := v.Unbroken[id]
	return never && !at.Before(since)
}

// inUse reports whether a command to the vehicle of a call was open meanwhile.
func (v *view) inUse(c *Call) bool {
	return slices.ContainsFunc(v.Commands, func(r Row) bool {
		open := r.Completed.IsZero() || c.Start.Before(r.Completed.Add(outageReading))
		return r.Vehicle == c.Vehicle && r.RequestID != c.RequestID && r.Requested.Before(c.End) && open
	})
}

// executedIsAnswered checks that the caller of what such a vehicle has executed got that answer.
func executedIsAnswered(chk *checker) {
	for i := range chk.Commands {
		r := &chk.Commands[i]
		if !chk.unbroken(r.Vehicle, r.Requested) || chk.succeeded(r.ID) == nil {
			continue
		}
		answered := false
		for _, c := range chk.called[r.RequestID] {
			answered = answered || c.Outcome == telematics.Executed && c.Command == r.ID || !chk.judges(c)
		}
		chk.must(answered, command(r.ID), "executed, and no caller was answered so")
	}
}
