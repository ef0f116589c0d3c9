package audit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/broker"
	"motorpool/internal/assert"
	"motorpool/lab/chaos/verdict"
	"motorpool/simulator"
	"motorpool/telematics"
)

func TestCheck_HealthyWorldHasNoViolation(t *testing.T) {
	r := Check(healthy())
	for _, v := range r.Violations {
		t.Errorf("%s: %s\n%s", v.Law, v.What, v.Timeline)
	}
	if laws := r.Unchecked(); len(laws) > 0 {
		t.Errorf("%q were never checked", laws)
	}
}

// Each violation is found by its law, with the problem and the timeline of the command.
func TestCheck_FindsEachViolationWithItsTimeline(t *testing.T) {
	for _, c := range []struct {
		breach string
		law    string
		what   string
		of     int // number of the command; zero: none
		commit func(*Evidence)
	}{
		{"presence that is not recorded", "presence is recorded", "recorded is: online, session 6", 0, func(e *Evidence) {
			e.Presence[0].Recorded = "online, session 6"
		}},
		{"more connections than the settings say", "connections within the limit", "had 41 connections", 0, func(e *Evidence) {
			e.Backends.Most = 41
		}},
		{"signatures of a flood are stored", "a client's flood affects no other", "30000 signatures", 0, func(e *Evidence) {
			e.ClientFlood.Kept = 30000
		}},
		{"Redis is full because of a flood", "a client's flood affects no other", "refused 7 writes", 0, func(e *Evidence) {
			e.ClientFlood.Full = 7
		}},
		{"a flood is not limited", "a client's flood affects no other", "only 3 were over its limit", 0, func(e *Evidence) {
			e.ClientFlood.Limited = 3
		}},
		{
			"a flood stops another client's command", "a client's flood affects no other",
			"refused with telematics_unavailable", 0, func(e *Evidence) {
				e.ClientFlood.From, e.ClientFlood.To = noon.Add(7*time.Minute), noon.Add(9*time.Minute)
			},
		},
		{"a signature is used again", "a client's flood affects no other", "after Redis was emptied", 0, func(e *Evidence) {
			e.ClientFlood.Replayed = "payment_method_not_found"
		}},
		{"a command starts twice", "executed at most once", "started again", doneOne, func(e *Evidence) {
			again := *e.event(doneOne, simulator.CommandStarted)
			again.True = again.True.Add(time.Second)
			e.Flights = append(e.Flights, again)
		}},
		{"two commands of one key start", "executed at most once", `of the key "key-1"`, cutOne, func(e *Evidence) {
			w := &world{Evidence: *e, n: len(e.Commands), line: 1000}
			w.add(order{vehicle: 3, action: telematics.Lock, key: "key-1", at: noon.Add(20 * time.Minute), end: telematics.Succeeded})
			*e = w.Evidence
		}},
		{"a command starts late", "never late", "5.001s after its expiry", doneOne, func(e *Evidence) {
			start := e.event(doneOne, simulator.CommandStarted)
			start.True = start.Expires.Add(5001 * time.Millisecond)
		}},
		{"a start without a row", "never forged", "which is not on record", 99, func(e *Evidence) {
			forged := *e.event(doneOne, simulator.CommandStarted)
			forged.Command, forged.Lane = id(99), telematics.TopCaseLane
			e.Flights = append(e.Flights, forged)
		}},
		{"a start of another unit", "never forged", "which is not on record", doneOne, func(e *Evidence) {
			e.event(doneOne, simulator.CommandStarted).Unit = "unit-9"
		}},
		{"a start of another action", "never forged", "which is not on record", doneOne, func(e *Evidence) {
			e.event(doneOne, simulator.CommandStarted).Action = telematics.Unlock
		}},
		{"a message without a row", "never forged", "has no row", 99, func(e *Evidence) { e.Published[0].Command = id(99) }},
		{"a message older than its command", "never forged", "older than its command", doneOne, func(e *Evidence) {
			e.Published[0].At = e.row(doneOne).Requested.Add(-time.Second)
		}},
		{"a message without a signature", "never forged", "no signature", doneOne, func(e *Evidence) { e.Published[0].Signed = false }},
		{"a retained message", "never forged", "is retained", doneOne, func(e *Evidence) { e.Published[0].Retained = true }},
		{"a message on the topic of another unit", "never forged", "on the topic of unit-9", doneOne, func(e *Evidence) {
			e.Published[0].Unit = "unit-9"
		}},
		{"a message that expires later than its row", "never forged", "expires at", doneOne, func(e *Evidence) {
			e.Published[0].Expires = e.Published[0].Expires.Add(time.Minute)
		}},
		{"an answer on record without a report", "never forged", "never reported it", failedOne, func(e *Evidence) {
			e.event(failedOne, simulator.CommandEnded).Status = telematics.Succeeded
			e.Flights = slices.DeleteFunc(e.Flights, func(f simulator.Event) bool {
				return f.Command == id(failedOne) && f.Status == telematics.Failed
			})
		}},
		{"executed, but no car executed it", "HTTP answers are true", "no car executed it", doneOne, func(e *Evidence) {
			e.Flights = slices.DeleteFunc(e.Flights, func(f simulator.Event) bool { return f.Command == id(doneOne) })
		}},
		{"executed, before the car did it", "HTTP answers are true", "before the car", doneOne, func(e *Evidence) {
			e.call(doneOne).End = e.row(doneOne).Requested.Add(100 * time.Millisecond)
		}},
		{"executed, but the record says otherwise", "HTTP answers are true", "record does not say", doneOne, func(e *Evidence) {
			e.row(doneOne).State = telematics.Unknown
		}},
		{"executed, of another command", "HTTP answers are true", "record does not say", lateOne, func(e *Evidence) {
			e.call(doneTwo).Command = id(lateOne)
		}},
		{"not executed, but the car started", "HTTP answers are true", "the car started", doneOne, func(e *Evidence) {
			e.call(doneOne).Status, e.call(doneOne).Outcome = 503, telematics.NotExecuted
		}},
		{"not executed, without an id, but started", "HTTP answers are true", "a command of the call", doneOne, func(e *Evidence) {
			c := e.call(doneOne)
			c.Status, c.Outcome, c.Command = 503, telematics.NotExecuted, telematics.NoCommand
		}},
		{"refused for the lane, but the car started", "HTTP answers are true", "a command of the call", doneTwo, func(e *Evidence) {
			c := e.call(doneTwo)
			c.Status, c.Code, c.Outcome, c.Command = 409, telematics.CommandInProgress, telematics.NotExecuted, id(doneOne)
		}},
		{"failed, but the car executed it", "HTTP answers are true", "the car executed it", doneOne, func(e *Evidence) {
			e.call(doneOne).Status, e.call(doneOne).Outcome = 502, telematics.HasFailed
		}},
		{"unknown, although the unit repeats its answer", "unknown settles", "repeats its final answer", lateOne, func(e *Evidence) {
			e.row(lateOne).State, e.row(lateOne).Late = telematics.Unknown, false
		}},
		{"succeeded, but no car executed it", "unknown settles", "no car executed it", failedOne, func(e *Evidence) {
			e.row(failedOne).State = telematics.Succeeded
		}},
		{"failed, but the car executed it", "unknown settles", "the car executed it", doneOne, func(e *Evidence) {
			e.row(doneOne).State = telematics.Failed
		}},
		{"rejected, but the car started", "unknown settles", "the car started", doneOne, func(e *Evidence) {
			e.row(doneOne).State = telematics.Rejected
		}},
		{"expired, but the car started", "unknown settles", "the car started", doneOne, func(e *Evidence) {
			e.row(doneOne).State = telematics.Expired
		}},
		{"expired, but it was published", "unknown settles", "it was published", lostOne, func(e *Evidence) {
			e.row(lostOne).State = telematics.Expired
		}},
		{"still open at the end", "final in time", "still open", lostOne, func(e *Evidence) {
			e.row(lostOne).State, e.row(lostOne).Completed = telematics.Sent, time.Time{}
		}},
		{"settled too late", "final in time", "settled 5.3s after", lostOne, func(e *Evidence) {
			at := e.row(lostOne).Deadline.Add(5300 * time.Millisecond)
			e.row(lostOne).Completed, e.AuditLog[e.linesOf(lostOne)[0]].At = at, at
		}},
		{"settled too late after an outage", "final in time", "settled 11.4s after", lostOne, func(e *Evidence) {
			deadline := e.row(lostOne).Deadline
			at := deadline.Add(11400 * time.Millisecond)
			e.row(lostOne).Completed, e.AuditLog[e.linesOf(lostOne)[0]].At = at, at
			e.Up = []Interval{{From: noon.Add(-time.Hour), To: deadline.Add(-ms(100))}, {From: deadline.Add(time.Second)}}
			e.Calls = slices.DeleteFunc(e.Calls, func(c Call) bool { return c.Code == telematics.TelematicsUnavailable })
		}},
		{"a message dated ahead", "signed with a correct clock", "ahead of its arrival", doneOne, func(e *Evidence) {
			e.message(doneOne).Issued = e.message(doneOne).At.Add(31 * time.Second)
		}},
		{
			"an instance with a wrong clock publishes", "signed with a correct clock",
			"after the clock of its instance was set", lateOne, func(e *Evidence) {
				m := e.message(lateOne)
				from := m.At.Add(-clockNoticed - 1100*time.Millisecond)
				e.Clocks = map[int][]ClockFault{1: {{From: from, To: m.At.Add(time.Second), Ahead: time.Minute}}}
			},
		},
		{"a unit is locked out", "a fresh command is not refused", "as expired 9.85s before its expiry", rejectedOne, func(e *Evidence) {
			a := e.event(rejectedOne, simulator.CommandAnswered)
			a.Reason, a.Clock = telematics.TooLate, a.True
		}},
		{
			"clock_behind from a right clock", "a fresh command is not refused",
			"its clock was behind by 0s only", rejectedOne, func(e *Evidence) {
				a := e.event(rejectedOne, simulator.CommandAnswered)
				a.Clock = a.True
			},
		},
		{"two open commands in a lane", "one at a time in a lane", "2 commands open", doneOne, func(e *Evidence) {
			both := []telematics.CommandID{id(doneOne), id(doneTwo)}
			e.Lanes = []LaneConflict{{At: noon, Vehicle: 1, Lane: telematics.AccessLane, Commands: both}}
		}},
		{"executions overlap", "one at a time in a lane", "while lock was in progress", doneTwo, func(e *Evidence) {
			e.event(doneOne, simulator.CommandEnded).True = noon.Add(2 * time.Minute)
		}},
		{"an execution that never ended is overtaken", "one at a time in a lane", "while lock was in progress", lateOne, func(e *Evidence) {
			e.Flights = slices.DeleteFunc(e.Flights, func(f simulator.Event) bool { return f.Reason == telematics.Interrupted })
		}},
		{"executions out of order", "one at a time in a lane", "after seq 1000", doneTwo, func(e *Evidence) {
			e.event(doneOne, simulator.CommandStarted).Seq = 1000
		}},
		{"a key in Redis has no expiry", "everything in Redis expires", "has no expiry", doneOne, func(e *Evidence) {
			e.Pending[0].TTL = -1
		}},
		{"the latest state has no expiry", "everything in Redis expires", "has no expiry", 0, func(e *Evidence) {
			e.Pending[0].Key, e.Pending[0].TTL = "motorpool:{vehicle-1}:latest", -1
		}},
		{"a key in Redis stays too long", "everything in Redis expires", "expires in 1m41s", doneOne, func(e *Evidence) {
			e.Pending[0].TTL = 101 * time.Second
		}},
		{"a settlement without an entry", "audit log complete", "0 entries of its settlement, want 1", doneOne, func(e *Evidence) {
			e.AuditLog = slices.Delete(e.AuditLog, 0, 1)
			e.Sampled = nil
		}},
		{"a late settlement with one entry", "audit log complete", "1 entries of its settlement, want 2", lateOne, func(e *Evidence) {
			at := e.linesOf(lateOne)[0]
			e.AuditLog = slices.Delete(e.AuditLog, at, at+1)
		}},
		{"the audit log has another outcome", "audit log complete", "the audit log ends with failed", doneOne, func(e *Evidence) {
			e.AuditLog[0].Outcome = telematics.HasFailed
			e.Sampled = nil
		}},
		{
			"a late entry without its mark", "audit log complete",
			"(late: false), the record with executed (late: true)", lateOne, func(e *Evidence) {
				e.AuditLog[e.linesOf(lateOne)[1]].Late = false
			},
		},
		{"a refused call without an entry", "audit log complete", "an answered call has no entry", 0, func(e *Evidence) {
			w := &world{Evidence: *e}
			w.refuse(noon.Add(30*time.Minute), 503, telematics.VehicleOffline, telematics.NoCommand, false)
			*e = w.Evidence
		}},
		{"a settlement has two entries", "audit log complete", "2 entries of its settlement, want 1", doneOne, func(e *Evidence) {
			again := e.AuditLog[0]
			again.ID = 1000
			e.AuditLog = append(e.AuditLog, again)
		}},
		{"two entries with one id", "audit log append-only", "two entries have the id 1", doneTwo, func(e *Evidence) {
			e.AuditLog[1].ID = 1
		}},
		{"a missing entry", "audit log append-only", "entry 4 is gone", failedOne, func(e *Evidence) {
			e.AuditLog = slices.Delete(e.AuditLog, 3, 4)
		}},
		{"a changed entry", "audit log append-only", "entry 1 was changed", doneOne, func(e *Evidence) {
			e.AuditLog[0].At = e.AuditLog[0].At.Add(time.Microsecond)
		}},
		{"a deletable entry", "audit log append-only", "not refused: delete", 0, func(e *Evidence) {
			e.Tampered = []string{"delete from activity"}
		}},
		{"two equal numbers", "seq grows", "have seq 1", doneTwo, func(e *Evidence) { e.row(doneTwo).Seq = 1 }},
		{"a number is drawn before the lane is free", "seq grows", "before seq 1 was settled", doneTwo, func(e *Evidence) {
			at := noon.Add(70 * time.Second)
			e.row(doneOne).Completed, e.AuditLog[0].At = at, at
		}},
		{"a message after the command has expired", "nothing is published late", "after its expiry", lateOne, func(e *Evidence) {
			e.message(lateOne).At = (&telematics.Command{Deadline: e.row(lateOne).Deadline}).Expires().Add(1100 * time.Millisecond)
		}},
		{"a message after the halt is in force", "a halt holds", "had been clear for 1.1s", lateOne, func(e *Evidence) {
			e.message(lateOne).At = e.Halts[0].Written.Add(broker.HaltWithin + ms(1100))
		}},
		{"a message during a halt of all agencies", "a halt holds", "came 4.1s after", lateOne, func(e *Evidence) {
			e.Halts[0].Agency = 0
			e.message(lateOne).At = e.Halts[0].Written.Add(broker.HaltWithin + ms(1100))
		}},
		{"a message after the halt is in force, from an undelayed instance", "a halt holds", "came 5s after", lateOne, func(e *Evidence) {
			e.message(lateOne).At = e.Halts[0].Written.Add(ms(5000))
			e.Delayed = map[int][]Interval{0: {{From: noon}}, 2: {{From: noon}}}
		}},
		{"a message long after its instance was delayed", "a halt holds", "had been clear for 1.2s", lateOne, func(e *Evidence) {
			e.message(lateOne).At = e.Halts[0].Written.Add(ms(5000))
			e.Delayed = map[int][]Interval{1: {{From: noon, To: e.message(lateOne).At.Add(-ms(1200))}}}
		}},
		{"refused because of a halt, but the car started", "HTTP answers are true", "the car started", doneOne, func(e *Evidence) {
			c := e.call(doneOne)
			c.Status, c.Code, c.Outcome = 503, telematics.CommandsHalted, telematics.NotExecuted
		}},
		{"refused because of a halt with an unknown outcome", "a halt holds", "the outcome is unknown", lostOne, func(e *Evidence) {
			e.call(lostOne).Code = telematics.CommandsHalted
		}},
		{"a key that the unit lacks", "signed with a key of the unit", "unit-1 refused it as badly signed", rejectedOne, func(e *Evidence) {
			e.event(rejectedOne, simulator.CommandAnswered).Reason = telematics.BadSignature
		}},
		{"a flood displaces an answer", "a unit's flood delays no other", "the command ended unknown", doneTwo, func(e *Evidence) {
			e.row(doneTwo).State = telematics.Unknown
		}},
		{"a flood delays an answer", "a unit's flood delays no other", "ended succeeded, late true", doneTwo, func(e *Evidence) {
			e.row(doneTwo).Late = true
		}},
		{
			"late responses in a flood", "a unit's flood delays no other",
			"the callers of 1 were answered more than 2s later", doneTwo, func(e *Evidence) {
				e.call(doneTwo).End = e.event(doneTwo, simulator.CommandAnswered).True.Add(3 * time.Second)
			},
		},
		{"a flood that the service does not count", "a unit's flood delays no other", "counts no dropped", 0, func(e *Evidence) {
			e.Floods[0].Limited = 0
		}},
		{
			"such a key, and a damaged copy", "signed with a key of the unit",
			"unit-2 refused it as badly signed", lostOne, func(e *Evidence) {
				e.damage(lostOne, simulator.CommandDamaged, simulator.CommandAnswered, simulator.CommandAnswered)
			},
		},
	} {
		t.Run(c.breach, func(t *testing.T) {
			e := healthy()
			c.commit(&e)
			caught := slices.DeleteFunc(
				Check(e).Violations,
				func(v verdict.Violation) bool { return v.Law != c.law || !strings.Contains(v.What, c.what) },
			)
			if len(caught) != 1 {
				t.Fatalf("found %d times, want once: %+v", len(caught), Check(e).Violations)
			}
			v := caught[0]
			if c.of == 0 {
				return
			}
			assert.Equal(t, v.Command, id(c.of), "the violation is of command")
			if !strings.Contains(v.Timeline, "command "+id(c.of).String()) {
				t.Errorf("the timeline lacks the command:\n%s", v.Timeline)
			}
		})
	}
}

