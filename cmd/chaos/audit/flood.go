package audit

import (
	"net/http"
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

// Flood is a time in which one unit published far more than it may, and nothing else was wrong.
type Flood struct {
	Interval
	Limited int // messages that the service counts as dropped for that reason
}

const (
	// radioTakes is how long an answer is at most on its way from a car with a good radio to Mosquitto.
	radioTakes = 500 * time.Millisecond
	// floodDelays is how long the service may then take to settle the command and answer its caller. Undisturbed it is some
	// milliseconds; a busy machine makes hundreds of them.
	floodDelays = 1500 * time.Millisecond
	// floodSpares is how many in a hundred have to be answered within that: one that is lost on its way is asked for again, which takes longer.
	floodSpares = 80
)

// aFloodStarvesNobody claims of the commands of other cars whose units answered during a flood that each was settled in
// time, as its unit said, where that was possible; that most callers had their answer soon after the unit gave it; and that
// the service knows why it dropped what it dropped. Exempt is a command during which the machine stood still.
func aFloodStarvesNobody(h *hearing) {
	for _, flood := range h.Floods {
		h.must(flood.Limited > 0, subject{}, "the service counts none of the messages that one unit sent too many")
		var slow []telematics.CommandID
		all := 0
		for i := range h.Commands {
			r := &h.Commands[i]
			if r.Requested.Before(flood.From) || r.Requested.After(flood.To) || h.stalled(r) {
				continue
			}
			said := h.find(r.ID, func(e *simulator.Event) bool {
				return e.Kind == simulator.CommandAnswered && e.Unit == r.Unit && e.Status != telematics.Received
			})
			if said == nil {
				continue
			}
			if all++; h.heardAfter(r, said.True) > radioTakes+floodDelays {
				slow = append(slow, r.ID)
			}
			if !said.True.After(r.Deadline.Add(-radioTakes - floodDelays)) {
				h.must(r.State == said.Status && !r.Late, command(r.ID), "unit %s answered %v before the deadline, and the command ended %s, late %t, during the flood of another unit",
					r.Unit, r.Deadline.Sub(said.True).Round(time.Millisecond), r.State, r.Late)
			}
		}
		h.must(len(slow)*100 <= all*(100-floodSpares), command(slow...), "of %d commands that units answered during the flood of another one, the callers of %d heard of it more than %v later",
			all, len(slow), radioTakes+floodDelays)
	}
}

// heardAfter returns how long after an instant the caller of a command had its answer; zero where none waited for it.
func (v *view) heardAfter(r *Row, said time.Time) time.Duration {
	for _, c := range v.called[r.RequestID] {
		if c.Status != 0 && c.Status != http.StatusAccepted {
			return c.End.Sub(said)
		}
	}
	return 0
}

// stalled reports whether the way of a command's messages was not clear all the time.
func (v *view) stalled(r *Row) bool {
	for _, delayed := range v.Delayed {
		if longestWithout(delayed, r.Requested, r.Deadline) < r.Deadline.Sub(r.Requested) {
			return true
		}
	}
	return false
}
