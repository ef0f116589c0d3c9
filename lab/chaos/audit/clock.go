package audit

import (
	"maps"
	"slices"
	"time"

	"motorpool/broker"
	"motorpool/simulator"
	"motorpool/telematics"
)

// ClockFault is a time in which the clock of an instance was ahead or behind.
type ClockFault struct {
	From, To  time.Time // from before it was set until it was set right
	Ahead     time.Duration
	Suspended bool // its machine was, until From
}

// All stands for the clocks of all instances and of Postgres.
const All = -2

// clockNoticed is how long an instance may need to notice that its clock is wrong: a comparison
// that hangs ends after 3 s, and the next one follows. Meanwhile each of its messages is checked.
const clockNoticed = 5 * time.Second

// signedWithACorrectClock checks that no message is dated further ahead of its arrival than an
// instance's clock may be wrong [LAW-11], and that an instance with a wrong clock publishes nothing
// after it had time to notice. Nothing is exempt from the first. A message that arrives later than
// that was published later if nothing delayed it for long enough, as in haltHolds.
func signedWithACorrectClock(chk *checker) {
	for i := range chk.Published {
		m := &chk.Published[i]
		if !m.Signed {
			continue
		}
		if chk.leapt(m.At) {
			continue // as all clocks
		}
		chk.must(!m.Issued.After(m.At.Add(broker.MaxSkew+clockReading)), command(m.Command),
			"a message to unit %s is dated %v ahead of its arrival", m.Unit, m.Issued.Sub(m.At).Round(time.Millisecond))
		if m.Echoed {
			continue
		}
		instance := chk.instanceOf(m.Command)
		for _, f := range chk.Clocks[instance] {
			if m.At.After(f.From) && m.At.Before(f.To) {
				free := longestWithout(chk.Delayed[instance], f.From.Add(clockNoticed), m.At)
				chk.must(
					free <= maxTransit, command(m.Command),
					"a message to unit %s came %v after the clock of its instance was set %v ahead", m.Unit,
					m.At.Sub(f.From).Round(time.Millisecond), f.Ahead,
				)
			}
		}
	}
}

// leapt reports whether the clocks of all instances were wrong at a time.
func (v *view) leapt(at time.Time) bool {
	return slices.ContainsFunc(v.Clocks[All], func(l ClockFault) bool {
		return at.After(l.From) && at.Before(l.To.Add(leapOver))
	})
}

// leapOver is how long after a leap its messages may still be on their way.
const leapOver = 5 * time.Second

// clockBehindAllowed is by how much a unit's clock must be behind if it rejects a command of a
// correct instance as clock_behind: check 6 of [CMD-4] allows 5 s, and the instance may be ahead by
// broker.MaxSkew.
const clockBehindAllowed = 5*time.Second - broker.MaxSkew

