package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"motorpool/lab/chaos/fault"
	"motorpool/lab/chaos/runner"
)

// The faults that are in no other round, one round after the other.

const (
	everyFault    = "all"
	briefCommands = 1000
	briefDuration = 20 * time.Second

	presenceStoredLate = "presence-stored-late"
)

// faultsAlone lists the faults that are in no other round, as --fault takes them.
func faultsAlone() []string { return append(fault.Alone(), postgresAsync, commitsLost) }

// of returns the flags of the round of one of the faults.
func (f flags) of(name string) flags {
	f.Fault = name
	switch name {
	case postgresAsync, commitsLost:
		f.Commands, f.Duration = 0, 0 // fixed
	case presenceStoredLate:
		f.Commands, f.Duration = 2*f.Commands, 2*f.Duration // it takes 20 s itself
	}
	return f
}

// each is the result of one of several rounds.
type each struct {
	fault string
	of    *runner.Result // nil: the harness broke
	code  int
	took  time.Duration
}

// runEach runs the round of each fault, and prints those that found something, or prove nothing,
// and a table of all.
func (f flags) runEach(ctx context.Context, out io.Writer) (int, error) {
	var all []each
	for _, name := range faultsAlone() {
		one, begin := f.of(name), time.Now()
		if err := one.complete(); err != nil {
			return worthless, err
		}
		progress("fault " + name)
		res, code, err := one.runInFolder(ctx)
		if ctx.Err() != nil {
			return worthless, ctx.Err()
		}
		if err != nil {
			fmt.Fprintf(out, "\n%s: %v\n", name, err)
		}
		if res != nil && code != 0 {
			res.Write(out)
		}
		all = append(all, each{name, res, code, time.Since(begin)})
	}
	return writeEach(out, all), nil
}

// writeEach prints a table of rounds, and returns the exit code of all.
func writeEach(out io.Writer, all []each) (code int) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nfault\tcommands\tviolations\tseconds\t\n")
	violations := 0
	for _, e := range all {
		commands, found, why := "–", "–", "the harness broke"
		if e.of != nil {
			n := len(e.of.Violations)
			commands, found, why = fmt.Sprint(e.of.Done), fmt.Sprint(n), e.of.Worthless
			violations += n
		}
		switch {
		case e.of != nil && why != "":
			why = "proves nothing: " + why
		case e.code == violated && found == "0":
			why = "data races"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.0f\t%s\n", e.fault, commands, found, e.took.Seconds(), why)
		if e.code == violated || code == 0 {
			code = e.code
		}
	}
	_ = t.Flush() // out is the terminal
	fmt.Fprintf(out, "violations: %d\n", violations)
	return code
}
