package broker_test

import (
	"cmp"
	"maps"
	"reflect"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
)

// check compares, once nothing can happen any more, what the cars did, what the record and the
// audit log contain, and what callers got.
func (w *interleaving) check(earlier []telematics.Activity) {
	moved := w.cars.moved()
	w.checkCars(moved)
	w.tracker.check()
	maps.Copy(moved, w.tracker.jobs)
	for id, e := range w.ledger.entries {
		w.checkRecord(id, e, moved[id])
	}
	for _, t := range w.replies {
		w.checkReply(t, moved)
	}
	w.checkAuditLog(earlier)
	w.checkPending()
}

type garage []*motorcar

// moved returns the jobs of all cars by command.
func (g garage) moved() map[telematics.CommandID]*job {
	all := map[telematics.CommandID]*job{}
	for _, m := range g {
		for _, j := range m.jobs {
			if before := all[j.Command]; before != nil {
				before.starts = append(before.starts, j.starts...)
				continue
			}
			all[j.Command] = j
		}
	}
	return all
}

func (j *job) started() bool { return j != nil && len(j.starts) > 0 }

func (w *interleaving) checkCars(moved map[telematics.CommandID]*job) {
	byKey := map[string]telematics.CommandID{}
	for id, j := range moved {
		if len(j.starts) > 1 {
			w.violated("executed at most once", "%v began %d times", id, len(j.starts))
		}
		for _, at := range j.starts {
			if late := at.Add(w.carOf(j.Unit).skew).Sub(j.Expires); late >= 0 {
				w.violated("nothing begins late", "%v began %v after its expiry by its car's clock", id, late)
			}
		}
		e, written := w.ledger.find(id)
		if !written {
			w.violated("written before sent", "a car received %v, which is not in the record", id)
			continue
		}
		if e.Key == nil || !j.started() || w.anomalies[id] {
			continue
		}
		if other, twice := byKey[e.Key.Key]; twice {
			w.violated("executed at most once under a key", "%v and %v began under %s", other, id, e.Key.Key)
		}
		byKey[e.Key.Key] = id
	}
	for _, m := range w.cars {
		last := map[telematics.Lane]int64{}
		for _, j := range m.jobs {
			if j.started() && j.Seq <= last[j.Lane] {
				w.violated("a lane's order", "car %d began %d after %d", m.id, j.Seq, last[j.Lane])
			}
			if j.started() {
				last[j.Lane] = j.Seq
			}
		}
		for _, j := range m.remembered() { // the last report has these
			if e, ok := w.ledger.find(j.Command); ok && e.State != j.final.State {
				w.violated(
					"a report settles lost answers", "car %d says that %v is %s, the record says %s", m.id, j.Command,
					j.final.State, e.State,
				)
			}
		}
	}
}

func (w *interleaving) checkRecord(id telematics.CommandID, e *entry, j *job) {
	w.tallied("ended as " + string(e.State))
	switch {
	case e.State.IsOpen():
		w.violated("each command is settled", "%v is still %s", id, e.State)
		return
	case e.State == telematics.Succeeded && (j == nil || !j.done),
		e.State == telematics.Failed && (j == nil || j.final == nil || j.final.State != telematics.Failed):
		w.violated("the record is true", "%v is %s, which its car did not report", id, e.State)
	case e.State.Outcome() == telematics.NotExecuted && j.started() && !w.anomalies[id]:
		w.violated("the record is true", "%v is %s, but it began", id, e.State)
	}
	due := e.Deadline
	if e.claimed.After(due) {
		due = e.claimed
	}
	for _, t := range w.troubles {
		if t.from.Before(e.closed) && t.to.After(due) {
			due = t.to
		}
	}
	if late := e.closed.Sub(due); late > 5*time.Second {
		w.violated("settled in time", "%v was settled %v after its deadline, or the last trouble after it", id, late)
	}
}

