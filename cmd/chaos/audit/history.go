package audit

import (
	"net/http"

	"motorpool/telematics"
)

// historyComplete claims that the history tells of everything [LAW-9]:
//
//   - of a settled row exactly once, with the outcome of its state; of one that a late answer settled twice: first what
//     was believed, then the truth, marked late.
//   - of every call that was answered, under its request id.
//
// Exempt from the second are calls that were turned away before anyone knew whose they are (401, and what the path and
// the size of the body decide); replays and idempotency_in_progress, whose line is that of the first call; and refusals
// of an instance that could not reach Postgres at some moment of the call: what is away cannot take a line. Whatever has
// a row is held to the first.
func historyComplete(h *hearing) {
	for i := range h.Commands {
		h.told(&h.Commands[i])
	}
	for i := range h.Calls {
		if c := &h.Calls[i]; c.Status != 0 && !h.leavesNoLine(c) {
			h.must(len(h.noted[c.RequestID]) > 0, called(c), "an answered call has no line")
		}
	}
}

func (h *hearing) told(r *Row) {
	if r.State.IsOpen() {
		return
	}
	about, lines := command(r.ID), h.settlements(r)
	want := 1
	if r.Late {
		want = 2
	}
	h.must(len(lines) == want, about, "%d lines of its settlement, want %d", len(lines), want)
	if len(lines) == 0 {
		return
	}
	last := lines[len(lines)-1]
	h.must(last.Outcome == r.State.Outcome() && last.Late == r.Late && last.Vehicle == r.Vehicle &&
		last.Action == telematics.CommandActivity(r.Action), about,
		"the history ends with %s (late: %t), the record with %s (late: %t)", last.Outcome, last.Late, r.State.Outcome(), r.Late)
	if len(lines) == 2 && r.Late {
		first := lines[0]
		h.must(!first.Late && (first.Outcome == telematics.MayHave || first.Outcome == telematics.NotExecuted), about,
			"before the late answer the history says %s (late: %t)", first.Outcome, first.Late)
	}
}

func (h *hearing) leavesNoLine(c *Call) bool {
	switch {
	case c.Status == http.StatusUnauthorized, c.Status == http.StatusRequestEntityTooLarge,
		c.Status == http.StatusMethodNotAllowed, c.Code == "not_found":
		return true
	case c.Replayed, c.Code == idempotencyInProgress:
		return true
	}
	refused := c.Outcome == telematics.NotExecuted || c.Outcome == telematics.Undecided
	return refused && len(h.madeBy(c)) == 0 && !h.reached(c)
}

// reached reports whether the call's instance could reach Postgres all the time.
func (v *view) reached(c *Call) bool {
	stretches, watched := v.Reach[c.Instance]
	if !watched {
		stretches = v.Up
	}
	return covers(stretches, c.Start.Add(-outageReading), c.End.Add(outageReading))
}
