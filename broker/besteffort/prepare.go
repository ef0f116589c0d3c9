package besteffort

import (
	"time"

	"motorpool/telematics"
)

// Prepare fills in how a command to the unit of a vehicle is confirmed, and its lane: all commands
// of a unit whose answers name no command share one. The claim keeps that lane until the answer has
// come, or can come no more.
func (h *Handler) Prepare(c *telematics.Command, t *telematics.Twin) {
	d, ok := h.Dialects.Find(t.Protocol)
	if !ok {
		return
	}
	if confirmation := d.Confirmation(t.Installation, c.Action); len(confirmation) > 0 {
		c.BestEffort.ByReport, c.BestEffort.ReportedBefore = true, !differs(t.Snapshot, confirmation)
	}
	if all, ok := h.Dialects.Promises(t.Vehicle); ok && !all.Correlated {
		c.Lane, c.BestEffort.AnswerBy = telematics.UnitLane, c.Deadline.Add(telematics.AnswerWithin)
	}
}

// NeedsState reports whether Prepare needs the reported state of the command's vehicle.
func NeedsState(c *telematics.Command) bool { return c.BestEffort.ByReport }

// Delay returns how long to wait with a message that must be published at the end of a second; 0:
// publish it now, also where no further second is left after that.
func Delay(m *telematics.Transmission, deadline, now time.Time) time.Duration {
	end := now.Truncate(time.Second).Add(endOfSecond)
	secondLater := end.Add(time.Second)
	if !m.EndOfSecond || !secondLater.Before(m.LeaveBefore) || !secondLater.Before(deadline) {
		return 0
	}
	return max(0, end.Sub(now))
}