// Evidence that resembles a violation but is none.
func TestCheck_Exemptions(t *testing.T) {
	for _, c := range []struct {
		name   string
		commit func(*Evidence)
	}{
		{"a settlement that waited for Postgres", func(e *Evidence) {
			at := e.row(lostOne).Deadline.Add(time.Minute)
			e.row(lostOne).Completed, e.AuditLog[e.linesOf(lostOne)[0]].At = at, at
			e.Up = []Interval{{From: noon.Add(-time.Hour), To: e.row(lostOne).Deadline}, {From: at.Add(-4 * time.Second)}}
			e.Calls = slices.DeleteFunc(e.Calls, func(c Call) bool { return c.Code == telematics.TelematicsUnavailable })
		}},
		{"a settlement after an outage that was left to the owner", func(e *Evidence) {
			at := e.row(lostOne).Deadline.Add(time.Minute)
			e.row(lostOne).Completed, e.AuditLog[e.linesOf(lostOne)[0]].At = at, at
			e.Up = []Interval{{From: noon.Add(-time.Hour), To: e.row(lostOne).Deadline}, {From: at.Add(-9 * time.Second)}}
			e.Calls = slices.DeleteFunc(e.Calls, func(c Call) bool { return c.Code == telematics.TelematicsUnavailable })
		}},
		{"a foreign key that the instance gets after the request", func(e *Evidence) {
			a := e.event(rejectedOne, simulator.CommandAnswered)
			a.Reason = telematics.BadSignature
			e.Foreign = []Interval{{From: a.True.Add(-ms(1))}}
		}},
		{"a message of a halted agency that was in transit", func(e *Evidence) {
			e.message(lateOne).At = e.Halts[0].Written.Add(broker.HaltWithin + maxTransit)
		}},
		{"a message of a halted agency that was delayed", func(e *Evidence) {
			e.message(lateOne).At = e.Halts[0].Written.Add(ms(5500))
			e.Delayed = map[int][]Interval{1: {{From: noon, To: e.message(lateOne).At.Add(-ms(900))}}}
		}},
		{"a message of a halted agency that an intruder published", func(e *Evidence) {
			e.message(lateOne).At, e.message(lateOne).Echoed = e.Halts[0].Written.Add(ms(5500)), true
		}},
		{"a message before its instance can have detected its clock error", func(e *Evidence) {
			m := e.message(lateOne)
			from := m.At.Add(-clockNoticed - 900*time.Millisecond)
			e.Clocks = map[int][]ClockFault{1: {{From: from, To: m.At.Add(time.Second), Ahead: time.Minute}}}
		}},
		{"a message of an instance whose clock is right", func(e *Evidence) {
			m := e.message(lateOne)
			e.Clocks = map[int][]ClockFault{2: {{From: m.At.Add(-time.Minute), To: m.At.Add(time.Second), Ahead: time.Minute}}}
		}},
		{"a unit whose clock is ahead", func(e *Evidence) {
			a := e.event(rejectedOne, simulator.CommandAnswered)
			a.Reason, a.Clock = telematics.TooLate, a.True.Add(time.Minute)
		}},
		{"a command that expired in transit", func(e *Evidence) {
			a := e.event(rejectedOne, simulator.CommandAnswered)
			a.Reason, a.True = telematics.TooLate, a.Expires
		}},
		{"rows of a right clock long after a wrong one", func(e *Evidence) {
			from := e.Sampled[0].At.Add(-100 * time.Second)
			e.Clocks = map[int][]ClockFault{1: {{From: from.Add(-time.Second), To: from.Add(time.Second), Ahead: 100 * time.Second}}}
		}},
		{"a row that a wrong clock has dated", func(e *Evidence) {
			const ahead = 250 * time.Second
			r := e.row(lostOne)
			at := r.Requested.Add(ms(10))
			e.Clocks = map[int][]ClockFault{1: {{From: r.Requested.Add(-time.Second), To: r.Requested.Add(time.Minute), Ahead: ahead}}}
			// Another instance's clock was wrong when it could have written the same time.
			for other, by := range []time.Duration{ahead + 100*time.Second, ahead - 100*time.Second} {
				from := r.Requested.Add(ahead - by - time.Second)
				e.Clocks[2+other] = []ClockFault{{From: from, To: from.Add(2 * time.Second), Ahead: by}}
			}
			e.Published = slices.DeleteFunc(e.Published, func(m Message) bool { return m.Command == r.ID })
			e.Flights = slices.DeleteFunc(e.Flights, func(f simulator.Event) bool { return f.Command == r.ID })
			r.State, r.Attempts, r.SentAt, r.Completed = telematics.Expired, 0, time.Time{}, at.Add(ahead)
			r.Requested, r.Deadline = r.Requested.Add(ahead), r.Deadline.Add(ahead)
			line := &e.AuditLog[e.linesOf(lostOne)[0]]
			line.At, line.Outcome = r.Completed, telematics.NotExecuted
			c := e.call(lostOne)
			c.Status, c.Code, c.Outcome, c.End = 503, telematics.TelematicsUnavailable, telematics.NotExecuted, at.Add(ms(5))
			// The next command in the lane follows shortly after.
			w := &world{Evidence: *e, n: len(e.Commands), line: 2000}
			w.add(order{vehicle: 2, action: telematics.Lock, at: at.Add(time.Second), end: telematics.Succeeded})
			*e = w.Evidence
		}},
		{"a message of another agency than the halted one", func(e *Evidence) {
			e.message(lateOne).At, e.Halts[0].Agency = e.Halts[0].Written.Add(ms(5500)), 2
		}},
		{"a message after the halt was lifted", func(e *Evidence) { e.message(lateOne).At = e.Halts[0].Lifting }},
		{"a message that arrived after its unit removed the key", func(e *Evidence) {
			e.Flights = append(e.Flights, simulator.Event{
				Kind: simulator.CommandAnswered, Unit: "unit-2", Command: id(lostOne), Status: telematics.Rejected,
				Reason: telematics.BadSignature, True: e.row(lostOne).Deadline.Add(30 * time.Second),
			})
		}},
		{"a message that the radio damaged", func(e *Evidence) {
			e.damage(lostOne, simulator.CommandDamaged, simulator.CommandAnswered)
		}},
		{"a start at the edge of the allowed clock error", func(e *Evidence) {
			for _, kind := range []simulator.Kind{simulator.CommandStarted, simulator.CommandEnded} {
				e.event(lateOne, kind).True = e.event(lateOne, kind).Expires.Add(5 * time.Second)
			}
		}},
		{"an unknown command that eight others displaced from the reports", func(e *Evidence) {
			e.row(doneOne).State, e.row(doneOne).Late = telematics.Unknown, false
			e.AuditLog[0].Outcome, e.Sampled = telematics.MayHave, nil
			e.call(doneOne).Outcome, e.call(doneOne).Status = telematics.MayHave, 504
			w := &world{Evidence: *e, n: len(e.Commands), line: 1000}
			for n := range reported - 4 {
				at := noon.Add(time.Duration(20+n) * time.Minute)
				w.add(order{vehicle: 1, action: telematics.AttentionSignal, at: at, end: telematics.Succeeded})
			}
			*e = w.Evidence
		}},
		{"an answer that the unit does not remember", func(e *Evidence) {
			e.Flights = append(e.Flights, simulator.Event{
				Kind: simulator.CommandAnswered, Unit: "unit-2", Command: id(lostOne), Status: telematics.Rejected,
				Reason: telematics.WrongAudience, True: e.row(lostOne).Requested.Add(time.Second),
			})
		}},
		{"a refusal by an instance that was cut off from Postgres", func(e *Evidence) {
			w := &world{Evidence: *e}
			c := w.refuse(noon.Add(30*time.Minute), 503, telematics.TelematicsUnavailable, telematics.NoCommand, false)
			w.Reach = map[int][]Interval{c.Instance: {e.Up[0], {From: e.Up[1].From, To: c.Start}, {From: c.End}}}
			*e = w.Evidence
		}},
		{"a command that expired, and was rejected late", func(e *Evidence) {
			r := e.row(rejectedOne)
			r.Late, r.Completed = true, r.Deadline.Add(time.Second)
			line := &e.AuditLog[e.linesOf(rejectedOne)[0]]
			later := *line
			line.At = r.Deadline
			later.ID, later.At, later.Late = 1000, r.Completed, true
			e.AuditLog = append(e.AuditLog, later)
		}},
		{"an answer delayed by a flood while the machine stalls", func(e *Evidence) {
			w := &world{Evidence: *e, n: len(e.Commands), line: 1000}
			at := noon.Add(40 * time.Minute)
			w.add(order{vehicle: 1, action: telematics.AttentionSignal, at: at, end: telematics.Succeeded, lost: true})
			w.Floods = append(w.Floods, Flood{Interval: Interval{From: at.Add(-ms(1)), To: at.Add(time.Second)}, Limited: 7})
			w.Delayed = map[int][]Interval{0: {{From: at.Add(ms(10)), To: at.Add(ms(500))}}}
			*e = w.Evidence
		}},
		{"one of fifty answers that the MQTT broker drops in a flood", func(e *Evidence) {
			w := &world{Evidence: *e, n: len(e.Commands), line: 1000}
			at := noon.Add(40 * time.Minute)
			for n := range 50 {
				o := order{vehicle: 1, action: telematics.AttentionSignal, at: at.Add(ms(300 * n)), end: telematics.Succeeded}
				o.lost = n == 49
				w.add(o)
			}
			w.Floods = append(w.Floods, Flood{Interval: Interval{From: at.Add(-ms(1)), To: at.Add(time.Minute)}, Limited: 7})
			*e = w.Evidence
		}},
		{"a request that waited for the lane", func(e *Evidence) {
			e.row(doneTwo).Requested = e.row(doneOne).Requested.Add(100 * time.Millisecond)
			e.call(doneTwo).Start = e.row(doneTwo).Requested
		}},
		{"a key for many vehicles", func(e *Evidence) {
			for _, n := range []int{doneOne, lateOne, cutOne} {
				e.call(n).Key = "key-many"
			}
			e.call(doneOne).Vehicle, e.call(lateOne).Vehicle = 1, 2
			e.row(lateOne).Vehicle = 2
			for _, at := range e.linesOf(lateOne) {
				e.AuditLog[at].Vehicle = 2
			}
			e.row(lateOne).Seq, e.event(lateOne, simulator.CommandStarted).Seq = 6, 6
		}},
		{"a sampled entry in another time zone", func(e *Evidence) {
			e.Sampled[0].At = e.Sampled[0].At.In(time.FixedZone("", 3600))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := healthy()
			c.commit(&e)
			for _, v := range Check(e).Violations {
				t.Errorf("%s: %s\n%s", v.Law, v.What, v.Timeline)
			}
		})
	}
}

