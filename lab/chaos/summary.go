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
	Untried    string               // why laws about bought units prove nothing; empty: they do
	Fired      map[string]time.Time // of a round of one fault
	Moved      int                  // units of an MQTT broker that was killed
}

// check checks the laws.
func (r *round) check(time.Duration) runner.Result {
	s := &summary{
		flags: r.flags, Load: r.loading, Injections: r.injections.All(), Evidence: r.evidence, Evicted: r.evicted.Load(),
		Fired: r.one.fired, Moved: len(r.moved),
	}
	if r.single() == "" {
		s.Untried = audit.Untried(s.Evidence)
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
}

// writeAll prints what a round of all faults has seen.
func (s *summary) writeAll(t io.Writer) {
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
	started := func(e simulator.Event) bool { return e.Kind == simulator.CommandStarted }
	if !slices.ContainsFunc(s.Evidence.Of(telematics.DefaultProtocol).Flights, started) {
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
	if s.Untried != "" {
		return s.Untried
	}
	for _, k := range Scheduled() {
		if count, _, missing := s.count(k.Name); count == 0 && !missing {
			return fmt.Sprintf("%q never happened", k.Name)
		}
	}
	return ""
}
