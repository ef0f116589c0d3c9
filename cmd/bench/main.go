// Command bench measures the service, each time against a floor: what the same machine, in the same run, does with nothing
// of ours in between. A ratio survives a change of the machine; a figure alone does not.
//
//	all      what follows but the events, with the figures that tell in bench.json
//	ingest   reports a second, written down, against a bare MQTT subscriber that only counts
//	command  a vehicle is locked over HTTP, against the bare MQTT round trip, and against a handler that writes nothing down
//	waiting  20,000 commands that wait at once: what each takes of memory, and what the crowd adds to the way of an answer
//	growth   what a command costs with a large fleet, a long history and more instances, against a small world beside it
//	status   reading a vehicle's status, against the bare HTTP library that answers the same bytes
//	events   500 readers of the live events, against the clock and against each other
//	startup  from the start to readiness, and what the service takes when it has nothing to do
//
// The servers are real, configured as in production, and Postgres waits for its disk. Whatever makes load, or takes
// it, is a process of its own: this program, started once more with a command that its help does not list.
// See docs/benchmarks.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"motorpool/cmd/internal/app"
)

type commands struct {
	All     all     `cmd:"" default:"withargs" help:"Everything but the live events, in turn; writes bench.json and a picture (default)."`
	Command command `cmd:"" help:"Locking vehicles over HTTP, against the bare MQTT round trip."`
	Waiting waiting `cmd:"" help:"Very many commands that wait for their vehicles at once: memory of each, and what the crowd adds to the way of an answer."`
	Growth  growth  `cmd:"" help:"What a command costs with a large fleet, a long history and more instances, against a small world beside it."`
	Ingest  ingest  `cmd:"" help:"Reports a second that are written down, against a subscriber that only counts."`
	Status  status  `cmd:"" help:"Reading the status of a vehicle, against a handler that has the answer at hand."`
	Events  events  `cmd:"" help:"Many readers of the live events: how late, whether all, and what becomes of those that stall or are cut."`
	Startup startup `cmd:"" help:"From the start to readiness, and what the service takes when it has nothing to do."`

	// The processes that the measurements start.
	Publish   publish   `cmd:"" hidden:""`
	Subscribe subscribe `cmd:"" hidden:""`
	Call      call      `cmd:"" hidden:""`
	Cars      cars      `cmd:"" hidden:""`
	Exchange  exchange  `cmd:"" hidden:""`
	Bare      bare      `cmd:"" hidden:""`
	Order     order     `cmd:"" hidden:""`
	Wave      wave      `cmd:"" hidden:""`
	Answer    answer    `cmd:"" hidden:""`
	Follow    follow    `cmd:"" hidden:""`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var c commands
	var settings app.Settings
	parser, err := kong.New(&c, append(settings.Options("BENCH"), kong.Name("bench"),
		kong.Description("Measures the service against floors of the same machine and run."),
		kong.BindTo(ctx, (*context.Context)(nil)))...)
	if err != nil {
		return err
	}
	chosen, err := parser.Parse(args)
	if err = errors.Join(settings.Problems(), err); err != nil {
		return err
	}
	if chosen.Selected().Hidden { // one of those that a measurement starts
		return chosen.Run()
	}
	return inTaskGroup(func() error { return chosen.Run() })
}
