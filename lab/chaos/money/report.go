package money

import (
	"fmt"
	"io"
	"strings"
	"time"

	"motorpool/lab/chaos/runner"
	"motorpool/lab/chaos/verdict"
)

// resultOf is what the rounds have in common. Without a reason, a law that was never checked is why
// the round proves nothing; facts prints what the round is of.
func (r *round) resultOf(
	report verdict.Report, done int, worthless string, took time.Duration, charges []ChargeRow, facts func(io.Writer),
) runner.Result {
	// Where commits are lost, only some operations are performed.
	if unchecked := report.Unchecked(); worthless == "" && !r.LostCommits && len(unchecked) > 0 {
		worthless = fmt.Sprintf("%q were never checked", unchecked)
	}
	return runner.Result{Report: report, Done: done, Worthless: worthless, Summary: func(t io.Writer) {
		fmt.Fprintf(t, "\nseed\t%d\n", r.Seed)
		fmt.Fprintf(
			t, "time\t%v: %v of load, %v until nothing was open or due; %d instances\n", took.Round(time.Second),
			r.loaded.Round(time.Second), r.settled.Round(time.Second), r.Instances,
		)
		facts(t)
		became := verdict.Count(charges, func(c ChargeRow) string { return string(c.Kind) + " " + string(c.State) })
		verdict.WriteCounts(t, "charge", "times", became)
		verdict.WriteCounts(t, "fault of the processor", "times", r.processor.Fired())
		verdict.WriteCounts(t, "fault", "times", verdict.Count(r.struck.All(), strings.Clone))
	}}
}

func (r *round) result(took time.Duration) runner.Result {
	return r.resultOf(Check(r.Evidence), len(r.Operations), r.worthless(), took, r.Charges, func(t io.Writer) {
		fmt.Fprintf(t, "bookings\t%d; %d payments in the processor's ledger\n", r.Bookings, len(r.Ledger))
		verdict.WriteCounts(t, "operation", "times", verdict.Count(r.Operations, func(o Operation) string {
			if o.Done() {
				return string(o.Kind) + " done"
			}
			return string(o.Kind) + " refused"
		}))
	})
}

// worthless returns why the round proves nothing, or "".
func (r *round) worthless() string {
	if r.LostCommits {
		if n := len(r.forgotten.All()); n < minLost {
			return fmt.Sprintf("only %d confirmed operations were lost", n)
		}
		if n := r.lostNames(); n < minLost {
			return fmt.Sprintf("only %d names of bookings were lost", n)
		}
		return ""
	}
	if why := r.faultless(); why != "" {
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
func (r *round) faultless() string {
	struck := verdict.Count(r.struck.All(), strings.Clone)
	for _, s := range r.faults {
		if want := s.howOften(r.Duration); struck[s.name] < want {
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
