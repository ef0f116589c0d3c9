package audit

import (
	"slices"
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

// execution is one run of a command in a car. One that was interrupted ends when the unit, back again, says so.
type execution struct {
	start *simulator.Event
	end   time.Time // zero: it never ended
}

// executions pairs starts with ends, in the order of the starts. The events of each command are in order.
func executions(flights map[telematics.CommandID][]*simulator.Event) []execution {
	var all []execution
	for _, events := range flights {
		for i, e := range events {
			if e.Kind != simulator.CommandStarted {
				continue
			}
			run := execution{start: e}
			after := events[i+1:]
			if at := slices.IndexFunc(after, func(next *simulator.Event) bool { return next.Unit == e.Unit && ends(next) }); at >= 0 {
				run.end = after[at].True
			}
			all = append(all, run)
		}
	}
	slices.SortStableFunc(all, func(a, b execution) int { return a.start.True.Compare(b.start.True) })
	return all
}

func ends(e *simulator.Event) bool {
	return e.Kind == simulator.CommandEnded || e.Kind == simulator.CommandAnswered && e.Reason == telematics.Interrupted
}
