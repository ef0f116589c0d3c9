package audit

import (
	"motorpool/simulator"
	"motorpool/telematics"
)

// neverForged claims that every start, and every message on the air, has a row that says the same: written down before
// it was sent, for that unit, action and number, with that expiry; that a row's final answer is one that its unit gave;
// and that no message is unsigned or retained.
//
// When a row was written is not known, only when its command was requested, by the same clock; nothing is exempt.
func neverForged(h *hearing) {
	for _, run := range h.executions {
		e, row := run.start, h.rows[run.start.Command]
		h.must(row != nil && row.Unit == e.Unit && row.Action == e.Action && row.Seq == e.Seq, command(e.Command),
			"unit %s started %s, seq %d, which the record does not say", e.Unit, e.Action, e.Seq)
	}
	for i := range h.Taken {
		h.message(&h.Taken[i])
	}
	for i := range h.Commands {
		h.word(&h.Commands[i])
	}
}

func (h *hearing) message(m *Message) {
	about, row := command(m.Command), h.rows[m.Command]
	h.must(m.Signed, about, "a message to unit %s bears no signature of the fleet", m.Unit)
	h.must(!m.Retained, about, "a message to unit %s is retained", m.Unit)
	h.must(row != nil, about, "a message to unit %s has no row", m.Unit)
	if row == nil {
		return
	}
	h.must(row.Unit == m.Unit, about, "a message for unit %s is on the topic of %s", row.Unit, m.Unit)
	h.must(!m.At.Before(row.Requested.Add(-clockReading)), about, "a message is older than its row")
	if expires := (&telematics.Command{Deadline: row.Deadline}).Expires(); !m.Expires.IsZero() {
		h.must(m.Expires.Equal(expires), about, "a message expires at %s, its row at %s", clock(m.Expires), clock(expires))
	}
}

// word holds a settled row against the answers of its unit.
func (h *hearing) word(r *Row) {
	if r.State != telematics.Succeeded && r.State != telematics.Rejected && r.State != telematics.Failed {
		return
	}
	said := h.find(r.ID, func(e *simulator.Event) bool { return e.Unit == r.Unit && e.Status == r.State })
	h.must(said != nil, command(r.ID), "the record says %s, but unit %s never did", r.State, r.Unit)
}
