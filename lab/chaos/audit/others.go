package audit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
	"motorpool/telematics/dialects"
)

// Installed is a vehicle whose unit does not speak protocol v1. The laws demand of it what the
// dialect promises.
type Installed struct {
	Unit             telematics.Unit
	Protocol         telematics.Protocol
	Installation     telematics.Installation
	BestEffortUnlock bool // of its agency
}

// promises returns what the dialect promises for a command to the vehicle's unit.
func (i Installed) promises(a telematics.Action) telematics.Promises {
	return dialects.Spoken.Assurance(i.Protocol, i.Installation, a)
}

// confirmation returns what the vehicle must report before a command counts as executed; empty:
// nothing.
func (i Installed) confirmation(a telematics.Action) map[telematics.Field]any {
	dialect, ok := dialects.Spoken.Find(i.Protocol)
	if !ok {
		return nil
	}
	return dialect.Confirmation(i.Installation, a)
}

// Intrusion is a message to a unit that was published by an intruder with the service's account.
type Intrusion struct {
	Unit telematics.Unit
	At   time.Time
}

// Signal is the parameter of every attention signal.
var Signal = telematics.Attention{Signal: telematics.Lights, Duration: 200 * time.Millisecond}

// protocols returns the protocols of the evidence, without v1.
func (e Evidence) protocols() []telematics.Protocol {
	spoken := map[telematics.Protocol]bool{}
	for _, i := range e.Others {
		spoken[i.Protocol] = true
	}
	return slices.Sorted(maps.Keys(spoken))
}

// Of returns the evidence of the units of one protocol.
func (e Evidence) Of(p telematics.Protocol) Evidence {
	units := map[telematics.Unit]telematics.Protocol{}
	for _, i := range e.Others {
		units[i.Unit] = i.Protocol
	}
	is := func(u telematics.Unit) bool { return units[u].Means(p) }
	e.Calls = only(e.Calls, func(c *Call) bool { return e.Others[c.Vehicle].Protocol.Means(p) })
	e.Commands = only(e.Commands, func(r *Row) bool { return is(r.Unit) })
	e.Flights = only(e.Flights, func(f *simulator.Event) bool { return is(f.Unit) })
	e.Published = only(e.Published, func(m *Message) bool { return is(m.Unit) })
	return e
}

func only[T any](all []T, is func(*T) bool) []T {
	var some []T
	for i := range all {
		if is(&all[i]) {
			some = append(some, all[i])
		}
	}
	return some
}

// foreign is the view of the units of a protocol other than v1.
type foreign struct {
	*view
	units      map[telematics.Unit]Installed
	copies     []*hearing
	of         map[telematics.CommandID][]*hearing
	turns      map[telematics.Unit][]*simulator.Event // in the order of true time
	intrusions map[telematics.Unit][]time.Time
	redelivery []Interval
	end        time.Time // of what the flight recorder has
}

// hearing is one copy of a command that a unit has received, and the events that it caused.
type hearing struct {
	unit              telematics.Unit
	command           telematics.CommandID // on record; zero: none
	heard             time.Time
	started, answered []*simulator.Event
}

func newForeign(e Evidence, p telematics.Protocol) *foreign {
	e = e.Of(p)
	f := &foreign{
		units: map[telematics.Unit]Installed{}, of: map[telematics.CommandID][]*hearing{},
		turns: map[telematics.Unit][]*simulator.Event{}, intrusions: map[telematics.Unit][]time.Time{},
		redelivery: joined(e.Redelivered),
	}
	for _, i := range e.Others {
		if i.Protocol.Means(p) {
			f.units[i.Unit] = i
		}
	}
	for _, i := range e.Intrusions {
		f.intrusions[i.Unit] = append(f.intrusions[i.Unit], i.At)
	}
	f.attribute(&e)
	f.view = newView(e)
	for i := range f.Flights {
		if event := &f.Flights[i]; event.Kind == simulator.Turned {
			f.turns[event.Unit] = append(f.turns[event.Unit], event)
		}
		if event := &f.Flights[i]; event.True.After(f.end) {
			f.end = event.True
		}
	}
	for _, turns := range f.turns {
		slices.SortStableFunc(turns, func(a, b *simulator.Event) int { return a.True.Compare(b.True) })
	}
	f.collect()
	return f
}

