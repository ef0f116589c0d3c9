package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"motorpool/lab/chaos/alerts"
	"motorpool/lab/chaos/audit"
	"motorpool/lab/chaos/runner"
	"motorpool/lab/chaos/verdict"
	"motorpool/simulator"
	"motorpool/telematics"
)

// check checks the laws.
func (r *round) check(time.Duration) runner.Result {
	result := runner.Result{
		Report: audit.Check(r.evidence), Summary: r.write, Worthless: r.worthless(), Done: len(r.evidence.Commands),
		Awaited: r.awaited.All(),
	}
	if struck := r.injections.All(); r.single() != "" && struck[0].Err == nil {
		alerts.Check(&result.Report, alerts.Round{
			Fault: r.single(), Of: AlertsOf[r.single()], From: struck[0].From, To: struck[0].To,
			Fired: r.one.fired, Stalled: r.uptime.stalledWithin,
		})
	}
	return result
}

// write prints the summary.
func (r *round) write(t io.Writer) {
	e, load := r.evidence, r.loading.To.Sub(r.loading.From)
	fmt.Fprintf(t, "\nseed\t%d\n", r.Seed)
	fmt.Fprintf(t, "load\t%v, %d instances, %d vehicles\n", load.Round(time.Second), r.Instances, r.Vehicles)
	if r.Day {
		fmt.Fprintf(t, "day\t%v of OVMS and Teltonika units, %d times as fast\n", (load * daySpeed).Round(time.Second), daySpeed)
	}
	fmt.Fprintf(t, "commands\t%d on record (%d requested), of %d calls\n", len(e.Commands), r.Commands, len(e.Calls))
	if r.single() != "" {
		r.writeOne(t)
	} else {
		r.writeAll(t)
	}
	writeAnswers(t, e)
}

// writeAll prints what a round of all faults has seen.
func (r *round) writeAll(t io.Writer) {
	fmt.Fprintf(t, "\nfault\ttimes\ttotal time\n")
	for _, k := range Scheduled() {
		count, total, missing := r.count(k.Name)
		if missing {
			fmt.Fprintf(t, "%s\tnot available here\t\n", k.Name)
			continue
		}
		fmt.Fprintf(t, "%s\t%d\t%v\n", k.Name, count, total.Round(100*time.Millisecond))
	}
}

// writeAnswers prints what callers were answered, and the states of the commands on record.
func writeAnswers(t io.Writer, e audit.Evidence) {
	verdict.WriteCounts(t, "answer", "calls", verdict.Count(e.Calls, func(c audit.Call) string {
		switch {
		case c.Status == 0:
			return "none (cut, killed, hung up)"
		case c.Replayed:
			return fmt.Sprintf("%d %s (replayed)", c.Status, c.Code)
		}
		return fmt.Sprintf("%d %s", c.Status, c.Code)
	}))
	verdict.WriteCounts(t, "state", "commands", verdict.Count(e.Commands, func(r audit.Row) string {
		if r.Late {
			return string(r.State) + " (late)"
		}
		return string(r.State)
	}))
}

// signers counts the keys that signed messages.
func (r *round) signers() int {
	ids := map[string]bool{}
	for _, m := range r.evidence.Published {
		if m.Signed {
			ids[m.Key] = true
		}
	}
	return len(ids)
}

// count returns how often and how long a kind of fault happened.
func (r *round) count(kind string) (count int, total time.Duration, missing bool) {
	for _, i := range r.injections.All() {
		switch {
		case i.Kind.Name != kind:
		case errors.Is(i.Err, errUnsupported):
			missing = true
		default:
			count++
			total += i.To.Sub(i.From)
		}
	}
	return count, total, missing
}

// worthless returns why the round proves nothing, or "".
func (r *round) worthless() string {
	if n := len(r.evidence.Commands); n < cmp.Or(r.Commands, 2)/2 {
		return fmt.Sprintf("only %d of %d commands are on record", n, r.Commands)
	}
	if r.single() != "" {
		return r.worthlessOne()
	}
	started := func(e simulator.Event) bool { return e.Kind == simulator.CommandStarted }
	if !slices.ContainsFunc(r.evidence.Of(telematics.DefaultProtocol).Flights, started) {
		return "no car executed anything"
	}
	if r.signers() < 2 {
		return "one key signed everything"
	}
	if r.evidence.ClientFlood.Requests < clientFloodRequests/4 {
		return fmt.Sprintf("a flood of only %d requests", r.evidence.ClientFlood.Requests)
	}
	if r.evicted.Load() == 0 {
		return "redis evicted nothing"
	}
	if why := audit.Untried(r.evidence); why != "" {
		return why
	}
	for _, k := range Scheduled() {
		if count, _, missing := r.count(k.Name); count == 0 && !missing {
			return fmt.Sprintf("%q never happened", k.Name)
		}
	}
	return ""
}
