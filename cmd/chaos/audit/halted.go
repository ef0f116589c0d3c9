package audit

import (
	"time"

	"motorpool/broker"
	"motorpool/telematics"
)

// onItsWay is how long a message may be under way between an instance and the listener while nothing holds it up: the
// MQTT client of an instance drops a connection that does not take it within 0.4 s.
const onItsWay = time.Second

// haltHolds claims that no message to a vehicle whose agency is halted is handed over once the halt holds everywhere,
// broker.HaltWithin after it was written down, until it is lifted; and that a call which was told of a halt starts
// nothing, before or after.
//
// A message is seen where it arrives, not where it is handed over. One that came later was handed over later, too, if
// its way was clear long enough since the halt holds: for longer than onItsWay in one stretch. The way is not clear while
// its instance or Mosquitto stands still, while the line between them is delayed or slow, and while the whole machine
// stalls. All else that breaks a line or a process loses messages, and keeps none for later. Exempt is what somebody else
// has published, too: whose such a message is cannot be told.
func haltHolds(h *hearing) {
	for i := range h.Taken {
		m := &h.Taken[i]
		for _, halt := range h.Halts {
			if halt.Stops(h.Agencies[m.Unit]) && !m.At.Before(halt.Written) && m.At.Before(halt.Lifting) && !m.Echoed {
				free := longestWithout(h.Delayed[h.instanceOf(m)], halt.Written.Add(broker.HaltWithin), m.At)
				h.must(free <= onItsWay, command(m.Command),
					"a message to unit %s came %v after commands were halted; its way had been clear for %v since the halt holds",
					m.Unit, m.At.Sub(halt.Written).Round(time.Millisecond), free.Round(time.Millisecond))
			}
		}
	}
	for i := range h.Calls {
		if c := &h.Calls[i]; c.Code == telematics.CommandsHalted {
			h.must(c.Outcome == telematics.NotExecuted, called(c), "told of a halt, but the outcome is %s", c.Outcome)
			h.notExecuted(c)
		}
	}
}

// Stops reports whether a halt is of an agency: of that one, or of all.
func (h Halt) Stops(agency telematics.AgencyID) bool { return h.Agency == 0 || h.Agency == agency }

// nowhere is the instance of a message of which no call says who made it: nothing excuses that it is late.
const nowhere = -1

// instanceOf returns the instance that published a message: the one that was called for its command, and no other ever does.
func (v *view) instanceOf(m *Message) int {
	if r := v.rows[m.Command]; r != nil && len(v.called[r.RequestID]) > 0 {
		return v.called[r.RequestID][0].Instance
	}
	return nowhere
}

// haltsDuring returns the halts that met a command while it was open.
func (v *view) haltsDuring(id telematics.CommandID) []Halt {
	var met []Halt
	for _, halt := range v.Halts {
		if r := v.rows[id]; r != nil && halt.Stops(v.Agencies[r.Unit]) && halt.Written.Before(r.Deadline) && halt.Lifting.After(r.Requested) {
			met = append(met, halt)
		}
	}
	return met
}
