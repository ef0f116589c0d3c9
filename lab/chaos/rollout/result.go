package rollout

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"motorpool/lab/chaos/verdict"
	"motorpool/simulator"
	"motorpool/simulator/world"
	"motorpool/telematics"
)

// The laws.
const (
	noFailure = "a command is answered as executed, whatever is restarted"
	once      = "a command that is answered as executed was executed once"
	noOther   = "no vehicle executes a command without an answer to its caller"
)

// Result is a round.
type Result struct {
	Config
	verdict.Report
	Calls   map[string]int // by answer
	Took    time.Duration
	Median  time.Duration // of what callers waited
	Longest time.Duration
}

func newResult(c Config, calls []world.PlainCall, events []simulator.Event, took time.Duration) Result {
	r := Result{
		Config: c, Report: verdict.New(noFailure, once, noOther), Took: took,
		Calls: verdict.Count(calls, func(one world.PlainCall) string { return one.Answer }),
	}
	executed := map[telematics.CommandID]int{}
	for _, e := range events {
		if e.Kind == simulator.CommandEnded {
			executed[e.Command]++
		}
	}
	asked := map[telematics.CommandID]bool{}
	var waits []time.Duration
	for _, one := range calls {
		waits = append(waits, one.Took)
		r.Must(noFailure, one.Answer == world.Executed, "after %v: %s %s", one.Took.Round(time.Millisecond), one.Answer, one.Reason)
		if one.Answer == world.Executed {
			asked[one.Command] = true
			r.Must(once, executed[one.Command] == 1, "%s was executed %d times", one.Command, executed[one.Command])
		}
	}
	for id := range executed {
		r.Must(noOther, asked[id], "%s was executed, and no caller was answered so", id)
	}
	if slices.Sort(waits); len(waits) > 0 {
		r.Median, r.Longest = waits[len(waits)/2], waits[len(waits)-1]
	}
	return r
}

// leastCalls is how many commands each vehicle must have had for a round to prove something.
const leastCalls = 10

// Worthless returns why the round proves nothing, or "".
func (r Result) Worthless() string {
	if n := r.Checked[noFailure]; n < leastCalls*r.Vehicles {
		return fmt.Sprintf("only %d commands in all", n)
	}
	return ""
}

// Outcome returns how the laws were kept.
func (r *Result) Outcome() *verdict.Report { return &r.Report }

// Write prints a summary of the round.
func (r Result) Write(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nseed\t%d\n", r.Seed)
	fmt.Fprintf(t, "restarts\t%d of each of %d instances, behind HAProxy with TLS; %d vehicles\n", r.Restarts, instances, r.Vehicles)
	fmt.Fprintf(t, "time\t%v\n", r.Took.Round(time.Second))
	fmt.Fprintf(t, "commands\t%d, of which failed %d\n", r.Checked[noFailure], len(r.Of(noFailure)))
	fmt.Fprintf(
		t, "callers waited\t%v at the median, %v at the longest\n", r.Median.Round(time.Millisecond),
		r.Longest.Round(time.Millisecond),
	)
	verdict.WriteCounts(t, "answer", "calls", r.Calls)
	_ = t.Flush() // out is the terminal
	r.Report.Write(out, r.Worthless())
}