// collect gathers the events of each copy.
func (f *foreign) collect() {
	type unitCopy struct {
		unit telematics.Unit
		n    int64
	}
	known := map[unitCopy]*hearing{}
	for i := range f.Flights {
		e := &f.Flights[i]
		if e.Kind == simulator.Turned || e.Seq == 0 {
			continue
		}
		h := known[unitCopy{e.Unit, e.Seq}]
		if h == nil {
			h = &hearing{unit: e.Unit, command: e.Command, heard: e.True}
			known[unitCopy{e.Unit, e.Seq}] = h
			f.copies = append(f.copies, h)
		}
		switch e.Kind {
		case simulator.CommandStarted:
			h.started = append(h.started, e)
		case simulator.CommandAnswered:
			h.answered = append(h.answered, e)
		}
	}
	for _, h := range f.copies {
		if f.rows[h.command] == nil {
			h.command = telematics.NoCommand
			continue
		}
		f.of[h.command] = append(f.of[h.command], h)
	}
}

// attributable is how long after the publication of a command a unit may receive its message.
const attributable = telematics.AnswerWithin + time.Minute

// attribute assigns a command to each message that names none, and to the events that it caused:
// the last one with the same payload that was published before. A unit whose messages name no
// command has one command at a time. What an intruder may have caused is not that of a command of
// which neither its row nor the MQTT broker has a message.
func (f *foreign) attribute(e *Evidence) {
	rows, _, _ := e.corrected()
	byUnit := groupBy(rows, func(r *Row) telematics.Unit { return r.Unit })
	payloads := map[telematics.CommandID]string{}
	for i := range rows {
		r, of := &rows[i], f.units[rows[i].Unit]
		if of.promises(r.Action).Signed {
			continue // its message names it
		}
		c := telematics.Command{
			ID: r.ID, Unit: r.Unit, Protocol: of.Protocol, Installation: of.Installation, Action: r.Action,
			Requested: r.Requested, Deadline: r.Deadline,
		}
		if r.Action == telematics.AttentionSignal {
			c.Attention = &Signal
		}
		if out, err := dialects.Spoken.Encode(&c, nil); err == nil {
			payloads[r.ID] = string(out.Payload)
		}
	}
	seen := map[telematics.CommandID]bool{} // at the MQTT broker
	find := func(unit telematics.Unit, payload string, at time.Time, intruded bool) telematics.CommandID {
		var found, early *Row // early: the clock of its record is inaccurate, if it is the one
		for _, r := range byUnit[unit] {
			left := r.left()
			switch {
			case intruded && r.SentAt.IsZero() && !seen[r.ID]:
			case payloads[r.ID] != payload || left.IsZero() || left.After(at.Add(clockTolerance)) || at.Sub(left) > attributable:
			case left.After(at):
				if early == nil || left.Before(early.left()) {
					early = r
				}
			case found == nil || left.After(found.left()):
				found = r
			}
		}
		if found = cmp.Or(found, early); found == nil {
			return telematics.NoCommand
		}
		return found.ID
	}
	e.Published = slices.Clone(e.Published)
	for i := range e.Published {
		if m := &e.Published[i]; m.Command == telematics.NoCommand {
			m.Command = find(m.Unit, m.Payload, m.At, false)
			seen[m.Command] = true
		}
	}
	e.Flights = slices.Clone(e.Flights)
	commands := map[telematics.Unit]map[int64]telematics.CommandID{}
	for i := range e.Flights {
		event := &e.Flights[i]
		if event.Seq == 0 || event.Command != telematics.NoCommand {
			continue
		}
		known := commands[event.Unit]
		if known == nil {
			known = map[int64]telematics.CommandID{}
			commands[event.Unit] = known
		}
		if event.Kind == simulator.CommandReceived {
			known[event.Seq] = find(event.Unit, sent(event.Detail), event.True, f.intruded(event.Unit, event.True, event.True))
		}
		event.Command = known[event.Seq]
	}
}

