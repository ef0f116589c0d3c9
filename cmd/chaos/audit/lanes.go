package audit

import (
	"time"

	"motorpool/telematics"
)

// oneAtATime claims that no watcher of the record saw two open commands in a lane [LAW-5], and that within a unit and
// lane executions neither overlap nor start out of the order of their numbers [CMD-8]. Nothing is exempt: an execution
// that a restart cut off ends when the unit, back again, calls it interrupted.
func oneAtATime(h *hearing) {
	h.checked++ // the watch itself
	for _, c := range h.Lanes {
		h.must(false, command(c.Commands...), "%d commands open in lane %s of vehicle %d at %s", len(c.Commands), c.Lane, c.Vehicle, clock(c.At))
	}
	type unitLane struct {
		unit telematics.Unit
		lane telematics.Lane
	}
	latest := map[unitLane]execution{}
	for _, next := range h.executions {
		lane := unitLane{next.start.Unit, next.start.Lane}
		before, busy := latest[lane]
		latest[lane] = next
		if !busy || before.start.Command == next.start.Command { // the same again is another law's
			continue
		}
		about := command(next.start.Command, before.start.Command)
		h.must(!before.end.IsZero() && !next.start.True.Before(before.end), about,
			"%s started while %s was at work in lane %s", next.start.Action, before.start.Action, lane.lane)
		h.must(next.start.Seq > before.start.Seq, about,
			"seq %d started %v after seq %d", next.start.Seq, next.start.True.Sub(before.start.True).Round(time.Millisecond), before.start.Seq)
	}
}
