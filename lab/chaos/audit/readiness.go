package audit

import (
	"net/http"
	"slices"
	"time"

	"motorpool/telematics"
)

// Lock is a time in which another client's transaction held locks.
type Lock struct {
	Interval
	What     string
	Vehicles []telematics.VehicleID // whose rows are locked
}

const (
	// readyNoticed is how long an instance may need to notice that it cannot do its job.
	readyNoticed = 10 * time.Second
	// soundTakes is how long a command to a sound vehicle takes at most, on a busy machine.
	soundTakes = 3 * time.Second
	// tolerated is how many of a hundred commands may fail without a reason: messages are lost when
	// an instance connects again.
	tolerated = 5
	// unseen is how long an outage may last that no check of an instance falls into: it checks
	// itself each second.
	unseen = time.Second
	// judged is how many calls a judgement needs at least.
	judged = 20
)

// ownSake are the codes of commands that are refused because of the vehicle or the request.
var ownSake = map[telematics.Code]bool{
	telematics.CommandInProgress: true, telematics.IdempotencyInProgress: true, "vehicle_state_conflict": true, "best_effort_denied": true,
	telematics.CommandsHalted: true, "action_not_supported": true,
}

// judges reports whether a call shows what an instance can do: it is to a sound vehicle, its caller
// has the patience for that, and the machine did not stall.
func (chk *checker) judges(c *Call) bool {
	return chk.Sound[c.Vehicle] && (c.Patience == 0 || c.Patience >= soundTakes) && !chk.stalledFor(c)
}

// failed reports whether a call that judges failed, and not for its own sake.
func failed(c *Call) bool {
	return c.Outcome != telematics.Executed && c.Status != http.StatusAccepted && !ownSake[c.Code]
}

// readyMeansAble checks that an instance that says for a while that it is ready, before a command
// to a sound vehicle and after it, executes it or refuses it for its own sake. Exempt are calls
// during a stall of the machine or a leap of all clocks, and those that failed within one second,
// which no instance can notice, and those to vehicles that another client has locked.
func readyMeansAble(chk *checker) {
	for instance, ready := range chk.Ready {
		calls, bad := map[int][]*Call{}, map[int][]*Call{} // by when they began
		for i := range chk.Calls {
			c := &chk.Calls[i]
			if c.Instance != instance || !chk.judges(c) || !covers(ready, c.Start.Add(-readyNoticed), c.End.Add(readyNoticed)) ||
				chk.lockedFor(c) ||
				chk.leapt(c.Start) ||
				chk.leapt(c.End) {
				continue
			}
			at := int(c.Start.Sub(chk.Calls[0].Start) / readyNoticed)
			calls[at] = append(calls[at], c)
			if failed(c) {
				bad[at] = append(bad[at], c)
			}
		}
		for at, all := range calls {
			chk.must(
				len(all) < judged || len(bad[at])*100 <= len(all)*tolerated || beganWithin(unseen, bad[at]), requests(bad[at]),
				"instance %d said that it was ready, and %d of %d commands to sound vehicles failed within %v from %s on: %v",
				instance, len(bad[at]), len(all), readyNoticed, clock(all[0].Start), reasons(bad[at]),
			)
		}
	}
}

// lockStopsNoOther checks that a lock of another client delays and refuses nothing but commands to
// the vehicles whose rows it locks, at every instance.
func lockStopsNoOther(chk *checker) {
	for _, lock := range chk.Locks {
		var refused, slow []*Call
		all := 0
		for i := range chk.Calls {
			c := &chk.Calls[i]
			if !chk.judges(c) || !within(lock.Interval, c) || slices.Contains(lock.Vehicles, c.Vehicle) || c.Status == http.StatusAccepted {
				continue
			}
			all++
			switch {
			case failed(c):
				refused = append(refused, c)
			case c.End.Sub(c.Start) > soundTakes:
				slow = append(slow, c)
			}
		}
		for _, bad := range []struct {
			calls []*Call
			what  string
			most  int // percent
		}{{refused, "failed", tolerated}, {slow, "took more than " + soundTakes.String(), 100 - floodSpares}} {
			chk.must(
				all < judged || len(bad.calls)*100 <= all*bad.most, requests(bad.calls),
				"another client locked %s for %v: of %d commands to other sound vehicles %d %s: %v", lock.What,
				lock.To.Sub(lock.From).Round(time.Second), all, len(bad.calls), bad.what, reasons(bad.calls),
			)
		}
	}
}

// beganWithin reports whether the first and the last of some calls began less than that apart.
func beganWithin(d time.Duration, calls []*Call) bool {
	order := func(a, b *Call) int { return a.Start.Compare(b.Start) }
	return slices.MaxFunc(calls, order).Start.Sub(slices.MinFunc(calls, order).Start) < d
}

func within(i Interval, c *Call) bool { return c.Start.After(i.From) && c.End.Before(i.To) }

// lockedFor reports whether another client had locked the vehicle of a call meanwhile.
func (v *view) lockedFor(c *Call) bool {
	return slices.ContainsFunc(v.Locks, func(l Lock) bool {
		return slices.Contains(l.Vehicles, c.Vehicle) && c.Start.Before(l.To.Add(outageReading)) && c.End.After(l.From)
	})
}

// stalledFor reports whether the machine stalled during a call.
func (v *view) stalledFor(c *Call) bool {
	return longestWithout(joined(v.Stalls), c.Start, c.End) < c.End.Sub(c.Start)
}

// requests is a subject of some calls: enough to see what is wrong.
func requests(calls []*Call) (about subject) {
	for _, c := range calls[:min(3, len(calls))] {
		about.requests = append(about.requests, c.RequestID)
	}
	return about
}

// reasons counts calls by their answers.
func reasons(calls []*Call) map[string]int {
	counts := map[string]int{}
	for _, c := range calls {
		name := string(c.Code)
		if c.Status == 0 {
			name = "no answer"
		}
		counts[name]++
	}
	return counts
}

// Backends is the most connections of the service that Postgres had at a time, and how many it may
// have by its settings. A limit of zero: they were not counted.
type Backends struct{ Most, Limit int }

// withinConnections checks that the service never has more connections than its settings say, those
// of statements included that it waits for no more.
func withinConnections(chk *checker) {
	if b := chk.Backends; b.Limit > 0 {
		chk.must(b.Most <= b.Limit, subject{}, "postgres had %d connections of the service, which may have %d", b.Most, b.Limit)
	}
}
