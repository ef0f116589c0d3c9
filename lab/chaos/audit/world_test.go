package audit

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"motorpool/simulator"
	"motorpool/telematics"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func id(n int) telematics.CommandID {
	return uuid.MustParse(fmt.Sprintf("00000000-0000-7000-8000-%012d", n))
}

// world collects the evidence of commands, each as it would be left by its course.
type world struct {
	Evidence
	n    int
	line int64
}

// order is a command and its course to the settlement.
type order struct {
	vehicle telematics.VehicleID
	action  telematics.Action
	key     string
	at      time.Time
	end     telematics.State // final answer of the unit; empty: it never receives the command
	reason  string
	lost    bool // the answer arrived late, in a report
	silent  bool // the caller got no response
}

func (w *world) add(o order) (*Row, *Call) {
	w.n++
	unit := telematics.Unit(fmt.Sprintf("unit-%d", o.vehicle))
	r := Row{
		ID: id(w.n), Vehicle: o.vehicle, Unit: unit, Action: o.action, Lane: o.action.Lane(), Seq: int64(w.n), Attempts: 1,
		RequestID: fmt.Sprintf("request-%d", w.n), Requested: o.at, SentAt: o.at.Add(ms(20)), Deadline: o.at.Add(10 * time.Second),
		State: telematics.Unknown, Completed: o.at.Add(10*time.Second + ms(5)),
	}
	expires := (&telematics.Command{Deadline: r.Deadline}).Expires()
	w.Published = append(
		w.Published,
		Message{At: o.at.Add(ms(22)), Unit: unit, Command: r.ID, Issued: o.at.Truncate(time.Second), Expires: expires, Signed: true},
	)
	event := func(kind simulator.Kind, after int, state telematics.State, reason string) {
		at := o.at.Add(ms(after))
		w.Flights = append(w.Flights, simulator.Event{
			Kind: kind, Unit: unit, Command: r.ID, Action: r.Action, Lane: r.Lane, Seq: r.Seq, Expires: expires,
			Status: state, Reason: reason, Clock: at, True: at,
		})
		if reason == telematics.ClockBehind {
			w.Flights[len(w.Flights)-1].Clock = at.Add(-30 * time.Second)
		}
	}
	if o.end != "" {
		event(simulator.CommandReceived, 50, "", "")
		if o.end != telematics.Rejected {
			event(simulator.CommandAnswered, 50, telematics.Received, "")
			event(simulator.CommandStarted, 50, "", "")
			if o.reason != telematics.Interrupted {
				event(simulator.CommandEnded, 150, o.end, "")
			}
		}
		event(simulator.CommandAnswered, 150, o.end, o.reason)
	}
	unanswered := o.lost || o.end == ""
	if unanswered {
		w.settled(&r)
	}
	if o.end != "" {
		r.State, r.Late, r.Completed = o.end, o.lost, o.at.Add(ms(200))
		if o.lost {
			r.Completed = o.at.Add(20 * time.Second)
		}
		w.settled(&r)
	}
	c := Call{
		RequestID: r.RequestID, Key: o.key, Instance: 1, Vehicle: o.vehicle, Action: o.action, Start: o.at.Add(-ms(3)),
		End: o.at.Add(ms(205)), Command: r.ID, Status: 200, Outcome: r.State.Outcome(),
	}
	if unanswered {
		c.End, c.Status, c.Code, c.Outcome = o.at.Add(10*time.Second+ms(8)), 504, telematics.CommandTimeout, telematics.MayHave
	}
	if o.silent {
		c.Status, c.Code, c.Outcome, c.Command = 0, "", "", telematics.NoCommand
	}
	w.Commands, w.Calls = append(w.Commands, r), append(w.Calls, c)
	return &w.Commands[len(w.Commands)-1], &w.Calls[len(w.Calls)-1]
}

func (w *world) settled(r *Row) {
	w.line++
	w.AuditLog = append(w.AuditLog, LogEntry{
		ID: w.line, At: r.Completed, Vehicle: r.Vehicle, Action: telematics.CommandActivity(r.Action), Outcome: r.State.Outcome(),
		Command: r.ID, RequestID: r.RequestID, Late: r.Late,
	})
}

// refuse adds a call that did not become a command.
func (w *world) refuse(at time.Time, status int, code telematics.Code, occupant telematics.CommandID, logged bool) *Call {
	c := Call{
		RequestID: fmt.Sprintf("refused-%d", len(w.Calls)), Instance: 2, Vehicle: 1, Action: telematics.Lock, Start: at, End: at.Add(ms(9)),
		Status: status, Code: code, Outcome: telematics.NotExecuted, Command: occupant,
	}
	if logged {
		w.line++
		w.AuditLog = append(
			w.AuditLog,
			LogEntry{
				ID: w.line, At: at.Add(ms(5)), Vehicle: 1, Action: "command.lock", Outcome: c.Outcome, Code: code,
				RequestID: c.RequestID,
			},
		)
	}
	w.Calls = append(w.Calls, c)
	return &w.Calls[len(w.Calls)-1]
}

// These are the numbers of the commands of a healthy world.
const (
	doneOne = iota + 1
	doneTwo
	rejectedOne
	failedOne
	interruptedOne
	lateOne
	lostOne
	cutOne
	soundOne
)

