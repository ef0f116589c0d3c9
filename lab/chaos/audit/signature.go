package audit

import (
	"slices"

	"motorpool/simulator"
	"motorpool/telematics"
)

// neverForged checks that every start and every published message has a row with the same content:
// stored before it was sent, for that unit, action and number, with that expiry; that a row's final
// state is one that its unit reported; and that no message is unsigned or retained.
//
// Rows have the time of the request, by the same clock, not that of the insert; nothing is exempt.
func neverForged(chk *checker) {
	for _, run := range chk.executions {
		e, row := run.start, chk.rows[run.start.Command]
		chk.must(row != nil && row.Unit == e.Unit && row.Action == e.Action && row.Seq == e.Seq, command(e.Command),
			"unit %s started %s, seq %d, which is not on record", e.Unit, e.Action, e.Seq)
	}
	for i := range chk.Published {
		chk.message(&chk.Published[i])
	}
	for i := range chk.Commands {
		chk.finalAnswer(&chk.Commands[i])
	}
}

func (chk *checker) message(m *Message) {
	about, row := command(m.Command), chk.rows[m.Command]
	chk.must(m.Signed, about, "a message to unit %s has no signature of the fleet", m.Unit)
	chk.must(!m.Retained, about, "a message to unit %s is retained", m.Unit)
	chk.must(row != nil, about, "a message to unit %s has no row", m.Unit)
	if row == nil {
		return
	}
	chk.must(row.Unit == m.Unit, about, "a message for unit %s is on the topic of %s", row.Unit, m.Unit)
	chk.must(!m.At.Before(row.Requested.Add(-clockReading)), about, "a message is older than its command")
	if expires := (&telematics.Command{Deadline: row.Deadline}).Expires(); !m.Expires.IsZero() {
		chk.must(m.Expires.Equal(expires), about, "a message expires at %s, its row at %s", clock(m.Expires), clock(expires))
	}
}

// finalAnswer compares a settled row with the answers of its unit.
func (chk *checker) finalAnswer(r *Row) {
	if r.State != telematics.Succeeded && r.State != telematics.Rejected && r.State != telematics.Failed {
		return
	}
	said := chk.find(r.ID, func(e *simulator.Event) bool { return e.Unit == r.Unit && e.Status == r.State })
	chk.must(said != nil, command(r.ID), "the record says %s, but unit %s never reported it", r.State, r.Unit)
}

// signedWithAKeyOfTheUnit checks that no unit refuses a command on record because it does not have
// the key, while keys are rotated: every unit has a key before it signs, and until its last command
// is over [CMD-1].
//
// Exempt are commands that arrive after their expiry: by then the unit may not have the key any
// more. So is an answer for each copy that the radio has damaged, and what an instance signs before
// it can notice that its key is not that of the others.
func signedWithAKeyOfTheUnit(chk *checker) {
	for id, events := range chk.flights {
		r := chk.rows[id]
		if r == nil {
			continue // forged
		}
		expires := (&telematics.Command{Deadline: r.Deadline}).Expires()
		damaged := 0
		for _, e := range events {
			if e.Unit != r.Unit {
				continue
			}
			if e.Kind == simulator.CommandDamaged {
				damaged++
			}
			refused := e.Reason == telematics.BadSignature && !e.True.After(expires)
			if refused && damaged > 0 {
				damaged--
				refused = false
			}
			refused = refused && !slices.ContainsFunc(chk.Foreign, func(i Interval) bool {
				return e.True.After(i.From) && r.Requested.Before(i.From.Add(readyNoticed))
			})
			chk.must(!refused, command(id), "unit %s refused it as badly signed", e.Unit)
		}
	}
}
