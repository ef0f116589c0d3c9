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

// summary is what a round of commands has found.
type summary struct {
	flags
	Load       audit.Interval
	Injections []injection
	Evidence   audit.Evidence
	Evicted    int64
	Others     []audit.Tally        // by protocol
	Fired      map[string]time.Time // of a round of one fault
}

// check checks the laws.
func (r *round) check(time.Duration) runner.Result {
	s := &summary{
		flags: r.flags, Load: r.loading, Injections: r.injections.All(), Evidence: r.evidence, Evicted: r.evicted.Load(),
		Fired: r.one.fired,
	}
	if r.single() == "" {
		s.Others = audit.Tallies(s.Evidence)
	}
	result := runner.Result{
		Report: audit.Check(s.Evidence), Summary: s.write, Worthless: s.worthless(), Done: len(s.Evidence.Commands),
		Awaited: r.awaited.All(),
	}
	if r.single() != "" && s.Injections[0].Err == nil {
		alerts.Check(&result.Report, alerts.Round{
			Fault: r.single(), Of: AlertsOf[r.single()], From: s.Injections[0].From, To: s.Injections[0].To,
			Fired: s.Fired, Stalled: r.uptime.stalledWithin,
		})
	}
	return result
}

// write prints the summary.
func (s *summary) write(t io.Writer) {
	e, load := s.Evidence, s.Load.To.Sub(s.Load.From)
	fmt.Fprintf(t, "\nseed\t%d\n", s.Seed)
	fmt.Fprintf(t, "load\t%v, %d instances, %d vehicles\n", load.Round(time.Second), s.Instances, s.Vehicles)
	if s.Day {
		fmt.Fprintf(t, "day\t%v of OVMS and Teltonika units, %d times as fast\n", (load * daySpeed).Round(time.Second), daySpeed)
	}
	fmt.Fprintf(t, "commands\t%d on record (%d requested), of %d calls\n", len(e.Commands), s.Commands, len(e.Calls))
	if s.single() != "" {
		s.writeOne(t)
	} else {
		s.writeAll(t)
	}
	writeAnswers(t, e)
	writeOthers(t, s.Others)
}

// writeAll prints what a round of all faults has seen.
func (s *summary) writeAll(t io.Writer) {
	e := s.Evidence
	fmt.Fprintf(t, "audit log\t%d entries, %d of them sampled while they were new\n", len(e.AuditLog), len(e.Sampled))
	d := deliveriesOf(e.Of(telematics.DefaultProtocol).Flights)
	fmt.Fprintf(
		t, "published\t%d messages; cars of protocol v1 received %d, %d of them repetitions\n", len(e.Published),
		d.received, d.received-d.distinct,
	)
	fmt.Fprintf(t, "signing keys\t%d signed them\n", s.keys())
	fmt.Fprintf(t, "halts\t%d; the last message came %v after one was stored\n", len(e.Halts), s.lastInHalt().Round(time.Millisecond))
	fmt.Fprintf(t, "in these cars\t%d commands started, %d of them interrupted by a restart\n", d.started, d.interrupted)
	p50, p99, n := s.latency()
	fmt.Fprintf(t, "executed without faults\t%d calls: p50 %v, p99 %v\n", n, p50, p99)
	for _, f := range e.Floods {
		p50, p99, n := s.latencyWithin(func(from, to time.Time) bool { return from.After(f.From) && to.Before(f.To) })
		fmt.Fprintf(t, "executed while one unit floods\t%d calls: p50 %v, p99 %v; %d of its answers dropped\n", n, p50, p99, f.Limited)
	}
	fmt.Fprintf(
		t, "flood of one client\t%d requests in %v, %d over its limit; %d signatures stored\n", e.ClientFlood.Requests,
		e.ClientFlood.To.Sub(e.ClientFlood.From).Round(100*time.Millisecond), e.ClientFlood.Limited, e.ClientFlood.Kept,
	)
	fmt.Fprintf(t, "service up\t%v in %d intervals\n", s.up().Round(time.Second), len(e.Up))

	fmt.Fprintf(t, "\nfault\ttimes\ttotal time\n")
	for _, k := range Scheduled() {
		count, total, missing := s.count(k.Name)
		if missing {
			fmt.Fprintf(t, "%s\tnot available here\t\n", k.Name)
			continue
		}
		fmt.Fprintf(t, "%s\t%d\t%v\n", k.Name, count, total.Round(100*time.Millisecond))
	}
}

