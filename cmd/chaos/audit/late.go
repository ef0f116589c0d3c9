package audit

import "time"

// allowedClockError is how wrong the clock of a unit may be; so late may a command start, and no later.
const allowedClockError = 5 * time.Second

// neverLate claims that no command starts more than the allowed clock error after its expiry, in true time, whatever
// the car's own clock says. Nothing is exempt.
func neverLate(h *hearing) {
	for _, run := range h.executions {
		late := run.start.True.Sub(run.start.Expires)
		h.must(late <= allowedClockError, command(run.start.Command),
			"%s started %v after its expiry; the car's clock was off by %v", run.start.Action,
			late.Round(time.Millisecond), run.start.Clock.Sub(run.start.True).Round(time.Millisecond))
	}
}
