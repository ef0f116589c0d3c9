package audit

import (
	"slices"
	"strings"
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

// reported is how many final answers a unit repeats in each of its reports [TEL-3].
const reported = 8

// unknownSettles checks that no command stays unknown whose final answer its unit still repeats:
// every unit has reported since. And that settled states agree with the flight recorder: a
// succeeded command started and ended successfully, a failed one did not end successfully, rejected
// and expired ones never started, and expired ones were never published.
//
// Exempt are answers that the unit does not store [CMD-4]: to messages that it could not verify, or
// that were for another unit; and those older than its latest eight, which may all have been lost.
// A unit with new memory repeats nothing: this law does not allow for that.
func unknownSettles(chk *checker) {
	repeats := chk.repeats()
	for i := range chk.Commands {
		r := &chk.Commands[i]
		about := command(r.ID)
		switch r.State {
		case telematics.Unknown:
			chk.must(!repeats[unitCommand{r.Unit, r.ID}], about, "unknown, but unit %s repeats its final answer in each report", r.Unit)
		case telematics.Succeeded:
			chk.must(chk.started(r.ID) != nil && chk.succeeded(r.ID) != nil, about, "the record says succeeded, but no car executed it")
		case telematics.Failed:
			chk.must(chk.succeeded(r.ID) == nil, about, "the record says failed, but the car executed it")
		case telematics.Rejected, telematics.Expired:
			chk.must(chk.started(r.ID) == nil, about, "the record says %s, but the car started", r.State)
			chk.must(r.State != telematics.Expired || len(chk.messages[r.ID]) == 0, about, "the record says expired, but it was published")
		}
	}
}

type unitCommand struct {
	unit    telematics.Unit
	command telematics.CommandID
}

// repeats returns the commands whose final answers units repeat in their reports at the end: of
// each unit the latest that have one, in the order in which they first came.
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
		redisKeys := reported
		for _, e := range slices.Backward(answered) {
			if key := (unitCommand{unit, e.Command}); final[key] && redisKeys > 0 {
				repeats[key] = true
				redisKeys--
			}
		}
	}
	return repeats
}

const (
	// settledWithin is how long after its deadline a command may stay open [LAW-6].
	settledWithin = 5 * time.Second
	// leftToOwner is how much longer one may stay open after an outage: other instances leave it to
	// its owner until that has not written a beat for three seconds, and settle it then.
	leftToOwner = 5 * time.Second
)

// clockTolerance is how inaccurate the recorded times of a restart and a settlement may be.
const clockTolerance = 250 * time.Millisecond

// finalInTime checks that no command is open at the end, and that none stayed open for more than
// five seconds after its deadline while the service and Postgres were up [LAW-6]. The time starts
// again at each restart, as the service must first poll: what counts is the longest interval
// without interruption. An owner may need longer after an outage.
//
// A command that a late answer settled again was settled first at the time of its first audit log
// entry. Settlements have the time of the instance, not of Postgres: one that had to wait for
// Postgres counts from before that. One that was never sent is settled as expired by its owner
// alone, which may have written it late: what counts is for how long that one was up.
func finalInTime(chk *checker) {
	for i := range chk.Commands {
		r := &chk.Commands[i]
		about := command(r.ID)
		chk.must(!r.State.IsOpen(), about, "still open at the end: %s", r.State)
		if r.State.IsOpen() {
			continue
		}
		settled, deadline := chk.settledAt(r), r.Deadline.Add(-min(0, chk.ahead[r.ID]))
		up := chk.Up
		if reach, ok := chk.Reach[chk.instanceOf(r.ID)]; ok && r.State == telematics.Expired {
			up = reach
		}
		late := longest(up, deadline, settled)
		upBefore := slices.DeleteFunc(slices.Clone(up), func(i Interval) bool { return i.From.After(deadline) })
		inTime := longest(upBefore, deadline, settled) <= settledWithin+clockTolerance && late <= settledWithin+leftToOwner+clockTolerance
		chk.must(!settled.IsZero() && inTime, about,
			"settled %v after its deadline, though all was up for %v of it in a row",
			settled.Sub(deadline).Round(time.Millisecond), late.Round(time.Millisecond))
	}
}

// settledAt returns when a command was settled first; zero: never.
func (v *view) settledAt(r *Row) time.Time {
	first := r.Completed
	for _, l := range v.settlements(r) {
		if first.IsZero() || l.At.Before(first) {
			first = l.At
		}
	}
	return first
}

// maxTTL is the longest TTL of a command's key: the longest budget, the minute for late answers,
// and ten more seconds.
const maxTTL = 100 * time.Second

// maxSnapshotTTL is the longest TTL of the reported state of a vehicle.
const maxSnapshotTTL = 24 * time.Hour

// maxEventsTTL is the longest TTL of a stream of the event log.
const maxEventsTTL = 24 * time.Hour

// isEventLog reports whether a key is a stream of the event log.
func (e RedisKey) isEventLog() bool {
	return e.Key == "motorpool:events" || strings.HasPrefix(e.Key, "motorpool:events:")
}

// isSnapshot reports whether a key is the reported state of a vehicle.
func (e RedisKey) isSnapshot() bool { return strings.HasSuffix(e.Key, ":latest") }

// isStateList reports whether a key lists vehicles whose reported state Postgres does not have yet.
// Redis deletes it with its last entry; an expiry would lose some.
func (e RedisKey) isStateList() bool {
	return strings.HasPrefix(e.Key, "motorpool:state-due") || strings.HasPrefix(e.Key, "motorpool:state-writing")
}

// isPrimary reports whether a key says which Postgres server is the primary.
func (e RedisKey) isPrimary() bool { return e.Key == "motorpool:postgres" }

// Stays reports whether a key belongs to no command, and is not expected to expire soon.
func (e RedisKey) Stays() bool {
	return e.isEventLog() || e.isSnapshot() || e.isStateList() || e.isPrimary() || e.isOfInstances()
}

// isOfInstances reports whether the instances that run write a key again before it expires.
func (e RedisKey) isOfInstances() bool {
	return e.Key == "motorpool:installation" || e.Key == "motorpool:ready" || strings.HasPrefix(e.Key, "motorpool:turn:")
}

// redisExpires checks that every key in Redis has an expiry, and a short one after everything has
// settled. The event log and the reported states of vehicles may live longer. Exempt are the lists
// of vehicles whose state is not in Postgres yet, and which server is the primary.
func redisExpires(chk *checker) {
	chk.must(true, subject{}, "") // the reading itself
	for i := range chk.Pending {
		e := &chk.Pending[i]
		if e.isStateList() || e.isPrimary() {
			continue
		}
		about := command()
		if id := commandOf(e); chk.rows[id] != nil {
			about = command(id)
		}
		most := maxTTL + max(0, chk.ahead[commandOf(e)])
		switch {
		case e.isSnapshot():
			most = maxSnapshotTTL
		case e.isEventLog():
			most = maxEventsTTL
		}
		chk.must(e.TTL >= 0, about, "%s has no expiry", e.Key)
		chk.must(e.TTL <= most, about, "%s expires in %v", e.Key, e.TTL)
	}
}
