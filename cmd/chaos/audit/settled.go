package audit

import (
	"slices"

	"motorpool/simulator"
	"motorpool/telematics"
)

// reported is how many final answers a unit repeats in each of its reports [TEL-3].
const reported = 8

// unknownSettles claims that no command stays unknown whose final answer its unit still repeats: every unit has reported
// since. And that what is settled agrees with the flight recorder: succeeded started and ended well, failed did not end
// well, rejected and expired never started. What expired was never on the air either: that is what the word says.
//
// Exempt are answers that the unit does not remember [CMD-4]: those to messages that it could not verify, or that were
// not for it; and what fell out of its latest eight, of which every answer may have been lost on the way. A unit that was
// given a new memory repeats nothing, and would be accused wrongly.
func unknownSettles(h *hearing) {
	repeats := h.repeats()
	for i := range h.Commands {
		r := &h.Commands[i]
		about := command(r.ID)
		switch r.State {
		case telematics.Unknown:
			h.must(!repeats[unitCommand{r.Unit, r.ID}], about, "unknown, but unit %s repeats its final answer in each report", r.Unit)
		case telematics.Succeeded:
			h.must(h.started(r.ID) != nil && h.did(r.ID) != nil, about, "the record says succeeded, but no car did it")
		case telematics.Failed:
			h.must(h.did(r.ID) == nil, about, "the record says failed, but the car did it")
		case telematics.Rejected, telematics.Expired:
			h.must(h.started(r.ID) == nil, about, "the record says %s, but the car started", r.State)
			h.must(r.State != telematics.Expired || len(h.air[r.ID]) == 0, about, "the record says that it never left, but it was on the air")
		}
	}
}

type unitCommand struct {
	unit    telematics.Unit
	command telematics.CommandID
}

// repeats returns the commands whose final answers units repeat in their reports at the end: of each unit the latest
// that have one, in the order in which they first came.
func (v *view) repeats() map[unitCommand]bool {
	first := map[unitCommand]*simulator.Event{}
	final := map[unitCommand]bool{}
	byUnit := map[telematics.Unit][]*simulator.Event{} // the first answer to each command
	for i := range v.Flights {
		e := &v.Flights[i]
		if e.Kind != simulator.CommandAnswered || e.Reason == telematics.BadSignature || e.Reason == telematics.WrongAudience {
			continue
		}
		key := unitCommand{e.Unit, e.Command}
		if first[key] == nil {
			first[key] = e
			byUnit[e.Unit] = append(byUnit[e.Unit], e)
		}
		final[key] = final[key] || e.Status.IsFinal()
	}
	repeats := map[unitCommand]bool{}
	for unit, answered := range byUnit {
		slices.SortStableFunc(answered, func(a, b *simulator.Event) int { return a.True.Compare(b.True) })
		left := reported
		for _, e := range slices.Backward(answered) {
			if key := (unitCommand{unit, e.Command}); final[key] && left > 0 {
				repeats[key] = true
				left--
			}
		}
	}
	return repeats
}