// freshIsNotRefused checks that no unit rejects a command as expired that had not expired, by true
// time or by the unit's own clock, nor as clock_behind unless its clock is behind: an instance with
// a wrong clock does not lock a unit out of the commands of the others. Only the first answer
// counts: later ones repeat it.
func freshIsNotRefused(chk *checker) {
	type rejection struct {
		unit    telematics.Unit
		command telematics.CommandID
	}
	seen := map[rejection]bool{}
	for _, events := range chk.flights { // in the order of true time
		for _, e := range events {
			if e.Kind != simulator.CommandAnswered || chk.ahead[e.Command] > 0 || seen[rejection{e.Unit, e.Command}] {
				continue
			}
			switch e.Reason {
			case telematics.TooLate:
				seen[rejection{e.Unit, e.Command}] = true
				redisKeys := e.Expires.Sub(laterOf(e.True, e.Clock))
				chk.must(
					redisKeys <= broker.MaxSkew+clockReading, command(e.Command),
					"unit %s rejected it as expired %v before its expiry", e.Unit, redisKeys.Round(time.Millisecond),
				)
			case telematics.ClockBehind:
				seen[rejection{e.Unit, e.Command}] = true
				behind := e.True.Sub(e.Clock)
				chk.must(
					behind >= clockBehindAllowed-clockReading, command(e.Command),
					"unit %s rejected it as clock_behind, though its clock was behind by %v only", e.Unit,
					behind.Round(time.Millisecond),
				)
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

// corrected returns commands and log entries with the times of wrong clocks corrected, and by how
// much each command was dated ahead; negative: behind. An instance dates a command before it
// compares its clock with Postgres, so the row of an unpublished command may have a wrong date.
func (e Evidence) corrected() (rows []Row, entries []LogEntry, ahead map[telematics.CommandID]time.Duration) {
	rows, entries = append(rows, e.Commands...), append(entries, e.AuditLog...)
	ahead = map[telematics.CommandID]time.Duration{}
	called := groupBy(e.Calls, func(c *Call) string { return c.RequestID })
	all := slices.Concat(slices.Collect(maps.Values(e.Clocks))...)
	end := e.end()
	for i := range rows {
		row := &rows[i]
		calls := called[row.RequestID]
		// The first two are written by the instance that was called.
		owner := e.Clocks[All]
		for _, c := range calls {
			owner = slices.Concat(owner, e.Clocks[c.Instance])
		}
		if by := writtenAhead(owner, calls, row.Requested); by != 0 {
			ahead[row.ID] = by
			row.Requested = row.Requested.Add(-by)
		}
		row.SentAt = row.SentAt.Add(-writtenAhead(owner, calls, row.SentAt))
		// Others write that, too: only a time after everything that was seen, or before the call,
		// is certainly that of a wrong clock.
		faults := e.Clocks[All]
		if row.ReceivedAt.After(end) || len(calls) > 0 && row.ReceivedAt.Before(calls[0].Start) {
			faults = all
		}
		row.ReceivedAt = row.ReceivedAt.Add(-writtenAhead(faults, calls, row.ReceivedAt))
		row.latest = e.latest(row.Completed.Add(-writtenAhead(e.Clocks[All], calls, row.Completed)))
		row.Completed = row.Completed.Add(-writtenAhead(all, calls, row.Completed))
	}
	for i := range entries {
		entry := &entries[i]
		entry.At = entry.At.Add(-writtenAhead(all, called[entry.RequestID], entry.At))
	}
	return rows, entries, ahead
}

// end returns when the last was seen of a caller or a vehicle, by a correct clock.
func (e Evidence) end() (end time.Time) {
	for i := range e.Calls {
		end = laterOf(end, e.Calls[i].End)
	}
	for i := range e.Flights {
		end = laterOf(end, e.Flights[i].True)
	}
	return end
}

// latest returns the latest time that can be meant by one that an instance has dated, whose clock
// may have been behind.
func (e Evidence) latest(t time.Time) time.Time {
	last := t
	for _, faults := range e.Clocks {
		for _, f := range faults {
			if written := t.Add(-f.Ahead); written.After(f.From) && written.Before(f.To.Add(clockReading)) {
				last = laterOf(last, written)
			}
		}
	}
	return last
}

// writtenAhead returns by how much the clock was ahead that has dated something of a request; zero:
// not at all; negative: it was behind, as what was dated before the request. Where two faults may
// have, it was the one that puts it less long after the request.
func writtenAhead(faults []ClockFault, calls []*Call, t time.Time) (by time.Duration) {
	before := func(c *Call) bool { return !c.Start.After(t.Add(clockReading)) }
	for _, f := range faults {
		if f.Ahead < 0 && slices.ContainsFunc(calls, before) {
			continue
		}
		written := t.Add(-f.Ahead)
		if !written.After(f.From.Add(-clockReading)) || !written.Before(f.To.Add(clockReading)) {
			continue
		}
		// A correct clock dated calls after the fault, and nothing is written before its call.
		later := func(c *Call) bool { return c.Start.After(f.To.Add(clockReading)) }
		called := func(c *Call) bool { return !c.Start.After(written.Add(clockReading)) }
		if slices.ContainsFunc(calls, later) || len(calls) > 0 && !slices.ContainsFunc(calls, called) {
			continue
		}
		if by == 0 || f.Ahead > by {
			by = f.Ahead
		}
	}
	return by
}

// Months is where rows are after the clocks have passed the end of a month.
type Months struct {
	Entries, Samples int // of the audit log and of the telemetry history, of the new month
	Outside          int // entries of the audit log without a partition of their month
	Refused          int // samples that Postgres refused
}

// monthsEndLosesNothing checks that every row of a new month is in its partition, and none was
// refused.
func monthsEndLosesNothing(chk *checker) {
	if m := chk.Months; m != nil {
		chk.must(m.Outside == 0, subject{}, "%d audit log entries are in the default partition", m.Outside)
		chk.must(m.Refused == 0, subject{}, "%d samples of the telemetry history were refused", m.Refused)
	}
}
