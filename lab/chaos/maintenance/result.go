package maintenance

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"motorpool/lab/chaos/verdict"
)

// The laws.
const (
	notRefused = "no login of a module is refused"
	comesBack  = "a module is connected again after each step"
	guarded    = "the password of a running module is not replaced"
)

// Result is a round.
type Result struct {
	Config
	verdict.Report
	Done map[string]int // steps, by name
	Took time.Duration
}

func newResult(c Config) Result {
	return Result{Config: c, Report: verdict.New(notRefused, comesBack, guarded), Done: map[string]int{}}
}

// Worthless returns why the round proves nothing, or "".
func (r Result) Worthless() string {
	for _, s := range steps {
		if r.Done[s.name] == 0 {
			return "never done: " + s.name
		}
	}
	if len(r.Unchecked()) > 0 {
		return fmt.Sprintf("never checked: %q", r.Unchecked())
	}
	return ""
}

// Outcome returns how the laws were kept.
func (r *Result) Outcome() *verdict.Report { return &r.Report }

// Write prints a summary of the round.
func (r Result) Write(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nseed\t%d\n", r.Seed)
	fmt.Fprintf(t, "modules\t%d at the beginning\n", r.Modules)
	fmt.Fprintf(t, "time\t%v\n", r.Took.Round(time.Second))
	verdict.WriteCounts(t, "step", "times", r.Done)
	_ = t.Flush() // out is the terminal
	r.Report.Write(out, r.Worthless())
}
