package telematics

import "time"

// WorstLateness is how long after its publication a command can still reach a unit that checks no
// expiry: the MQTT broker notices a dead connection after 1.5 x keep-alive, of which at most 60 s
// are allowed [TOP-2].
const WorstLateness = 90 * time.Second

// AnswerWithin is how long after the deadline of a command its answer may come where answers name
// no command: WorstLateness, and what the unit and the clocks take.
const AnswerWithin = WorstLateness + 10*time.Second

// RepeatedWithin is how long after an answer the same one can come again, to a command that was
// requested by then: the unit repeats it when it connects again (QoS 1), and gets no command if it
// was silent for longer.
const RepeatedWithin = OnlineFor + WorstLateness

// actuatorTime is how long a vehicle may take until it reports what a command has changed.
const actuatorTime = 20 * time.Second

// AcceptedByUnit is our own detail of a command with an unknown outcome: its unit has said that it
// accepted it, and no report has confirmed it.
const AcceptedByUnit = "accepted by the unit"

// SetAssurance fills in what the unit's dialect guarantees for a command, how the command is
// confirmed, and its lane, by the vehicle's record. All commands of a unit whose answers name no
// command share a lane.
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

// UnknownDetail returns our own detail of a command that ends with an unknown outcome.
func (c *Command) UnknownDetail(received time.Time) string {
	if received.IsZero() || c.Assurance.Confirmed && !c.ByReport {
		return ""
	}
	return AcceptedByUnit
}

// DoneBy returns when the vehicle reports what the command has changed, if it was executed at all.
func (c *Command) DoneBy() time.Time {
	if !c.ReceivedAt.IsZero() {
		return c.ReceivedAt.Add(actuatorTime)
	}
	return c.SentAt.Add(WorstLateness + actuatorTime)
}

// AwaitsAnswer reports whether an answer of its unit that names no command can be to this one. As
// long as it does, the unit gets no other.
func (c *Command) AwaitsAnswer(now time.Time) bool {
	return c.Lane == UnitLane && (c.State.IsOpen() || c.State != Expired && c.ReceivedAt.IsZero() && now.Before(c.AnswerBy))
}

// Bits returns the promises as the bits by which they are stored.
func (p Promises) Bits() (bits int16) {
	for i, holds := range [...]bool{p.Signed, p.Expiring, p.Deduplicated, p.Correlated, p.Confirmed} {
		if holds {
			bits |= 1 << i
		}
	}
	return bits
}

// PromisesOf returns the promises that were stored; nil: by a version that knew protocol v1 alone,
// which keeps all of them.
func PromisesOf(bits *int16) Promises {
	if bits == nil {
		return Promises{Signed: true, Expiring: true, Deduplicated: true, Correlated: true, Confirmed: true}
	}
	has := func(i int) bool { return *bits&(1<<i) != 0 }
	return Promises{Signed: has(0), Expiring: has(1), Deduplicated: has(2), Correlated: has(3), Confirmed: has(4)}
}

// Confirmation returns what a vehicle must report before an action counts as executed; nil: the
// unit's answer is enough, or its protocol is not spoken.
func (ds Dialects) Confirmation(t *Twin, a Action) map[Field]any {
	d, ok := ds.Find(t.Protocol)
	if !ok {
		return nil
	}
	return d.Confirmation(t.Installation, a)
}

// Confirms reports whether each of some values was reported for a time after an instant.
func (s Snapshot) Confirms(values map[Field]any, after time.Time) bool {
	for field, value := range values {
		if reading, ok := s[field]; !ok || !reading.At.After(after) || !field.Same(reading.Value, value) {
			return false
		}
	}
	return len(values) > 0
}

// Contradicts reports whether one of some values was reported to be another, for a time after an
// instant. A value without a time contradicts nothing: it is new only where it has changed, and so
// has been as it should in between.
func (s Snapshot) Contradicts(values map[Field]any, after time.Time) bool {
	for field, value := range values {
		reading := s[field]
		if reading.Value != nil && !reading.Undated && reading.At.After(after) && !field.Same(reading.Value, value) {
			return true
		}
	}
	return false
}

// differs reports whether the snapshot has another value of each of the fields: only then can the
// values be reported as a change.
func (s Snapshot) differs(values map[Field]any) bool {
	for field, value := range values {
		if reading, ok := s[field]; !ok || reading.Value == nil || field.Same(reading.Value, value) {
			return false
		}
	}
	return true
}

// Recognise reports whether an answer that names no command can be to one of a vehicle's unit.
func (ds Dialects) Recognise(t *Twin, c *Command, a Answer) bool {
	d, _ := ds.Find(t.Protocol)
	r, ok := d.(Recogniser)
	return !ok || t.Unit != c.Unit || r.Recognises(t.Installation, c, a)
}

// MayRepeat reports whether an answer to a command, given that it can be to an earlier one as well,
// can be that one's, once more.
func (c *Command) MayRepeat(a Answer, earlier *Command) bool {
	answered := earlier.Completed
	if earlier.ReceivedAt.After(answered) {
		answered = earlier.ReceivedAt
	}
	same := earlier.State == a.State || earlier.State == Unknown || earlier.ByReport
	return same && c.Requested.Sub(answered) < RepeatedWithin
}
