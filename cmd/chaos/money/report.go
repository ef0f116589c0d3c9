package money

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// shown is how many violations are printed.
const shown = 40

// Write prints a summary of the round.
func (r Result) Write(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	calls, operations := 0, map[string]int{}
	for _, n := range r.Counts[answerGroup] {
		calls += n
	}
	tries := 0
	for _, d := range r.Operations {
		name := "refused"
		if d.Done() {
			name = "done"
		}
		operations[string(d.Kind)+" "+name]++
		tries += d.Tries
	}
	fmt.Fprintf(t, "\nseed\t%d\n", r.Config.Seed)
	fmt.Fprintf(t, "bookings\t%d, %d instances\n", r.Config.Bookings, r.Config.Instances)
	fmt.Fprintf(t, "time\t%v: %v of load, %v until nothing was due\n", r.Took.Round(time.Second), r.Load.Round(time.Second), r.Settling.Round(time.Second))
	fmt.Fprintf(t, "calls\t%d, for %d operations\n", calls, len(r.Operations))
	section(t, "operation", operations)
	section(t, "charge", countBy(r.Charges, func(c ChargeRow) string { return string(c.Kind) + " " + string(c.State) }))
	section(t, "fault", r.Counts[faultGroup])
	section(t, "fault of the processor", r.Fired)
	section(t, "notice", r.Counts[noticeGroup])
	section(t, answerGroup, r.Counts[answerGroup])
	orphans := 0
	for _, m := range r.Ledger {
		if m.Approved == 0 && m.Attempts == 0 {
			orphans++
		}
	}
	fmt.Fprintf(t, "\nthe processor's ledger\t%d payments, %d of them never charged to a card\n", len(r.Ledger), orphans)
	fmt.Fprintf(t, "\nlaw\tchecked\n")
	for _, law := range laws {
		fmt.Fprintf(t, "%s\t%d\n", law, r.Report.Checked[law])
	}
	_ = t.Flush() // out is the terminal
	fmt.Fprintln(out)
	for i, v := range r.Report.Violations {
		if i == shown {
			fmt.Fprintf(out, "… and %d more\n", len(r.Report.Violations)-shown)
			break
		}
		fmt.Fprintf(out, "violation: %s\n", v)
	}
	if why := r.Worthless(); why != "" {
		fmt.Fprintf(out, "this round proves nothing: %s\n", why)
	}
	fmt.Fprintf(out, "violations: %d\n", len(r.Report.Violations))
}

func section[K ~string](out io.Writer, title string, counts map[K]int) {
	fmt.Fprintf(out, "\n%s\ttimes\n", title)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(out, "%s\t%d\n", string(name), counts[name])
	}
}

func countBy[T any](all []T, by func(T) string) map[string]int {
	counts := map[string]int{}
	for _, one := range all {
		counts[by(one)]++
	}
	return counts
}

// Worthless returns why the round proves nothing, or "".
func (r Result) Worthless() string {
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
	for _, law := range laws {
		if r.Report.Checked[law] == 0 {
			return fmt.Sprintf("%q was never checked", law)
		}
	}
	return ""
}

// Groups of counters.
const (
	answerGroup = "answer"  // of calls, by status and code
	faultGroup  = "fault"   // of processes
	noticeGroup = "notices" // of the processor, by what happened to them
)

// counters count what happens in a round. They are safe for concurrent use.
type counters struct {
	mu     sync.Mutex // guards counts
	counts map[string]map[string]int
}

func newCounters() *counters {
	return &counters{counts: map[string]map[string]int{answerGroup: {}, faultGroup: {}, noticeGroup: {}}}
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