// healthy is a world in which everything that the laws allow has happened once.
func healthy() Evidence {
	w := &world{}
	minute := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	w.add(order{vehicle: 1, action: telematics.Lock, at: minute(0), end: telematics.Succeeded})
	w.add(order{vehicle: 1, action: telematics.Unlock, at: minute(1), end: telematics.Succeeded})
	w.add(order{vehicle: 1, action: telematics.Lock, at: minute(2), end: telematics.Rejected, reason: telematics.ClockBehind})
	w.add(order{vehicle: 1, action: telematics.Lock, at: minute(3), end: telematics.Failed})
	w.add(order{vehicle: 1, action: telematics.Lock, at: minute(4), end: telematics.Failed, reason: telematics.Interrupted})
	w.add(order{vehicle: 1, action: telematics.Lock, at: minute(5), end: telematics.Succeeded, lost: true})
	w.add(order{vehicle: 2, action: telematics.Lock, at: minute(6)})
	row, first := w.add(order{vehicle: 3, action: telematics.Lock, at: minute(7), end: telematics.Succeeded, key: "key-1", silent: true})
	w.add(order{vehicle: 6, action: telematics.Lock, at: minute(10), end: telematics.Succeeded})
	again := *first // the caller repeats the call with its key, and gets the first command
	again.RequestID, again.Start, again.End = "again", first.End, first.End.Add(ms(5))
	again.Status, again.Outcome, again.Command, again.Replayed = 200, telematics.Executed, row.ID, true
	w.Calls = append(w.Calls, again)
	w.refuse(minute(0).Add(ms(100)), 409, telematics.CommandInProgress, id(doneOne), true)
	// Postgres is unavailable.
	w.refuse(minute(8).Add(ms(100)), 503, telematics.TelematicsUnavailable, telematics.NoCommand, false)
	w.refuse(minute(9), 401, "unauthenticated", telematics.NoCommand, false)
	// The message is in transit.
	w.Halts = []Halt{{Agency: 1, Written: minute(5).Add(ms(10)), Lifting: minute(5).Add(ms(6000))}}
	w.Agencies = map[telematics.Unit]telematics.AgencyID{"unit-1": 1, "unit-2": 1, "unit-3": 2}
	w.refuse(minute(5).Add(ms(1000)), 503, telematics.CommandsHalted, telematics.NoCommand, true)
	w.Floods = []Flood{{Interval: Interval{From: minute(1).Add(-ms(1)), To: minute(1).Add(time.Second)}, Limited: 7}}
	w.Up = []Interval{{From: noon.Add(-time.Hour), To: minute(8)}, {From: minute(8).Add(time.Second)}}
	w.Sampled = append(w.Sampled, w.AuditLog[0], w.AuditLog[3])
	w.Pending = []RedisKey{{Key: "motorpool:{unit-1}:pending:" + id(doneOne).String(), TTL: 50 * time.Second}}
	w.ClientFlood = ClientFlood{
		Interval: Interval{From: minute(20), To: minute(21)}, Requests: 100, Limited: 90, Kept: 10,
		Replayed: "agency_signature_replayed",
	}
	w.Ready, w.Sound = map[int][]Interval{1: {{From: noon.Add(-time.Hour)}}}, map[telematics.VehicleID]bool{1: true, 6: true}
	w.Unbroken = map[telematics.VehicleID]time.Time{6: noon}
	w.Locks = []Lock{
		{Interval: Interval{From: noon.Add(-time.Minute), To: minute(2)}, What: "vehicle 2", Vehicles: []telematics.VehicleID{2}},
	}
	w.Presence = []PresenceOf{{Unit: "unit-1", Retained: "online, session 7", Recorded: "online, session 7"}}
	w.Shown = []Shown{
		{Start: minute(1), End: minute(2), Vehicle: 1, LastSeen: noon, Stored: true},
		{Start: minute(3), End: minute(4), Vehicle: 1, LastSeen: noon, Stored: true},
	}
	w.Backends = Backends{Most: 40, Limit: 40}
	w.Months = &Months{Entries: 1, Samples: 1}
	return w.Evidence
}

// row returns the row of a command for a change.
func (e *Evidence) row(n int) *Row { return &e.Commands[n-1] }

// call returns the call that created a command for a change.
func (e *Evidence) call(n int) *Call {
	for i := range e.Calls {
		if e.Calls[i].RequestID == fmt.Sprintf("request-%d", n) {
			return &e.Calls[i]
		}
	}
	return nil
}

// event returns the first event of a kind for a change or a copy.
func (e *Evidence) event(n int, kind simulator.Kind) *simulator.Event {
	for i := range e.Flights {
		if e.Flights[i].Command == id(n) && e.Flights[i].Kind == kind {
			return &e.Flights[i]
		}
	}
	return nil
}

// message returns the message of a command for a change.
func (e *Evidence) message(n int) *Message { return &e.Published[n-1] }

// linesOf returns the indexes of the audit entries of a command.
func (e *Evidence) linesOf(n int) []int {
	var at []int
	for i, l := range e.AuditLog {
		if l.Command == id(n) {
			at = append(at, i)
		}
	}
	return at
}

// damage adds events of copies that a command's unit could not verify.
func (e *Evidence) damage(n int, kinds ...simulator.Kind) {
	r := e.row(n)
	for i, kind := range kinds {
		event := simulator.Event{Kind: kind, Unit: r.Unit, Command: r.ID, True: r.Requested.Add(time.Second + ms(i))}
		if kind == simulator.CommandAnswered {
			event.Status, event.Reason = telematics.Rejected, telematics.BadSignature
		}
		e.Flights = append(e.Flights, event)
	}
}
