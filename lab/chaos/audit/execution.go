package audit

import (
	"slices"
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

// execution is one run of a command in a car. An interrupted one ends when the unit reports that
// after its restart.
type execution struct {
	start *simulator.Event
	end   time.Time // zero: it never ended
}

// executions pairs starts with ends, in the order of the starts. The events of each command are in
// order.
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

// atMostOnce checks that no command starts twice, in the same car or another, and that of all
// commands of one Idempotency-Key and vehicle at most one starts: a caller that retries with its
// key gets no second execution.
//
// A key may have several commands: one that was not executed frees it. For a call to many vehicles,
// each is checked separately.
func atMostOnce(chk *checker) {
	seen := map[telematics.CommandID]bool{}
	for _, run := range chk.executions {
		id := run.start.Command
		chk.must(!seen[id], command(id), "%s of unit %s started again", run.start.Action, run.start.Unit)
		seen[id] = true
	}
	oneOrderOneCommand(chk, nil)
}

// oneOrderOneCommand checks that of the commands of one Idempotency-Key at most one starts.
func oneOrderOneCommand(chk *checker, _ *foreign) {
	for _, intent := range chk.intents() {
		var started []telematics.CommandID
		for _, id := range intent.commands {
			if chk.started(id) != nil {
				started = append(started, id)
			}
		}
		chk.must(len(started) <= 1, subject{commands: started, requests: intent.requests},
			"%d commands of the key %q at vehicle %d started", len(started), intent.key, intent.vehicle)
	}
}

// intent is a key and a vehicle, with all their commands.
type intent struct {
	key      string
	vehicle  telematics.VehicleID
	commands []telematics.CommandID
	requests []string
}

func (v *view) intents() []*intent {
	type name struct {
		key     string
		vehicle telematics.VehicleID
	}
	byName := map[name]*intent{}
	var all []*intent
	for i := range v.Calls {
		c := &v.Calls[i]
		if c.Key == "" {
			continue
		}
		it := byName[name{c.Key, c.Vehicle}]
		if it == nil {
			it = &intent{key: c.Key, vehicle: c.Vehicle}
			byName[name{c.Key, c.Vehicle}], all = it, append(all, it)
		}
		it.requests = append(it.requests, c.RequestID)
		it.add(c.ownCommand())
		for _, r := range v.made[c.RequestID] {
			if r.Vehicle == c.Vehicle {
				it.add(r.ID)
			}
		}
	}
	return all
}

func (i *intent) add(id telematics.CommandID) {
	if id != telematics.NoCommand && !slices.Contains(i.commands, id) {
		i.commands = append(i.commands, id)
	}
}

// allowedClockError is how wrong the clock of a unit may be, and so how late a command may start.
const allowedClockError = 5 * time.Second

// neverLate checks that no command starts more than the allowed clock error after its expiry, in
// true time, independent of the car's clock. Nothing is exempt.
func neverLate(chk *checker) {
	for _, run := range chk.executions {
		late := run.start.True.Sub(run.start.Expires)
		chk.must(late <= allowedClockError, command(run.start.Command),
			"%s started %v after its expiry; the car's clock was off by %v", run.start.Action,
			late.Round(time.Millisecond), run.start.Clock.Sub(run.start.True).Round(time.Millisecond))
	}
}

// oneAtATime checks that there were never two open commands in a lane [LAW-5], and that the
// executions of a unit and lane neither overlap nor start out of the order of their numbers
// [CMD-8]. Nothing is exempt: an execution that a restart interrupted ends when the unit reports
// that.
func oneAtATime(chk *checker) {
	chk.must(true, subject{}, "") // the watcher itself
	for _, c := range chk.Lanes {
		chk.must(
			false, command(c.Commands...), "%d commands open in lane %s of vehicle %d at %s", len(c.Commands), c.Lane,
			c.Vehicle, clock(c.At),
		)
	}
	type unitLane struct {
		unit telematics.Unit
		lane telematics.Lane
	}
	latest := map[unitLane]execution{}
	for _, next := range chk.executions {
		lane := unitLane{next.start.Unit, next.start.Lane}
		before, busy := latest[lane]
		latest[lane] = next
		if !busy || before.start.Command == next.start.Command { // another law checks repetitions
			continue
		}
		about := command(next.start.Command, before.start.Command)
		chk.must(!before.end.IsZero() && !next.start.True.Before(before.end), about,
			"%s started while %s was in progress in lane %s", next.start.Action, before.start.Action, lane.lane)
		chk.must(
			next.start.Seq > before.start.Seq, about, "seq %d started %v after seq %d", next.start.Seq,
			next.start.True.Sub(before.start.True).Round(time.Millisecond), before.start.Seq,
		)
	}
}