// writeOthers prints the outcomes of commands to units of protocols other than v1.
func writeOthers(t io.Writer, all []audit.Tally) {
	row := func(name string, of func(audit.Tally) any) {
		fmt.Fprint(t, name)
		for _, tally := range all {
			fmt.Fprintf(t, "\t%v", of(tally))
		}
		fmt.Fprintln(t)
	}
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(t)
	row("units", func(t audit.Tally) any { return t.Protocol })
	for _, state := range []telematics.State{
		telematics.Succeeded, telematics.Unknown, telematics.Failed, telematics.Rejected, telematics.Expired,
	} {
		row("  "+string(state), func(t audit.Tally) any { return t.States[state] })
	}
	row("  succeeded by a report", func(t audit.Tally) any { return t.Confirmed })
	row("  exempt: intruder, or a repeated answer", func(t audit.Tally) any { return t.Exempt })
	row("starts in the vehicles", func(t audit.Tally) any { return t.Started })
	row("best effort denied, calls", func(t audit.Tally) any { return t.Denied })
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

// deliveries are sums of the flight recorders.
type deliveries struct{ received, distinct, started, interrupted int }

func deliveriesOf(flights []simulator.Event) deliveries {
	var d deliveries
	received, started, interrupted := map[telematics.CommandID]bool{}, map[telematics.CommandID]bool{}, map[telematics.CommandID]bool{}
	for _, f := range flights {
		switch {
		case f.Kind == simulator.CommandReceived:
			d.received++
			received[f.Command] = true
		case f.Kind == simulator.CommandStarted:
			d.started++
			started[f.Command] = true
		case f.Reason == telematics.Interrupted && started[f.Command]:
			interrupted[f.Command] = true
		}
	}
	d.distinct, d.interrupted = len(received), len(interrupted)
	return d
}

// latency returns the latency of executed commands that no fault disturbed.
func (s *summary) latency() (p50, p99 time.Duration, n int) {
	isUndisturbed := withoutFaults(s.Injections)
	return s.latencyWithin(func(from, to time.Time) bool {
		return isUndisturbed(from, to) && from.Before(s.Evidence.ClientFlood.From) &&
			!slices.ContainsFunc(
				s.Evidence.Floods,
				func(f audit.Flood) bool { return to.After(f.From) && from.Before(f.To.Add(aftermath)) },
			)
	})
}

// latencyWithin returns the latency of executed commands in some intervals.
func (s *summary) latencyWithin(counts func(from, to time.Time) bool) (p50, p99 time.Duration, n int) {
	var took []time.Duration
	for _, c := range s.Evidence.Calls {
		if c.Outcome == telematics.Executed && !c.Replayed && counts(c.Start, c.End) {
			took = append(took, c.End.Sub(c.Start))
		}
	}
	if len(took) == 0 {
		return 0, 0, 0
	}
	slices.Sort(took)
	at := func(p int) time.Duration { return took[(len(took)-1)*p/100].Round(time.Millisecond) }
	return at(50), at(99), len(took)
}

// keys counts the keys that signed messages.
func (s *summary) keys() int {
	ids := map[string]bool{}
	for _, m := range s.Evidence.Published {
		if m.Signed {
			ids[m.Key] = true
		}
	}
	return len(ids)
}

// lastInHalt returns the longest time after a halt until a message to a halted vehicle.
func (s *summary) lastInHalt() time.Duration {
	var last time.Duration
	for _, h := range s.Evidence.Halts {
		for _, m := range s.Evidence.Published {
			if h.Stops(s.Evidence.Agencies[m.Unit]) && !m.Echoed && m.At.Before(h.Lifting) {
				last = max(last, m.At.Sub(h.Written))
			}
		}
	}
	return last
}

func (s *summary) up() time.Duration {
	var up time.Duration
	for _, i := range s.Evidence.Up {
		to := i.To
		if to.IsZero() {
			to = time.Now()
		}
		up += to.Sub(i.From)
	}
	return up
}

// count returns how often and how long a kind of fault happened.
func (s *summary) count(kind string) (count int, total time.Duration, missing bool) {
	for _, i := range s.Injections {
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
func (s *summary) worthless() string {
	if n := len(s.Evidence.Commands); n < cmp.Or(s.Commands, 2)/2 {
		return fmt.Sprintf("only %d of %d commands are on record", n, s.Commands)
	}
	if s.single() != "" {
		return s.worthlessOne()
	}
	if deliveriesOf(s.Evidence.Of(telematics.DefaultProtocol).Flights).started == 0 {
		return "no car executed anything"
	}
	if s.keys() < 2 {
		return "one key signed everything"
	}
	if s.Evidence.ClientFlood.Requests < clientFloodRequests/4 {
		return fmt.Sprintf("a flood of only %d requests", s.Evidence.ClientFlood.Requests)
	}
	if s.Evicted == 0 {
		return "redis evicted nothing"
	}
	for _, t := range s.Others {
		if t.Started == 0 || t.Confirmed == 0 || t.Denied == 0 {
			return fmt.Sprintf("of %s units %d starts, %d confirmed commands, %d denied", t.Protocol, t.Started, t.Confirmed, t.Denied)
		}
	}
	for _, k := range Scheduled() {
		if count, _, missing := s.count(k.Name); count == 0 && !missing {
			return fmt.Sprintf("%q never happened", k.Name)
		}
	}
	return ""
}
