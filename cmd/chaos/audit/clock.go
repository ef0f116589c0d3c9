package audit

import (
	"slices"
	"time"

	"motorpool/broker"
	"motorpool/simulator"
	"motorpool/telematics"
)

// ClockFault is a time in which the clock of an instance was ahead.
type ClockFault struct {
	From, To time.Time // from before it was set until it was set right
	Ahead    time.Duration
}

// clockNoticed is how long an instance may need to notice that its clock was set wrong: a comparison that hangs ends after 3 s, and the
// next one follows. What it signs is checked one by one meanwhile.
const clockNoticed = 5 * time.Second

// signedByARightClock claims that no message is dated further ahead of its arrival than an instance's clock may be wrong [LAW-11], and that
// an instance whose clock is wrong publishes nothing once it can have noticed. Nothing is exempt from the first. A message that comes later
// than that was published later if its way was clear for long enough, as in haltHolds.
func signedByARightClock(h *hearing) {
	for i := range h.Taken {
		m := &h.Taken[i]
		if !m.Signed {
			continue
		}
		h.must(!m.Issued.After(m.At.Add(broker.MaxSkew+clockReading)), command(m.Command),
			"a message to unit %s is dated %v ahead of its arrival", m.Unit, m.Issued.Sub(m.At).Round(time.Millisecond))
		if m.Echoed {
			continue
		}
		instance := h.instanceOf(m)
		for _, f := range h.Clocks[instance] {
			if m.At.After(f.From) && m.At.Before(f.To) {
				free := longestWithout(h.Delayed[instance], f.From.Add(clockNoticed), m.At)
				h.must(free <= onItsWay, command(m.Command), "a message to unit %s came %v after the clock of its instance was set %v ahead",
					m.Unit, m.At.Sub(f.From).Round(time.Millisecond), f.Ahead)
			}
		}
	}
}

// clockBehindAllowed is by how much a unit's clock is behind at least where it rejects a command of a right instance as clock_behind: check 6
// of [CMD-4] allows 5 s, and the instance may be ahead by broker.MaxSkew.
const clockBehindAllowed = 5*time.Second - broker.MaxSkew

// freshIsNotRefused claims that no unit rejects a command as expired that had not expired, by true time or by the unit's own clock, nor as
// clock_behind unless its clock is behind: no instance's wrong clock locks a unit out of the commands of the others. Only the first answer
// counts: what follows repeats it.
func freshIsNotRefused(h *hearing) {
	type rejection struct {
		unit    telematics.Unit
		command telematics.CommandID
	}
	seen := map[rejection]bool{}
	for _, events := range h.flights { // in the order of true time
		for _, e := range events {
			if e.Kind != simulator.CommandAnswered || seen[rejection{e.Unit, e.Command}] {
				continue
			}
			switch e.Reason {
			case telematics.TooLate:
				seen[rejection{e.Unit, e.Command}] = true
				left := e.Expires.Sub(laterOf(e.True, e.Clock))
				h.must(left <= broker.MaxSkew+clockReading, command(e.Command), "unit %s rejected it as expired %v before its expiry",
					e.Unit, left.Round(time.Millisecond))
			case telematics.ClockBehind:
				seen[rejection{e.Unit, e.Command}] = true
				behind := e.True.Sub(e.Clock)
				h.must(behind >= clockBehindAllowed-clockReading, command(e.Command), "unit %s rejected it as clock_behind, though its clock was behind by %v only",
					e.Unit, behind.Round(time.Millisecond))
			}
		}
	}
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// corrected returns what is on record with the times that a wrong clock wrote set right, and by how much each command was dated ahead. An
// instance dates a command before Postgres tells it that its clock is wrong, so the row of a command that never left may be dated wrongly.
func (e Evidence) corrected() (rows []Row, lines []Line, ahead map[telematics.CommandID]time.Duration) {
	rows, lines = append(rows, e.Commands...), append(lines, e.History...)
	ahead = map[telematics.CommandID]time.Duration{}
	called := gather(e.Calls, func(c *Call) string { return c.RequestID })
	for _, faults := range e.Clocks {
		for _, f := range faults {
			// What was called only once the clock was right again, a right clock has dated.
			afterwards := func(c *Call) bool { return c.Start.After(f.To.Add(clockReading)) }
			wrote := func(request string, t time.Time) bool {
				t = t.Add(-f.Ahead)
				calls := called[request]
				return t.After(f.From.Add(-clockReading)) && t.Before(f.To.Add(clockReading)) &&
					(len(calls) == 0 || !slices.ContainsFunc(calls, afterwards))
			}
			correct := func(request string, t *time.Time) {
				if wrote(request, *t) {
					*t = t.Add(-f.Ahead)
				}
			}
			for i := range rows {
				if wrote(rows[i].RequestID, rows[i].Requested) {
					ahead[rows[i].ID] = f.Ahead
				}
				correct(rows[i].RequestID, &rows[i].Requested)
				correct(rows[i].RequestID, &rows[i].Completed)
			}
			for i := range lines {
				correct(lines[i].RequestID, &lines[i].At)
			}
		}
	}
	return rows, lines, ahead
}
