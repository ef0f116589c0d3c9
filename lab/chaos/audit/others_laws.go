package audit

import (
	"cmp"
	"slices"
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

// othersLaws are the laws of units that do not speak protocol v1. Each demands what the dialect
// promises for the installation and action.
var othersLaws = []struct {
	name  string
	check func(*checker, *foreign)
}{
	{"told succeeded: it happened", succeededHappened},
	{"told not executed: it did not", notExecutedDidNot},
	{"told contradicted: it was otherwise", contradictedWasOtherwise},
	{"no answer to another command", answersAreOwn},
	{"late at most as promised", lateAsPromised},
	{"once where promised", onceWherePromised},
	{"one order, one command", oneOrderOneCommand},
	{"one command at a time", oneCommandAtATime},
	{"nothing forgotten", nothingForgotten},
	{"what an agency denies is not sent", deniedIsNotSent},
	{"no command does harm", noHarm},
	{"final in time", func(chk *checker, _ *foreign) { finalInTime(chk) }},
	{"a halt holds", func(chk *checker, _ *foreign) { haltHolds(chk) }},
}

// lawOf returns the name of a law in the report.
func lawOf(p telematics.Protocol, law string) string { return string(p) + ": " + law }

// succeededHappened checks commands that were answered or stored as succeeded. If a report confirms
// the action, the vehicle must have been in that state at some time between the publication and the
// settlement of the command, whatever the unit answered. If the promise is that the unit accepted
// the command, it must have answered so.
func succeededHappened(chk *checker, f *foreign) {
	for i := range chk.Calls {
		if c := &chk.Calls[i]; c.Outcome == telematics.Executed {
			row := chk.rows[c.Command]
			chk.must(row != nil && row.Vehicle == c.Vehicle && row.Action == c.Action && row.State == telematics.Succeeded, called(c),
				"the answer is executed, but the record does not say that %s succeeded at vehicle %d", c.Action, c.Vehicle)
		}
	}
	for i := range chk.Commands {
		r := &chk.Commands[i]
		if r.State != telematics.Succeeded {
			continue
		}
		confirmation := f.units[r.Unit].confirmation(r.Action)
		for field, want := range confirmation {
			locked, ok := want.(bool)
			chk.must(ok && field == telematics.IsLocked, command(r.ID), "the flight recorder does not know %s", field)
			was := f.wasLocked(r.Unit, locked, r.since().Add(-clockReading), r.latest.Add(clockReading))
			chk.must(
				was, command(r.ID), "told succeeded, but the vehicle was never so between %s and %s", clock(r.since()),
				clock(r.latest),
			)
		}
		if len(confirmation) == 0 {
			said := f.answered(r.ID)
			chk.must(
				f.excused(r, said != nil && !said.True.After(r.latest.Add(clockTolerance))), command(r.ID),
				"told succeeded, but unit %s did not answer so", r.Unit,
			)
		}
	}
}

// notExecutedDidNot checks that commands that were refused, have expired, or were rejected or
// failed by the unit never started, before or after.
func notExecutedDidNot(chk *checker, f *foreign) {
	for i := range chk.Calls {
		if c := &chk.Calls[i]; c.Outcome == telematics.NotExecuted {
			chk.notExecuted(c)
		}
	}
	for i := range chk.Commands {
		r := &chk.Commands[i]
		switch r.State {
		case telematics.Expired, telematics.Rejected, telematics.Failed:
			chk.must(f.excused(r, chk.started(r.ID) == nil), command(r.ID), "the record says %s, but the vehicle started", r.State)
		}
	}
}

// contradictedWasOtherwise checks that a command that a report has contradicted is unknown, and
// that the vehicle was in another state at some time after it must have been executed.
func contradictedWasOtherwise(chk *checker, f *foreign) {
	chk.must(true, subject{}, "") // the record itself
	for i := range chk.Commands {
		r := &chk.Commands[i]
		if !r.Contradicted {
			continue
		}
		locked, ok := f.units[r.Unit].confirmation(r.Action)[telematics.IsLocked].(bool)
		done := telematics.Command{SentAt: r.SentAt, ReceivedAt: r.ReceivedAt}
		was := f.wasLocked(r.Unit, !locked, done.DoneBy().Add(-clockReading), f.end.Add(time.Hour))
		chk.must(
			ok && was && r.State == telematics.Unknown, command(r.ID),
			"contradicted, but %s, and the vehicle was never otherwise from %s on", r.State, clock(done.DoneBy()),
		)
	}
}

// answersAreOwn checks that each answer in Postgres was given before, by that unit to that command.
// Exempt are commands during which an intruder reached the unit, and, of units whose answers name
// no command, those during which an answer may have been delivered twice.
func answersAreOwn(chk *checker, f *foreign) {
	for i := range chk.Commands {
		r := &chk.Commands[i]
		at, said := f.answeredAt(r), f.answered(r.ID)
		if at.IsZero() {
			continue
		}
		chk.must(
			f.excused(r, said != nil && !said.True.After(chk.latest(at).Add(clockTolerance))), command(r.ID),
			"on record as answered at %s, but unit %s had not answered it", clock(at), r.Unit,
		)
	}
}

// lateAsPromised checks when commands start: if the unit checks the expiry, as in protocol v1;
// otherwise at most telematics.WorstLateness after publication. Replays by an intruder are exempt.
func lateAsPromised(chk *checker, f *foreign) {
	for _, h := range f.copies {
		r := chk.rows[h.command]
		if r == nil {
			continue
		}
		for _, e := range h.started {
			limit, since := telematics.WorstLateness+clockTolerance, r.since()
			if f.units[r.Unit].promises(r.Action).Expiring {
				limit, since = allowedClockError, (&telematics.Command{Deadline: r.Deadline}).Expires()
			}
			late := e.True.Sub(since)
			chk.must(
				late <= limit || f.intruded(r.Unit, since, e.True), command(r.ID), "%s started %v late, of at most %v",
				r.Action, late.Round(time.Millisecond), limit,
			)
		}
	}
}

// onceWherePromised checks that a command starts once if the unit recognises repetitions.
func onceWherePromised(chk *checker, f *foreign) {
	for id, copies := range f.of {
		r, started := chk.rows[id], 0
		for _, h := range copies {
			if len(h.started) > 0 { // one command may move several parts
				started++
			}
		}
		chk.must(started <= 1 || !f.units[r.Unit].promises(r.Action).Deduplicated, command(id), "%s started %d times", r.Action, started)
	}
}

// oneCommandAtATime checks that a unit whose answers name no command gets the next one only after
// the answer to the last, or when none can come any more. Exempt is what follows a command that was
// dated hours ahead, for which no unit waits that long.
func oneCommandAtATime(chk *checker, f *foreign) {
	for unit, rows := range groupBy(chk.Commands, func(r *Row) telematics.Unit { return r.Unit }) {
		slices.SortFunc(rows, func(a, b *Row) int { return cmp.Compare(a.Seq, b.Seq) })
		var before *Row
		for _, r := range rows {
			if r.SentAt.IsZero() || f.units[unit].promises(r.Action).Correlated {
				continue
			}
			if before != nil {
				free := before.Deadline.Add(telematics.AnswerWithin)
				if at := f.answeredAt(before); !at.IsZero() {
					free = at
				}
				chk.must(
					f.excused(before, !r.SentAt.Before(free.Add(-clockTolerance))) || chk.ahead[before.ID] > time.Hour,
					command(r.ID, before.ID),
					"sent %v before an answer to the last command was ruled out",
					free.Sub(r.SentAt).Round(time.Millisecond),
				)
			}
			before = r
		}
	}
}

// answeredAt returns when a command was answered, according to its row; zero: it was not.
func (f *foreign) answeredAt(r *Row) time.Time {
	byAnswer := r.State == telematics.Failed || r.State == telematics.Rejected ||
		r.State == telematics.Succeeded && len(f.units[r.Unit].confirmation(r.Action)) == 0
	if r.ReceivedAt.IsZero() && byAnswer {
		return r.Completed
	}
	return r.ReceivedAt
}

// nothingForgotten checks that each published message and each start has a row, or is an
// intruder's, and that no message is retained.
func nothingForgotten(chk *checker, f *foreign) {
	for i := range chk.Published {
		m := &chk.Published[i]
		chk.must(!m.Retained, command(m.Command), "a message to unit %s is retained", m.Unit)
		chk.must(
			chk.rows[m.Command] != nil || f.intruded(m.Unit, m.At, m.At), command(m.Command),
			"a message to unit %s has no row: %s", m.Unit, m.Payload,
		)
	}
	for _, h := range f.copies {
		if len(h.started) > 0 {
			chk.must(h.command != telematics.NoCommand || f.intruded(h.unit, h.heard, h.heard), command(h.command),
				"unit %s started %s at %s, which is not on record", h.unit, h.started[0].Action, clock(h.heard))
		}
	}
}

// deniedIsNotSent checks that a request to open a vehicle whose unit checks no expiry never becomes
// a command, unless its agency allows that.
func deniedIsNotSent(chk *checker, f *foreign) {
	denied := func(of Installed, a telematics.Action) bool {
		return a.Opens() && !of.BestEffortUnlock && !of.promises(a).Expiring
	}
	for i := range chk.Commands {
		r := &chk.Commands[i]
		chk.must(
			!denied(f.units[r.Unit], r.Action), command(r.ID),
			"%s became a command, though the agency of vehicle %d denies it", r.Action, r.Vehicle,
		)
	}
	for i := range chk.Calls {
		c := &chk.Calls[i]
		is := denied(chk.Others[c.Vehicle], c.Action)
		chk.must(
			!is || c.Command == telematics.NoCommand || c.Code == idempotencyInProgress || c.Code == telematics.CommandInProgress,
			called(c), "%s was accepted, though the agency of vehicle %d denies it", c.Action, c.Vehicle,
		)
		chk.must(
			is || c.Code != telematics.BestEffortIsDenied, called(c),
			"%s was denied, though it may be sent to vehicle %d", c.Action, c.Vehicle,
		)
	}
	for _, h := range f.copies {
		for _, e := range h.started {
			chk.must(
				!denied(f.units[h.unit], e.Action) || f.intruded(h.unit, h.heard, e.True), command(h.command),
				"unit %s started %s, though its agency denies it", h.unit, e.Action,
			)
		}
	}
}

// noHarm checks that no command had a forbidden effect, such as limiting the speed of a car.
func noHarm(chk *checker, f *foreign) {
	chk.must(true, subject{}, "") // the flight recorder itself
	for i := range chk.Flights {
		if e := &chk.Flights[i]; e.Kind == simulator.Harmed {
			chk.must(f.intruded(e.Unit, e.True, e.True), command(e.Command), "unit %s: %s", e.Unit, e.Detail)
		}
	}
}
