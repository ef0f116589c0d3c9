package audit

import "time"

// settledWithin is how long after its deadline a command may stay open [LAW-6].
const settledWithin = 5 * time.Second

// upReading is how exactly the moments of a restart and of a settlement are known.
const upReading = 250 * time.Millisecond

// finalInTime claims that nothing is open at the end, and that no command stayed open for more than five seconds after
// its deadline while the service and Postgres were up [LAW-6]. The time is counted from when both are up: each return
// of theirs begins it anew, since who returns must first look. So what is measured is the longest unbroken stretch.
//
// A command that a late answer settled was settled the first time when the history says so. Findings are dated by who
// found, not by Postgres: one that had to wait for Postgres counts as of when it was found.
func finalInTime(h *hearing) {
	for i := range h.Commands {
		r := &h.Commands[i]
		about := command(r.ID)
		h.must(!r.State.IsOpen(), about, "still open at the end: %s", r.State)
		if r.State.IsOpen() {
			continue
		}
		settled := h.settledAt(r)
		late := longest(h.Up, r.Deadline, settled)
		h.must(!settled.IsZero() && late <= settledWithin+upReading, about,
			"settled %v after its deadline, though all was up for %v of it in a row",
			settled.Sub(r.Deadline).Round(time.Millisecond), late.Round(time.Millisecond))
	}
}

// settledAt returns when a command was settled first; zero where nothing says so.
func (v *view) settledAt(r *Row) time.Time {
	first := r.Completed
	for _, l := range v.settlements(r) {
		if first.IsZero() || l.At.Before(first) {
			first = l.At
		}
	}
	return first
}