// sent returns the message with a line that a unit has received.
func sent(line string) string {
	text, _ := json.Marshal(map[string]string{"CMD": line}) // a string cannot fail
	return string(text)
}

// left returns when a command was published, as far as its row has that; zero: it was not.
func (r *Row) left() time.Time {
	switch {
	case !r.SentAt.IsZero():
		return r.SentAt
	case r.State == telematics.Expired:
		return time.Time{}
	}
	return r.Requested
}

// intrusionCounts is how long an intruder's message may be in transit, and be answered.
const intrusionCounts = 2 * time.Minute

// intruded reports whether a message of an intruder could reach a unit within an interval: the unit
// executes and answers it like one of the service.
func (f *foreign) intruded(u telematics.Unit, from, to time.Time) bool {
	return slices.ContainsFunc(f.intrusions[u], func(at time.Time) bool {
		return !at.After(to.Add(clockTolerance)) && !at.Before(from.Add(-intrusionCounts))
	})
}

// answered returns the first answer of a unit to a command's own message; nil: it gave none.
func (f *foreign) answered(id telematics.CommandID) (first *simulator.Event) {
	for _, h := range f.of[id] {
		for _, e := range h.answered {
			if first == nil || e.True.Before(first.True) {
				first = e
			}
		}
	}
	return first
}

// wasLocked reports whether a vehicle was locked, or was not, at some time within an interval.
func (f *foreign) wasLocked(u telematics.Unit, locked bool, from, to time.Time) bool {
	want, turns := simulator.TurnOf(locked), f.turns[u]
	for i, e := range turns {
		until := to
		if i+1 < len(turns) {
			until = turns[i+1].True
		}
		if e.Detail == want && !e.True.After(to) && !until.Before(from) {
			return true
		}
	}
	return false
}

// Untried returns why the laws about units of other protocols prove nothing, or "".
func Untried(e Evidence) string {
	for _, p := range e.protocols() {
		f := newForeign(e, p)
		starts, confirmed, denied := 0, 0, 0
		for i := range f.Commands {
			if r := &f.Commands[i]; r.State == telematics.Succeeded && len(f.units[r.Unit].confirmation(r.Action)) > 0 {
				confirmed++
			}
		}
		for _, h := range f.copies {
			if len(h.started) > 0 {
				starts++
			}
		}
		for i := range f.Calls {
			if f.Calls[i].Code == telematics.BestEffortIsDenied {
				denied++
			}
		}
		if starts == 0 || confirmed == 0 || denied == 0 {
			return fmt.Sprintf("of %s units %d starts, %d confirmed commands, %d denied", p, starts, confirmed, denied)
		}
	}
	return ""
}

// since returns when a command was published; or when it was requested, if its row has no such time
// or a clock that was ahead has dated that after the settlement.
func (r *Row) since() time.Time {
	left := r.left()
	if left.IsZero() || left.After(r.Completed) {
		return r.Requested
	}
	return left
}

// excused reports whether a law about the answer to a command holds, or the command is exempt from
// it: an intruder reached the unit meanwhile, or the answer may be an earlier one that was
// delivered twice, which names no command.
func (f *foreign) excused(r *Row, holds bool) bool {
	if holds {
		return true
	}
	until := cmp.Or(r.ReceivedAt, r.Completed)
	return f.intruded(r.Unit, r.Requested, until) || !f.units[r.Unit].promises(r.Action).Correlated && f.repeatable(r.Unit, until)
}

// remembered is how old an answer may be when it is delivered again.
const remembered = 2 * time.Minute

// repeatable reports whether a fault may have caused another delivery of a unit's earlier answer.
func (f *foreign) repeatable(u telematics.Unit, at time.Time) bool {
	for _, h := range f.copies {
		for _, e := range h.answered {
			if h.unit != u || e.True.After(at) || at.Sub(e.True) > remembered {
				continue
			}
			if slices.ContainsFunc(f.redelivery, func(i Interval) bool { return !i.From.After(at) && !i.endsBefore(e.True) }) {
				return true
			}
		}
	}
	return false
}