func TestTimeline_MergesAllSourcesInOrder(t *testing.T) {
	e := healthy()
	start := e.event(cutOne, simulator.CommandStarted)
	start.Clock = start.True.Add(-time.Minute)
	again := *start
	again.True = again.True.Add(2 * time.Second)
	e.Flights = append(e.Flights, again)
	e.Pending = append(e.Pending, RedisKey{Key: "motorpool:{unit-3}:pending:" + id(cutOne).String(), TTL: time.Minute})
	timeline := Check(e).Violations[0].Timeline
	from := 0
	for _, line := range []string{
		"command " + id(cutOne).String() + ": lock, seq 8 in access, vehicle 3, unit unit-3",
		"0 ms is 12:07:00.000",
		"-3 ms  caller              lock of vehicle 3, instance 1, call request-8, key key-1",
		"+0 ms  postgres  00000008  requested, by call request-8",
		"+22 ms  mqtt      00000008  on the topic of unit unit-3, exp 12:07:10.000",
		"+50 ms  car       00000008  unit-3 started; the car's clock says 12:06:00.050, exp 12:07:10.000",
		"+150 ms  car       00000008  unit-3 ended succeeded",
		"+200 ms  postgres  00000008  succeeded after 1 attempts",
		"+200 ms  log       00000008  entry 9: command.lock executed, call request-8",
		"+205 ms  caller              call request-8 got no answer",
		"+210 ms  caller    00000008  call again answered 200 executed, command 00000008, replayed",
		"+2050 ms  car       00000008  unit-3 started",
		"at the end  redis     00000008  motorpool:{unit-3}:pending:" + id(cutOne).String() + " expires in 1m0s",
	} {
		at := strings.Index(timeline[from:], line)
		if at < 0 {
			t.Fatalf("the timeline lacks this line, or has it out of order: %s\n%s", line, timeline)
		}
		from += at
	}
	if n := strings.Count(timeline, "entry 9:"); n != 1 {
		t.Errorf("the entry is shown %d times:\n%s", n, timeline)
	}
}

