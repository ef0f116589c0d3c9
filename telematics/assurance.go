package telematics

import "time"

// WorstLateness is how long after its publication a command can still reach a unit that checks no
// expiry: the MQTT broker notices a dead connection after 1.5 x keep-alive, of which at most 60 s
// are allowed [TOP-2].
const WorstLateness = 90 * time.Second

// AnswerWithin is how long after the deadline of a command its answer may come where answers name
// no command: WorstLateness, plus the unit's processing time and the difference of the clocks.
const AnswerWithin = WorstLateness + 10*time.Second

// RepeatedWithin is how long after an answer a duplicate of it can arrive and be taken for the
// answer to a newer command: the unit repeats it when it reconnects (QoS 1), and a unit that was
// silent for longer gets no command.
const RepeatedWithin = OnlineFor + WorstLateness

// actuatorTime is how long a vehicle may take until it reports what a command has changed.
const actuatorTime = 20 * time.Second

// AcceptedByUnit is Motorpool's detail of a command with an unknown outcome: the unit answered that
// it accepted the command, and no report has confirmed it.
const AcceptedByUnit = "accepted by the unit"

// SetAssurance fills in what the unit's dialect guarantees for a command, how the command is
// confirmed, and its lane. All commands of a unit whose answers name no command share a lane.
func (ds Dialects) SetAssurance(c *Command, t *Twin) {
	d, ok := ds.Find(t.Protocol)
	if !ok {
		return
	}
	c.Assurance = d.Promises(t.Installation, c.Action)
	if confirmation := d.Confirmation(t.Installation, c.Action); len(confirmation) > 0 {
		c.ByReport, c.ReportedBefore = true, !t.Snapshot.differs(confirmation)
	}
	if all, ok := ds.Promises(t.Vehicle); ok && !all.Correlated {
		c.Lane, c.AnswerBy = UnitLane, c.Deadline.Add(AnswerWithin)
	}
}

// UnknownDetail returns the detail of a command that ends with an unknown outcome: AcceptedByUnit
// if the unit has accepted it (received is not zero) without confirming its execution, else empty.
func (c *Command) UnknownDetail(received time.Time) string {
	if received.IsZero() || c.Assurance.Confirmed && !c.ByReport {
		return ""
	}
	return AcceptedByUnit
}

// DoneBy returns the latest time by which a vehicle that executed the command reports its effect.
func (c *Command) DoneBy() time.Time {
	if !c.ReceivedAt.IsZero() {
		return c.ReceivedAt.Add(actuatorTime)
	}
	return c.SentAt.Add(WorstLateness + actuatorTime)
}

// AwaitsAnswer reports whether an answer that names no command may belong to this one. Until that
// is ruled out, the unit gets no other command. An answer that may come later than any does by
// design is of a command that was accepted by a clock that had leapt ahead; it is not awaited.
func (c *Command) AwaitsAnswer(now time.Time) bool {
	return c.Lane == UnitLane && (c.State.IsOpen() || c.State != Expired && c.ReceivedAt.IsZero() &&
		now.Before(c.AnswerBy) && c.AnswerBy.Sub(now) < latestAnswer)
}

// latestAnswer is how far ahead AnswerBy of a stored command may lie: MaxBudget and AnswerWithin,
// and the difference of clocks. The schema has it, too: see command_awaiting_answer.
const latestAnswer = 5 * time.Minute

// Bits encodes the promises as a bit set, for storage.
func (p Promises) Bits() (bits int16) {
	for i, holds := range [...]bool{p.Signed, p.Expiring, p.Deduplicated, p.Correlated, p.Confirmed} {
		if holds {
			bits |= 1 << i
		}
	}
	return bits
}

// PromisesOf decodes stored promises. Nil was stored by a version that had only protocol v1, which
// keeps all of them.
func PromisesOf(bits *int16) Promises {
	if bits == nil {
		return Promises{Signed: true, Expiring: true, Deduplicated: true, Correlated: true, Confirmed: true}
	}
	has := func(i int) bool { return *bits&(1<<i) != 0 }
	return Promises{Signed: has(0), Expiring: has(1), Deduplicated: has(2), Correlated: has(3), Confirmed: has(4)}
}

// Confirmation returns what a vehicle must report before an action counts as executed; nil: the
// unit's answer is enough, or this version lacks its protocol.
func (ds Dialects) Confirmation(t *Twin, a Action) map[Field]any {
	d, ok := ds.Find(t.Protocol)
	if !ok {
		return nil
	}
	return d.Confirmation(t.Installation, a)
}

// Confirms reports whether every one of the values was reported with a time later than after.
func (s Snapshot) Confirms(values map[Field]any, after time.Time) bool {
	for field, value := range values {
		if reading, ok := s[field]; !ok || !reading.At.After(after) || !field.Same(reading.Value, value) {
			return false
		}
	}
	return len(values) > 0
}

// Contradicts reports whether, for one of the fields, another value was reported with a time later
// than after. An undated reading contradicts nothing: it is new only if the value has changed, so
// the expected value may have held in between.
func (s Snapshot) Contradicts(values map[Field]any, after time.Time) bool {
	for field, value := range values {
		reading := s[field]
		if reading.Value != nil && !reading.Undated && reading.At.After(after) && !field.Same(reading.Value, value) {
			return true
		}
	}
	return false
}

// differs reports whether the snapshot has, for every field, a value other than the given one: only
// then can a report show the values as a change.
func (s Snapshot) differs(values map[Field]any) bool {
	for field, value := range values {
		if reading, ok := s[field]; !ok || reading.Value == nil || field.Same(reading.Value, value) {
			return false
		}
	}
	return true
}

// Recognise reports whether an answer that names no command can belong to c, and returns the state
// that it means for c. It can, unless the dialect of the vehicle's unit rules it out.
func (ds Dialects) Recognise(t *Twin, c *Command, a Answer) (State, bool) {
	d, _ := ds.Find(t.Protocol)
	if r, ok := d.(Recogniser); ok && t.Unit == c.Unit {
		return r.Recognise(t.Installation, c, a)
	}
	return a.State, true
}

// MayRepeat reports whether an answer that fits both c and an earlier command may be a duplicate of
// the earlier command's answer: it came soon after that, and nothing shows that it is another one.
func (c *Command) MayRepeat(a Answer, earlier *Command) bool {
	answered := earlier.Completed
	if earlier.ReceivedAt.After(answered) {
		answered = earlier.ReceivedAt
	}
	same := earlier.State == a.State || earlier.State == Unknown || earlier.ByReport
	if said := earlier.AnswerText(); said != "" && a.Detail != "" && said != a.Detail {
		same = false // a duplicate has the same text
	}
	return same && c.Requested.Sub(answered) < RepeatedWithin
}

// AnswerText returns the text of the final answer that settled the command; empty: none is
// recorded.
func (c *Command) AnswerText() string {
	if !c.State.IsFinal() || c.ByReport {
		return ""
	}
	return c.Detail
}