func (w *interleaving) checkReply(t reply, moved map[telematics.CommandID]*job) {
	// Each call of a store may take 3 s.
	limit := max(t.order.Budget, 12*time.Second) + 7*time.Second
	if !during(w.troubles, t) && !during(w.others, t) {
		limit = t.order.Budget + 5*time.Second
	}
	if t.took > limit {
		w.violated("callers are answered", "%v was answered after %v, its budget is %v", t.order.RequestID, t.took, t.order.Budget)
	}
	if t.started && t.err == nil {
		return // the reply does not contain a result
	}
	outcome := telematics.Executed
	if t.err != nil {
		outcome = t.err.Outcome
	}
	w.tallied("replied " + cmp.Or(string(outcome), "to repeat it"))
	c := commandOf(t.receipt).ID
	if c != telematics.NoCommand {
		w.compare(t, outcome, c, moved[c])
	}
	if outcome == telematics.NotExecuted { // this holds for each command of the request
		for id, e := range w.ledger.entries {
			if e.RequestID == t.order.RequestID {
				w.compare(t, outcome, id, moved[id])
			}
		}
	}
}

// compare compares the reply to a caller with the record and the car.
func (w *interleaving) compare(t reply, outcome telematics.Outcome, id telematics.CommandID, j *job) {
	if w.anomalies[id] {
		return
	}
	e, _ := w.ledger.find(id)
	if outcome == telematics.Executed && (j == nil || !j.done) || outcome == telematics.NotExecuted && j.started() {
		w.violated("replies are true", "the reply to %v says that %v is %q, its car: %+v", t.order.RequestID, id, outcome, j)
	}
	record := e.State.Outcome()
	// An instance that replied first may have known less than the one that settled later.
	weaker := outcome == telematics.NotExecuted && record == telematics.MayHave && len(w.instances) > 1
	if outcome != telematics.MayHave && outcome != telematics.Undecided && record != outcome && !weaker {
		w.violated("replies stay true", "the reply to %v says that %v is %q, the record says %s", t.order.RequestID, id, outcome, e.State)
	}
}

// during reports whether a call overlaps one of the intervals.
func during(intervals []interval, t reply) bool {
	for _, i := range intervals {
		if i.from.Before(t.at.Add(t.took)) && i.to.After(t.at) {
			return true
		}
	}
	return false
}

func (w *interleaving) checkAuditLog(earlier []telematics.Activity) {
	lines := w.memory.Entries()
	for i, line := range earlier {
		if i >= len(lines) || !reflect.DeepEqual(lines[i], line) {
			w.violated("the audit log is append-only", "entry %d has changed", i+1)
			break
		}
	}
	settlements, rest := map[telematics.CommandID]int{}, map[uuid.UUID]int{}
	for _, line := range lines {
		e := w.ledger.entries[line.Command]
		if e != nil && e.RequestID == line.RequestID && line.Code != telematics.IdempotencyReplayed {
			settlements[line.Command]++
		} else {
			rest[line.RequestID]++
		}
	}
	for id, e := range w.ledger.entries {
		if settlements[id] != e.settlements || e.settlements > 2 && !w.anomalies[id] {
			w.violated(
				"an entry for each settlement", "%v was settled %d times, the audit log has %d entries", id,
				e.settlements, settlements[id],
			)
		}
	}
	for _, t := range w.replies {
		want := 0
		if t.receipt.Replayed || t.receipt.Command == nil {
			want = 1 // refused, or answered from an earlier request
		}
		got := rest[t.order.RequestID]
		// Then there may be more, or one may still be in the outbox.
		faulty := w.excused[t.order.RequestID]
		if t.by.link.dead.Load() || faulty && (t.by.early || got > want) {
			continue
		}
		if got != want {
			w.violated("each order leaves its entry", "%v has %d separate entries, want %d", t.order.RequestID, got, want)
		}
	}
}

func (w *interleaving) checkPending() {
	for _, p := range w.memory.Pending.InFlight() {
		if w.excused[p.Command] || w.instanceOf(p.Instance).link.dead.Load() {
			continue // the entry expires
		}
		w.violated("nothing is left pending", "%v, at %s", p.Command, p.Instance)
	}
}

func (w *interleaving) instanceOf(name string) *instance {
	return w.anyInstance(func(i *instance) bool { return i.name == name })
}

func (w *interleaving) tallied(what string) { w.tally[what]++ }
