package audit

import (
	"time"

	"motorpool/broker"
	"motorpool/telematics"
)

// maxTransit is how long a message may take between an instance and the listener while nothing
// delays it: the MQTT client of an instance closes a connection that does not accept it within 0.4
// s.
const maxTransit = time.Second

// haltHolds checks that no message to a vehicle of a halted agency is published once the halt holds
// everywhere, broker.HaltWithin after it was stored, until it is lifted; and that a call which was
// refused because of a halt is answered as not executed, which answersAreTrue checks.
//
// The listener has the time of arrival, not of publication. A message that arrived later was
// published later, too, if nothing could delay it for longer than maxTransit without interruption
// since the halt holds. Messages are delayed while their instance or Mosquitto is frozen, while the
// line between them is delayed or slow, and while the whole machine stalls. All other faults of
// lines and processes lose messages. Exempt are messages that an intruder has published, too: they
// cannot be distinguished.
func haltHolds(chk *checker) {
	for i := range chk.Published {
		m := &chk.Published[i]
		for _, halt := range chk.Halts {
			if halt.Stops(chk.Agencies[m.Unit]) && !m.At.Before(halt.Written) && m.At.Before(halt.Lifting) && !m.Echoed {
				free := longestWithout(chk.Delayed[chk.instanceOf(m.Command)], halt.Written.Add(broker.HaltWithin), m.At)
				chk.must(free <= maxTransit, command(m.Command),
					"a message to unit %s came %v after commands were halted; its way had been clear for %v since the halt holds",
					m.Unit, m.At.Sub(halt.Written).Round(time.Millisecond), free.Round(time.Millisecond))
			}
		}
	}
	for i := range chk.Calls {
		if c := &chk.Calls[i]; c.Code == telematics.CommandsHalted {
			chk.must(c.Outcome == telematics.NotExecuted, called(c), "refused because of a halt, but the outcome is %s", c.Outcome)
		}
	}
}

// publishedInTime checks that no message is published after its command has expired [LAW-4], with
// times as in haltHolds. Exempt are commands that a wrong clock has dated, and leaps of all clocks.
func publishedInTime(chk *checker) {
	for i := range chk.Published {
		m := &chk.Published[i]
		r := chk.rows[m.Command]
		if r == nil || m.Echoed || chk.ahead[r.ID] != 0 || chk.leapt(m.At) {
			continue
		}
		expires := (&telematics.Command{Deadline: r.Deadline}).Expires()
		free := longestWithout(chk.Delayed[chk.instanceOf(m.Command)], expires, m.At)
		chk.must(free <= maxTransit, command(m.Command), "a message to unit %s came %v after its expiry; its way had been clear for %v",
			m.Unit, m.At.Sub(expires).Round(time.Millisecond), free.Round(time.Millisecond))
	}
}

// Stops reports whether a halt is of an agency: of that one, or of all.
func (h Halt) Stops(agency telematics.AgencyID) bool { return h.Agency == 0 || h.Agency == agency }

// unknownInstance is that of a message without a call: no delay excuses that it is late.
const unknownInstance = -1

// instanceOf returns the instance that publishes a command, which is the one that was called.
func (v *view) instanceOf(id telematics.CommandID) int {
	if r := v.rows[id]; r != nil && len(v.called[r.RequestID]) > 0 {
		return v.called[r.RequestID][0].Instance
	}
	return unknownInstance
}

// haltsDuring returns the halts while a command was open.
func (v *view) haltsDuring(id telematics.CommandID) []Halt {
	var met []Halt
	for _, halt := range v.Halts {
		if r := v.rows[id]; r != nil && halt.Stops(v.Agencies[r.Unit]) && halt.Written.Before(r.Deadline) &&
			halt.Lifting.After(r.Requested) {
			met = append(met, halt)
		}
	}
	return met
}
