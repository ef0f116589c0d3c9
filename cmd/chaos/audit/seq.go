package audit

import (
	"cmp"
	"slices"
	"time"

	"motorpool/telematics"
)

// seqGrows claims that within a vehicle and lane numbers differ, and follow time: a command draws its number when it
// takes the lane, and the one before has been settled by then. So what the one before went through until it was settled
// the first time (request, publication, settlement) is dated no later than what can only follow the taking of the lane
// (publication, a message on the air, a delivery) in the one after.
//
// No more is sound: a request may wait for its lane, so it may be older than the settlement of the one before; and a
// settlement that is owed to an absent record may be dated before its row appeared. A command that never got on the air
// shows no moment after its claim, and is passed over.
func seqGrows(h *hearing) {
	for _, lane := range h.lanes() {
		slices.SortFunc(lane, func(a, b *Row) int { return cmp.Compare(a.Seq, b.Seq) })
		var past time.Time // the latest that one before went through
		var by, before *Row
		for _, r := range lane {
			if before != nil {
				h.must(r.Seq != before.Seq, command(r.ID, before.ID), "two commands of a lane have seq %d", r.Seq)
				seen := h.firstOnAir(r)
				h.must(seen.IsZero() || !seen.Before(past.Add(-clockReading)), command(r.ID, by.ID),
					"seq %d was on the air %v before seq %d was settled", r.Seq, past.Sub(seen).Round(time.Millisecond), by.Seq)
			}
			before = r
			if until := h.heldUntil(r); by == nil || until.After(past) {
				past, by = until, r
			}
		}
	}
}

func (v *view) lanes() [][]*Row {
	type vehicleLane struct {
		vehicle telematics.VehicleID
		lane    telematics.Lane
	}
	byLane := gather(v.Commands, func(r *Row) vehicleLane { return vehicleLane{r.Vehicle, r.Lane} })
	all := make([][]*Row, 0, len(byLane))
	for _, rows := range byLane {
		all = append(all, rows)
	}
	slices.SortFunc(all, func(a, b []*Row) int { // so that two reports of one evidence read alike
		return cmp.Or(cmp.Compare(a[0].Vehicle, b[0].Vehicle), cmp.Compare(a[0].Lane, b[0].Lane))
	})
	return all
}

// heldUntil returns the last moment at which a command certainly held its lane, or waited for it.
func (v *view) heldUntil(r *Row) time.Time {
	until := r.Requested
	for _, t := range []time.Time{r.SentAt, v.settledAt(r)} {
		if t.After(until) {
			until = t
		}
	}
	return until
}

// firstOnAir returns the first moment at which a command certainly had its lane; zero: none is known.
func (v *view) firstOnAir(r *Row) time.Time {
	first := r.SentAt
	if messages := v.air[r.ID]; len(messages) > 0 && (first.IsZero() || messages[0].At.Before(first)) {
		first = messages[0].At
	}
	if events := v.flights[r.ID]; len(events) > 0 && (first.IsZero() || events[0].True.Before(first)) {
		first = events[0].True
	}
	return first
}
