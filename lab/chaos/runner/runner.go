// Package runner runs the rounds of the fault harness. A round of any kind is a [Round]: a world, a
// load, faults, and laws that its result has checked. The kinds are in packages chaos, maintenance
// and money.
package runner

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"motorpool/lab/chaos/verdict"
	"motorpool/lab/world"
)

// Config is what the caller says of a round. For what is zero, each kind has a default; it ignores
// what it does not have.
type Config struct {
	Seed      uint64
	Instances int
	Bookings  int
	Rentals   int
	Duration  time.Duration // of the load
	Progress  func(string)  // is called at each step. Defaults to nothing
}

// Kind makes a round of a kind. It starts nothing.
type Kind func(*world.World, Config) (Round, error)

// Round is a round. Its functions share what they have seen.
type Round struct {
	Starts string       // what the world has, for the progress
	World  []world.Step // returns when everything is ready
	// Load sends what callers send, and returns when the last is answered: for as long as it wants,
	// or until all faults are over. Nil: the faults need none.
	Load func(ctx context.Context, over <-chan struct{})
	// Faults injects the faults, and returns when they are over. An error ends the load.
	Faults func(context.Context) error
	// Settle waits until nothing changes any more, and collects the evidence. Nil: nothing does.
	Settle func(context.Context) error
	// Check checks the laws.
	Check func(took time.Duration) Result
}

// Result is the result of a round.
type Result struct {
	verdict.Report
	Summary   func(io.Writer) // prints it, with tabs between columns
	Worthless string          // why the round proves nothing; empty: it does not
	Done      int             // commands or operations that the service executed
	// Awaited is what the round has waited for generously: an error says what did not come in time,
	// a violation, not a failure of the harness.
	Awaited []error
}

// Run builds the world of a round, loads it, injects the faults, lets it settle, and checks. An
// error means that the world itself failed.
func Run(ctx context.Context, w *world.World, kind Kind, c Config) (Result, error) {
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	r, err := kind(w, c)
	if err != nil {
		return Result{}, err
	}
	begin := time.Now()
	c.Progress(fmt.Sprintf("seed %d: starting %s", c.Seed, r.Starts))
	if err := w.Build(ctx, r.World...); err != nil {
		return Result{}, err
	}
	if err := r.strike(ctx); err != nil {
		return Result{}, err
	}
	if r.Settle != nil {
		c.Progress("settling")
		if err := r.Settle(ctx); err != nil {
			return Result{}, err
		}
	}
	return r.Check(time.Since(begin)), ctx.Err()
}

// strike injects the faults under load, and returns when both are over.
func (r Round) strike(ctx context.Context) error {
	loading, stop := context.WithCancel(ctx)
	defer stop()
	over, loaded := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(loaded)
		if r.Load != nil {
			r.Load(loading, over)
		}
	}()
	err := r.Faults(ctx)
	if close(over); err != nil {
		stop()
	}
	<-loaded
	return cmp.Or(err, ctx.Err())
}

// Write prints the summary and the laws; the last line is the number of violations.
func (r Result) Write(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	r.Summary(t)
	_ = t.Flush() // out is the terminal
	r.Report.Write(out, r.Worthless)
}
