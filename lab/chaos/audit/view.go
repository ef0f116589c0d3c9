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

// view is the evidence, indexed. The events of each command are in the order of true time.
type view struct {
	Evidence
	rows       map[telematics.CommandID]*Row
	made       map[string][]*Row // by request id
	called     map[string][]*Call
	namedBy    map[telematics.CommandID][]*Call     // whose answers name the command
	entries    map[telematics.CommandID][]*LogEntry // by id
	logged     map[string][]*LogEntry               // by request id
	flights    map[telematics.CommandID][]*simulator.Event
	messages   map[telematics.CommandID][]*Message
	redisKeys  map[telematics.CommandID][]*RedisKey
	executions []execution
	ahead      map[telematics.CommandID]time.Duration // by which a wrong clock has dated a command
	written    []LogEntry                             // the audit log with uncorrected times
}

func newView(e Evidence) *view {
	var ahead map[telematics.CommandID]time.Duration
	written := e.AuditLog
	e.Commands, e.AuditLog, ahead = e.corrected()
	v := &view{
		Evidence: e, ahead: ahead, written: written,
		rows:      make(map[telematics.CommandID]*Row, len(e.Commands)),
		made:      groupBy(e.Commands, func(r *Row) string { return r.RequestID }),
		called:    groupBy(e.Calls, func(c *Call) string { return c.RequestID }),
		namedBy:   groupBy(e.Calls, func(c *Call) telematics.CommandID { return c.Command }),
		entries:   groupBy(e.AuditLog, func(l *LogEntry) telematics.CommandID { return l.Command }),
		logged:    groupBy(e.AuditLog, func(l *LogEntry) string { return l.RequestID }),
		flights:   groupBy(e.Flights, func(f *simulator.Event) telematics.CommandID { return f.Command }),
		messages:  groupBy(e.Published, func(m *Message) telematics.CommandID { return m.Command }),
		redisKeys: groupBy(e.Pending, commandOf),
	}
	for i := range e.Commands {
		v.rows[e.Commands[i].ID] = &e.Commands[i]
	}
	for _, entries := range v.entries {
		slices.SortStableFunc(entries, func(a, b *LogEntry) int { return cmp.Compare(a.ID, b.ID) })
	}
	for _, events := range v.flights {
		slices.SortStableFunc(events, func(a, b *simulator.Event) int { return a.True.Compare(b.True) })
	}
	for _, messages := range v.messages {
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

// groupBy groups elements by a key.
func groupBy[T any, K comparable](all []T, key func(*T) K) map[K][]*T {
	sets := make(map[K][]*T)
	for i := range all {
		k := key(&all[i])
		sets[k] = append(sets[k], &all[i])
	}
	return sets
}

// commandOf parses the command at the end of a Redis key; zero: none.
func commandOf(e *RedisKey) telematics.CommandID {
	id, _ := uuid.Parse(e.Key[strings.LastIndexByte(e.Key, ':')+1:])
	return id
}

// ownCommand returns the command that the call created. A refusal because of another command names
// that one.
func (c *Call) ownCommand() telematics.CommandID {
	if c.Code == telematics.CommandInProgress || c.Code == idempotencyInProgress {
		return telematics.NoCommand
	}
	return c.Command
}

// idempotencyInProgress means that the first call with the same key is not finished.
const idempotencyInProgress telematics.Code = "idempotency_in_progress"

// madeBy returns the commands of a call: with its request id and vehicle, requested during the
// call.
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

// succeeded returns the event in which a command ended successfully, or nil.
func (v *view) succeeded(id telematics.CommandID) *simulator.Event {
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

// settlements returns the audit log entries of how a command was settled. Entries of other calls
// may name it, too, and those of a repetition, which has no outcome.
func (v *view) settlements(r *Row) []*LogEntry {
	var ownCommand []*LogEntry
	for _, l := range v.entries[r.ID] {
		if l.RequestID == r.RequestID && l.Outcome != telematics.Undecided {
			ownCommand = append(ownCommand, l)
		}
	}
	return ownCommand
}
