package audit

import (
	"net/http"

	"motorpool/telematics"
)

// logComplete checks that the audit log is complete [LAW-9]:
//
//   - a settled command has one entry, with the outcome of its state; one that a late answer has
//     settled again has two: the first outcome, then that of the late answer, marked late.
//   - an answered call has an entry with its request id.
//
// Exempt from the second are calls that were refused before authentication (401, and because of the
// path or the size of the body); replays and idempotency_in_progress, whose entry is that of the
// first call; and refusals of an instance that could not reach Postgres at some time during the
// call, and so could not store an entry.
func logComplete(chk *checker) {
	for i := range chk.Commands {
		chk.settlementLogged(&chk.Commands[i])
	}
	for i := range chk.Calls {
		if c := &chk.Calls[i]; c.Status != 0 && !chk.needsNoEntry(c) {
			chk.must(len(chk.logged[c.RequestID]) > 0, called(c), "an answered call has no entry")
		}
	}
}

func (chk *checker) settlementLogged(r *Row) {
	if r.State.IsOpen() {
		return
	}
	about, entries := command(r.ID), chk.settlements(r)
	want := 1
	if r.Late {
		want = 2
	}
	chk.must(len(entries) == want, about, "%d entries of its settlement, want %d", len(entries), want)
	if len(entries) == 0 {
		return
	}
	last := entries[len(entries)-1]
	chk.must(last.Outcome == r.State.Outcome() && last.Late == r.Late && last.Vehicle == r.Vehicle &&
		last.Action == telematics.CommandActivity(r.Action), about,
		"the audit log ends with %s (late: %t), the record with %s (late: %t)", last.Outcome, last.Late, r.State.Outcome(), r.Late)
	if len(entries) == 2 && r.Late {
		first := entries[0]
		chk.must(!first.Late && (first.Outcome == telematics.MayHave || first.Outcome == telematics.NotExecuted), about,
			"before the late answer the audit log says %s (late: %t)", first.Outcome, first.Late)
	}
}

func (chk *checker) needsNoEntry(c *Call) bool {
	switch {
	case c.Status == http.StatusUnauthorized, c.Status == http.StatusRequestEntityTooLarge,
		c.Status == http.StatusMethodNotAllowed, c.Code == "not_found":
		return true
	case c.Replayed, c.Code == idempotencyInProgress:
		return true
	}
	refused := c.Outcome == telematics.NotExecuted || c.Outcome == telematics.Undecided
	return refused && len(chk.madeBy(c)) == 0 && !chk.reached(c)
}

// reached reports whether the call's instance could reach Postgres all the time.
func (v *view) reached(c *Call) bool {
	stretches, watched := v.Reach[c.Instance]
	if !watched {
		stretches = v.Up
	}
	return covers(stretches, c.Start.Add(-outageReading), c.End.Add(outageReading))
}

// logAppendOnly checks that entries are only added [LAW-9]: every attempt to change or delete one
// was refused, each entry that was read while commands ran is still there and the same, and no two
// entries have one id.
func logAppendOnly(chk *checker) {
	chk.must(true, subject{}, "") // the attempts
	for _, attempt := range chk.Tampered {
		chk.must(false, command(), "not refused: %s", attempt)
	}
	byID := make(map[int64]*LogEntry, len(chk.written))
	for i := range chk.written {
		l := &chk.written[i]
		chk.must(byID[l.ID] == nil, subjectOf(l), "two entries have the id %d", l.ID)
		byID[l.ID] = l
	}
	for i := range chk.Sampled {
		then := &chk.Sampled[i]
		now := byID[then.ID]
		chk.must(now != nil, subjectOf(then), "entry %d is gone", then.ID)
		if now != nil {
			chk.must(same(*now, *then), subjectOf(then), "entry %d was changed: %s, once %s", then.ID, now.text(), then.text())
		}
	}
}

func subjectOf(l *LogEntry) subject {
	if l.Command != telematics.NoCommand {
		return command(l.Command)
	}
	return request(l.RequestID)
}

func same(a, b LogEntry) bool {
	sameTime := a.At.Equal(b.At)
	a.At = b.At
	return sameTime && a == b
}
