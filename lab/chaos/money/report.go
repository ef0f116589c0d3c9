package money

import (
	"fmt"
	"io"
	"maps"
	"sync"
	"text/tabwriter"
	"time"

	"motorpool/lab/chaos/verdict"
)

// Write prints a summary of the round.
func (r Result) Write(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	calls := 0
	for _, n := range r.Counts[answerGroup] {
		calls += n
	}
	fmt.Fprintf(t, "\nseed\t%d\n", r.Config.Seed)
	fmt.Fprintf(t, "bookings\t%d, %d instances\n", r.Config.Bookings, r.Config.Instances)
	fmt.Fprintf(
		t, "time\t%v: %v of load, %v until nothing was due\n", r.Took.Round(time.Second), r.Load.Round(time.Second),
		r.Settling.Round(time.Second),
	)
	fmt.Fprintf(t, "calls\t%d, for %d operations\n", calls, len(r.Operations))
	verdict.WriteCounts(t, "operation", "times", verdict.Count(r.Operations, func(o Operation) string {
		if o.Done() {
			return string(o.Kind) + " done"
		}
		return string(o.Kind) + " refused"
	}))
	verdict.WriteCounts(
		t, "charge", "times",
		verdict.Count(r.Charges, func(c ChargeRow) string { return string(c.Kind) + " " + string(c.State) }),
	)
	verdict.WriteCounts(t, "fault", "times", r.Counts[faultGroup])
	verdict.WriteCounts(t, "fault of the processor", "times", r.Fired)
	verdict.WriteCounts(t, "lost and repeated", "times", r.Counts[lostGroup])
	verdict.WriteCounts(t, "notice", "times", r.Counts[noticeGroup])
	verdict.WriteCounts(t, answerGroup, "times", r.Counts[answerGroup])
	if r.Config.LostCommits {
		fmt.Fprintf(t, "\nnames of bookings\t%d references and ids shown, %d of them lost\n", len(r.Shown), r.lostNames())
	}
	orphans := 0
	for _, m := range r.Ledger {
		if m.Approved == 0 && m.Attempts == 0 {
			orphans++
		}
	}
	fmt.Fprintf(t, "\nthe processor's ledger\t%d payments, %d of them never charged to a card\n", len(r.Ledger), orphans)
	_ = t.Flush() // out is the terminal
	r.Report.Write(out, r.Worthless())
}

// Outcome returns how the laws were kept.
func (r *Result) Outcome() *verdict.Report { return &r.Report }

// Worthless returns why the round proves nothing, or "".
func (r Result) Worthless() string {
	if r.Config.LostCommits {
		lost := 0
		for _, n := range r.Counts[lostGroup] {
			lost += n
		}
		if lost < minLost {
			return fmt.Sprintf("only %d confirmed operations were lost", lost)
		}
		if n := r.lostNames(); n < minLost {
			return fmt.Sprintf("only %d names of bookings were lost", n)
		}
		return ""
	}
	for _, s := range faults {
		if want := s.howOften(r.Config.Duration); r.Counts[faultGroup][s.name] < want {
			return fmt.Sprintf("%q happened less than %d times", s.name, want)
		}
	}
	for _, f := range processorFaults {
		if r.Fired[f.Kind] == 0 {
			return fmt.Sprintf("the processor's fault %q never happened", f.Kind)
		}
	}
	done := map[OperationKind]int{}
	for _, d := range r.Operations {
		if d.Done() {
			done[d.Kind]++
		}
	}
	for kind := range activities {
		if done[kind] == 0 {
			return fmt.Sprintf("no %s was done", kind)
		}
	}
	if laws := r.Report.Unchecked(); len(laws) > 0 {
		return fmt.Sprintf("%q were never checked", laws)
	}
	return ""
}

// lostNames counts the references and ids that were shown, and are not on record.
func (r Result) lostNames() (n int) {
	named := map[Name]bool{}
	for _, name := range r.Named {
		named[Name{Name: name.Name, Of: name.Of}] = true
	}
	for _, name := range r.Shown {
		if !named[Name{Name: name.Name, Of: name.Of}] {
			n++
		}
	}
	return n
}

// Groups of counters.
const (
	answerGroup = "answer"  // of calls, by status and code
	faultGroup  = "fault"   // of processes
	lostGroup   = "lost"    // confirmed operations that the record forgot
	noticeGroup = "notices" // of the processor, by what happened to them
)

// counters count what happens in a round. They are safe for concurrent use.
type counters struct {
	mu     sync.Mutex // guards counts
	counts map[string]map[string]int
}

func newCounters() *counters {
	return &counters{counts: map[string]map[string]int{answerGroup: {}, faultGroup: {}, lostGroup: {}, noticeGroup: {}}}
}

func (f *counters) add(group, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[group][name]++
}

func (f *counters) all() map[string]map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]map[string]int{}
	for group, counts := range f.counts {
		all[group] = maps.Clone(counts)
	}
	return all
}