func TestReport_ShowsTenViolationsOfALawAndCountsTheRest(t *testing.T) {
	e := healthy()
	for n := range 13 {
		e.Pending = append(e.Pending, RedisKey{Key: fmt.Sprintf("key-%d", n), TTL: -1})
	}
	var out bytes.Buffer
	Check(e).Write(&out, "")
	text := out.String()
	if n := strings.Count(text, "VIOLATION"); n != verdict.ShownPerLaw {
		t.Errorf("the report shows %d violations, want the limit", n)
	}
	for _, want := range []string{
		"law  checked  violations", "everything in Redis expires       29          13",
		`"everything in Redis expires": 3 more violations`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

// A run has sixty thousand commands: a law that compares each command with every other would exceed
// the time limit of go test.
func TestCheck_JudgesAWholeRun(t *testing.T) {
	w := &world{}
	const vehicles, commands = 300, 15_000
	for n := range commands {
		w.add(order{
			vehicle: telematics.VehicleID(n%vehicles + 1), action: telematics.Lock, key: fmt.Sprint("key-", n),
			at: noon.Add(time.Duration(n/vehicles) * time.Minute), end: telematics.Succeeded, lost: n%10 == 0,
		})
	}
	for i := range w.Flights { // every message was received many times
		if e := w.Flights[i]; e.Kind == simulator.CommandReceived {
			for range 12 {
				w.Flights = append(w.Flights, e)
			}
		}
	}
	w.Up = []Interval{{From: noon}}
	w.Sampled = w.AuditLog
	r := Check(w.Evidence)
	for _, v := range r.Violations[:min(3, len(r.Violations))] {
		t.Errorf("%s: %s\n%s", v.Law, v.What, v.Timeline)
	}
}
