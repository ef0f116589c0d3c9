// Command bench measures the service, each time against a floor: what the same machine does in the
// same run without the service. A ratio survives a change of the machine; a figure alone does not.
// See docs/benchmarks.md.
//
//	load     generates load, in separate processes
//	measure  experiments, floors and statistics
//	report   tables and bench.json
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"motorpool/cmd/bench/load"
	"motorpool/cmd/bench/measure"
	"motorpool/cmd/bench/report"
	"motorpool/internal/settings"
)

type commands struct {
	measure.Setup
	JSON bool `name:"json" help:"Print what was measured as JSON, instead of tables."`

	All     all             `cmd:"" default:"withargs" help:"Everything but scale, in turn; writes bench.json (default)."`
	Command measure.Command `cmd:"" help:"Locking vehicles over HTTP, against the bare MQTT round trip, and a handler that stores nothing."`
	Waiting measure.Waiting `cmd:"" help:"Very many concurrent commands that wait for their vehicles: memory, and latency of answers."`
	Growth  measure.Growth  `cmd:"" help:"What a command costs with a large fleet, a long history and more instances, against a small world."`
	Ingest  measure.Ingest  `cmd:"" help:"Reports a second that are stored, against a subscriber that counts them."`
	Fleet   measure.Fleet   `cmd:"" help:"What a report costs of a large fleet whose vehicles report once in 40 s: CPU, WAL, memory, and how far Postgres is behind."`
	Scale   measure.Scale   `cmd:"" help:"A million vehicles on record and 100,000 connected, against a thousand: start-up, presence, memory, commands, reports, lists."`

	Job job `cmd:"" hidden:""`
}

// job is a process that a measurement starts.
type job struct {
	Name     string `arg:""`
	Settings string `arg:""`
}

// all is one experiment after the other.
type all struct {
	Short bool   `help:"Everything, briefly, in a minute and a half: small and short loads, and a faster network."`
	Out   string `default:"bench.json" placeholder:"FILE" help:"Of all that was measured (default ${default})."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(settings.ExitCode(err))
	}
}

func run(ctx context.Context, args []string) error {
	var c commands
	var reader settings.Reader
	parser, err := kong.New(&c, append(reader.Options("BENCH"), kong.Name("bench"),
		kong.Description("Measures the service against floors of the same machine and run."))...)
	if err != nil {
		return err
	}
	chosen, err := reader.Parse(parser, args)
	if err != nil {
		return err
	}
	name := chosen.Selected().Name
	if name == load.Command {
		return load.Run(ctx, c.Job.Name, c.Job.Settings,
			&load.Requests{}, &load.Waiters{}, &load.Units{}, &load.ConnectedUnits{}, &load.Reports{},
			&measure.EchoFloor{}, &measure.FairFloor{}, &measure.SubscriberFloor{})
	}
	results := &measure.Results{Machine: measure.ThisMachine(), Rounds: c.Rounds}
	if results.Machine.SessionGroups {
		measure.Say("Linux schedules each connection of Postgres as a group here, and some answers will be late; run: systemd-run --user --scope -p CPUWeight=100 make bench")
	}
	experiments := []measure.Experiment{}
	if name == "all" {
		if experiments, err = c.All.experiments(); err != nil {
			return err
		}
	} else {
		experiments = append(experiments, chosen.Selected().Target.Addr().Interface().(measure.Experiment))
	}
	var failures []error
	for _, e := range experiments { // also after one that failed
		what := reflect.TypeOf(e).Elem().Name()
		measure.Say("%s", what)
		if err := e.Measure(ctx, c.Setup, results); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", what, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	results.Sum()
	if name == "all" {
		failures = append(failures, c.All.write(results))
	}
	return errors.Join(append(failures, c.print(results))...)
}

func (c *commands) print(r *measure.Results) error {
	if !c.JSON {
		return report.Tables(os.Stdout, r)
	}
	text, err := report.JSON(r)
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	return err
}

// write writes the file.
func (a *all) write(r *measure.Results) error {
	text, err := report.JSON(r)
	if err == nil {
		err = os.WriteFile(a.Out, text, 0o644)
	}
	if err == nil {
		measure.Say("the results are in %s", a.Out)
	}
	return err
}

// experiments returns all experiments at their size.
func (a *all) experiments() ([]measure.Experiment, error) {
	var (
		command measure.Command
		waiting measure.Waiting
		ingest  measure.Ingest
		fleet   measure.Fleet
		growth  measure.Growth
	)
	experiments := []measure.Experiment{&command, &waiting, &ingest, &fleet, &growth}
	for _, e := range experiments {
		if err := kong.ApplyDefaults(e); err != nil {
			return nil, err
		}
	}
	ingest.Vehicles, ingest.Soak = ingest.Vehicles[:1], 0
	if a.Short {
		command.InFlight, command.Duration = []int{1, 256}, 1500*time.Millisecond
		waiting.Vehicles, waiting.Connections, waiting.Network, waiting.Ramp = 2000, 4, time.Second, 1500*time.Millisecond
		ingest.Duration = time.Second
		fleet.Vehicles, fleet.Rate, fleet.Duration, fleet.StateInterval = 2000, 500, 8*time.Second, 2*time.Second
		growth.Vehicles, growth.Listening, growth.Connected, growth.History = []int{500}, 500, 0, 20_000
		growth.InFlight, growth.Duration = 32, 250*time.Millisecond
	}
	return experiments, nil
}
