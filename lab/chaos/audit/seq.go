package audit

import (
	"cmp"
	"slices"
	"time"

	"motorpool/telematics"
)

// seqGrows checks that within a vehicle and lane sequence numbers differ, and follow time: a
// command gets its number when it claims the lane, and the previous one has been settled by then.
// So the times of the previous one until it was settled first (request, publication, settlement)
// are not later than those that follow the claim (publication, delivery) of the next one.
//
// Other orders are not guaranteed: a request may wait for its lane, so it may be older than the
// settlement of the previous one; and a settlement that waited for Postgres may be dated before its
// row was stored. An unpublished command has no time after its claim, and is skipped.
func seqGrows(chk *checker) {
	for _, lane := range chk.lanes() {
		slices.SortFunc(lane, func(a, b *Row) int { return cmp.Compare(a.Seq, b.Seq) })
		var past time.Time // the latest of the previous ones
		var by, before *Row
		for _, r := range lane {
			if before != nil {
				chk.must(r.Seq != before.Seq, command(r.ID, before.ID), "two commands of a lane have seq %d", r.Seq)
				seen := chk.firstPublished(r)
				chk.must(seen.IsZero() || !seen.Before(past.Add(-clockReading)), command(r.ID, by.ID),
					"seq %d was published %v before seq %d was settled", r.Seq, past.Sub(seen).Round(time.Millisecond), by.Seq)
			}
			before = r
			if until := chk.heldUntil(r); by == nil || until.After(past) {
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
	byLane := groupBy(v.Commands, func(r *Row) vehicleLane { return vehicleLane{r.Vehicle, r.Lane} })
	all := make([][]*Row, 0, len(byLane))
	for _, rows := range byLane {
		all = append(all, rows)
	}
	slices.SortFunc(all, func(a, b []*Row) int { // for a deterministic report
		return cmp.Or(cmp.Compare(a[0].Vehicle, b[0].Vehicle), cmp.Compare(a[0].Lane, b[0].Lane))
	})
	return all
}

// heldUntil returns the last time at which a command certainly had its lane, or waited for it.
func (v *view) heldUntil(r *Row) time.Time {
	until := r.Requested
	for _, t := range []time.Time{r.SentAt, v.settledAt(r)} {
		if t.After(until) {
			until = t
		}
	}
	return until
}

// firstPublished returns the first time at which a command certainly had its lane; zero: none.
func (v *view) firstPublished(r *Row) time.Time {
	first := r.SentAt
	if messages := v.messages[r.ID]; len(messages) > 0 && (first.IsZero() || messages[0].At.Before(first)) {
		first = messages[0].At
	}
	if events := v.flights[r.ID]; len(events) > 0 && (first.IsZero() || events[0].True.Before(first)) {
		first = events[0].True
	}
	return first
}
