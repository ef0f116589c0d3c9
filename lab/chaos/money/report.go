package money

import (
	"fmt"
	"io"
	"time"

	"motorpool/lab/chaos/runner"
	"motorpool/lab/chaos/verdict"
)

func (r *round) result(took time.Duration) runner.Result {
	counts := counted(r.seen.All())
	result := runner.Result{Report: Check(r.Evidence), Done: len(r.Operations)}
	result.Summary = func(t io.Writer) { r.summary(t, took, counts) }
	result.Worthless = r.worthless(counts)
	// Where commits are lost, only some operations are performed.
	if result.Worthless == "" && !r.LostCommits && len(result.Unchecked()) > 0 {
		result.Worthless = fmt.Sprintf("%q were never checked", result.Unchecked())
	}
	return result
}

func (r *round) summary(t io.Writer, took time.Duration, counts map[string]map[string]int) {
	fmt.Fprintf(t, "\nseed\t%d\n", r.Seed)
	fmt.Fprintf(t, "bookings\t%d, %d instances\n", r.Bookings, r.Instances)
	r.writeTimes(t, took)
	fmt.Fprintf(t, "calls\t%d, for %d operations\n", sum(counts[answerGroup]), len(r.Operations))
	verdict.WriteCounts(t, "operation", "times", verdict.Count(r.Operations, func(o Operation) string {
		if o.Done() {
			return string(o.Kind) + " done"
		}
		return string(o.Kind) + " refused"
	}))
	r.writeCharges(t, r.Charges, counts, faultGroup, lostGroup, noticeGroup, answerGroup)
	if r.LostCommits {
		fmt.Fprintf(t, "\nnames of bookings\t%d references and ids shown, %d of them lost\n", len(r.Shown), r.lostNames())
	}
	orphans := 0
	for _, m := range r.Ledger {
		if m.Approved == 0 && m.Attempts == 0 {
			orphans++
		}
	}
	fmt.Fprintf(t, "\nthe processor's ledger\t%d payments, %d of them never charged to a card\n", len(r.Ledger), orphans)
}

func (r *round) writeTimes(t io.Writer, took time.Duration) {
	fmt.Fprintf(
		t, "time\t%v: %v of load, %v until nothing was open or due\n", took.Round(time.Second), r.loaded.Round(time.Second),
		r.settled.Round(time.Second),
	)
}

// writeCharges writes what became of charges, and how often what is in some groups happened.
func (r *round) writeCharges(t io.Writer, charges []ChargeRow, counts map[string]map[string]int, groups ...string) {
	became := verdict.Count(charges, func(c ChargeRow) string { return string(c.Kind) + " " + string(c.State) })
	verdict.WriteCounts(t, "charge", "times", became)
	verdict.WriteCounts(t, "fault of the processor", "times", r.processor.Fired())
	for _, group := range groups {
		verdict.WriteCounts(t, group, "times", counts[group])
	}
}

// worthless returns why the round proves nothing, or "".
func (r *round) worthless(counts map[string]map[string]int) string {
	if r.LostCommits {
		if n := sum(counts[lostGroup]); n < minLost {
			return fmt.Sprintf("only %d confirmed operations were lost", n)
		}
		if n := r.lostNames(); n < minLost {
			return fmt.Sprintf("only %d names of bookings were lost", n)
		}
		return ""
	}
	if why := r.faultless(counts); why != "" {
		return why
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
	return ""
}

// faultless returns which fault never happened, or happened too seldom, or "".
func (r *round) faultless(counts map[string]map[string]int) string {
	for _, s := range r.faults {
		if want := s.howOften(r.Duration); counts[faultGroup][s.name] < want {
			return fmt.Sprintf("%q happened less than %d times", s.name, want)
		}
	}
	fired := r.processor.Fired()
	for _, f := range processorFaults {
		if fired[f.Kind] == 0 {
			return fmt.Sprintf("the processor's fault %q never happened", f.Kind)
		}
	}
	return ""
}

func sum(counts map[string]int) (all int) {
	for _, n := range counts {
		all += n
	}
	return all
}

// lostNames counts the references and ids that were shown, and are not on record.
func (e *Evidence) lostNames() (n int) {
	named := map[Name]bool{}
	for _, name := range e.Named {
		named[Name{Name: name.Name, Of: name.Of}] = true
	}
	for _, name := range e.Shown {
		if !named[Name{Name: name.Name, Of: name.Of}] {
			n++
		}
	}
	return n
}

// Groups of what happens.
const (
	answerGroup = "answer"            // of calls, by status and code
	faultGroup  = "fault"             // of processes
	lostGroup   = "lost and repeated" // confirmed operations that the record forgot
	noticeGroup = "notice"            // of the processor, by what happened to them
)

// seen is something that happened in a round.
type seen struct{ group, name string }

// counted counts what happened, by group and name.
func counted(all []seen) map[string]map[string]int {
	counts := map[string]map[string]int{answerGroup: {}, faultGroup: {}, lostGroup: {}, noticeGroup: {}}
	for _, one := range all {
		counts[one.group][one.name]++
	}
	return counts
}
