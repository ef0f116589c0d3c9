package audit

import "motorpool/telematics"

// toldTheTruth claims of every answer over HTTP, a replayed one included:
//
//   - executed: it names its command, of the vehicle and action that were asked for; the record says succeeded; and that
//     command started and ended well in its car before the answer came.
//   - not_executed: its command never starts, before or after. Without a command of its own, nothing that the call made
//     ever starts. (command_in_progress and idempotency_in_progress name the command of another call.)
//   - failed: its command did not end well in any car.
//   - unknown: nothing. unknownSettles says what must become of it.
//
// A call without an answer was told nothing.
func toldTheTruth(h *hearing) {
	for i := range h.Calls {
		c := &h.Calls[i]
		if c.Status == 0 {
			continue
		}
		switch c.Outcome {
		case telematics.Executed:
			h.executed(c)
		case telematics.NotExecuted:
			h.notExecuted(c)
		case telematics.HasFailed:
			h.must(h.did(c.own()) == nil, called(c), "HTTP said failed, but the car did it")
		}
	}
}

func (h *hearing) executed(c *Call) {
	row := h.rows[c.Command]
	h.must(row != nil && row.Vehicle == c.Vehicle && row.Action == c.Action && row.State == telematics.Succeeded, called(c),
		"HTTP said executed, but the record does not say that %s succeeded at vehicle %d", c.Action, c.Vehicle)
	if row == nil {
		return
	}
	started, ended := h.started(row.ID), h.did(row.ID)
	h.must(started != nil && ended != nil && started.Unit == row.Unit && ended.Unit == row.Unit, called(c),
		"HTTP said executed, but no car did it")
	if ended != nil {
		h.must(!ended.True.After(c.End.Add(clockReading)), called(c), "HTTP said executed before the car had done it")
	}
}

func (h *hearing) notExecuted(c *Call) {
	if id := c.own(); id != telematics.NoCommand {
		h.must(h.started(id) == nil, called(c), "HTTP said not_executed, but the car started")
		return
	}
	about := request(c.RequestID)
	for _, r := range h.madeBy(c) {
		if h.started(r.ID) != nil {
			about.commands = append(about.commands, r.ID)
		}
	}
	h.must(len(about.commands) == 0, about, "HTTP said not_executed, but the car started what the call had made")
}
