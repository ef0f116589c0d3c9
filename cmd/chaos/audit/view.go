package audit

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"motorpool/simulator"
	"motorpool/telematics"
)

// view is the evidence, indexed. Everything of one command is in the order of true time.
type view struct {
	Evidence
	rows       map[telematics.CommandID]*Row
	made       map[string][]*Row // by request id
	called     map[string][]*Call
	naming     map[telematics.CommandID][]*Call // that were answered with the command
	lines      map[telematics.CommandID][]*Line // by id
	noted      map[string][]*Line               // by request id
	flights    map[telematics.CommandID][]*simulator.Event
	air        map[telematics.CommandID][]*Message
	left       map[telematics.CommandID][]*Entry
	executions []execution
	ahead      map[telematics.CommandID]time.Duration // by which a wrong clock dated a command
	written    []Line                                 // the history with the times that it has, not corrected
}

func newView(e Evidence) *view {
	var ahead map[telematics.CommandID]time.Duration
	written := e.History
	e.Commands, e.History, ahead = e.corrected()
	v := &view{
		Evidence: e, ahead: ahead, written: written,
		rows:    make(map[telematics.CommandID]*Row, len(e.Commands)),
		made:    gather(e.Commands, func(r *Row) string { return r.RequestID }),
		called:  gather(e.Calls, func(c *Call) string { return c.RequestID }),
		naming:  gather(e.Calls, func(c *Call) telematics.CommandID { return c.Command }),
		lines:   gather(e.History, func(l *Line) telematics.CommandID { return l.Command }),
		noted:   gather(e.History, func(l *Line) string { return l.RequestID }),
		flights: gather(e.Flights, func(f *simulator.Event) telematics.CommandID { return f.Command }),
		air:     gather(e.Taken, func(m *Message) telematics.CommandID { return m.Command }),
		left:    gather(e.Pending, commandOf),
	}
	for i := range e.Commands {
		v.rows[e.Commands[i].ID] = &e.Commands[i]
	}
	for _, lines := range v.lines {
		slices.SortStableFunc(lines, func(a, b *Line) int { return cmp.Compare(a.ID, b.ID) })
	}
	for _, events := range v.flights {
		slices.SortStableFunc(events, func(a, b *simulator.Event) int { return a.True.Compare(b.True) })
	}
	for _, messages := range v.air {
		slices.SortStableFunc(messages, func(a, b *Message) int { return a.At.Compare(b.At) })
	}
	v.executions = executions(v.flights)
	v.Up = joined(e.Up)
	v.Reach = make(map[int][]Interval, len(e.Reach))
	for instance, stretches := range e.Reach {
		v.Reach[instance] = joined(stretches)
	}
	v.Delayed = make(map[int][]Interval, len(e.Delayed))
	for instance, stretches := range e.Delayed {
		v.Delayed[instance] = joined(stretches)
	}
	return v
}

// gather collects the elements that share a key.
func gather[T any, K comparable](all []T, key func(*T) K) map[K][]*T {
	sets := make(map[K][]*T)
	for i := range all {
		k := key(&all[i])
		sets[k] = append(sets[k], &all[i])
	}
	return sets
}

// commandOf reads the command off the end of a key of Redis; zero where there is none.
func commandOf(e *Entry) telematics.CommandID {
	id, _ := uuid.Parse(e.Key[strings.LastIndexByte(e.Key, ':')+1:])
	return id
}

// own returns the command that an answer says is its own. A refusal because of another command names that one.
func (c *Call) own() telematics.CommandID {
	if c.Code == telematics.CommandInProgress || c.Code == idempotencyInProgress {
		return telematics.NoCommand
	}
	return c.Command
}

// idempotencyInProgress says that the first call with the same key is still open.
const idempotencyInProgress telematics.Code = "idempotency_in_progress"

// madeBy returns the commands that a call made: of its request id and vehicle, ordered while it lasted.
func (v *view) madeBy(c *Call) []*Row {
	var rows []*Row
	for _, r := range v.made[c.RequestID] {
		if r.Vehicle == c.Vehicle && !r.Requested.Before(c.Start.Add(-clockReading)) &&
			(c.Status == 0 || !r.Requested.After(c.End.Add(clockReading))) {
			rows = append(rows, r)
		}
	}
	return rows
}

// started returns the first start of a command, or nil.
func (v *view) started(id telematics.CommandID) *simulator.Event {
	return v.find(id, func(e *simulator.Event) bool { return e.Kind == simulator.CommandStarted })
}

// did returns the event in which a command ended well, or nil.
func (v *view) did(id telematics.CommandID) *simulator.Event {
	return v.find(id, func(e *simulator.Event) bool {
		return e.Kind == simulator.CommandEnded && e.Status == telematics.Succeeded
	})
}

func (v *view) find(id telematics.CommandID, is func(*simulator.Event) bool) *simulator.Event {
	if i := slices.IndexFunc(v.flights[id], is); i >= 0 {
		return v.flights[id][i]
	}
	return nil
}

// settlements returns the lines of the history that tell how a command was settled. Lines of other calls may name it
// too, and those of a repetition, which has no outcome of its own.
func (v *view) settlements(r *Row) []*Line {
	var own []*Line
	for _, l := range v.lines[r.ID] {
		if l.RequestID == r.RequestID && l.Outcome != telematics.Undecided {
			own = append(own, l)
		}
	}
	return own
}
