// Command bench measures the service, each time against a floor: what the same machine does in the
// same run without the service. A ratio survives a change of the machine; a figure alone does not.
// See docs/benchmarks.md.
//
//	load     generates load, in separate processes
//	floor    does a part of what the service does, likewise
//	measure  has the experiments
//	report   has what was measured, ratios and bench.json
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"motorpool/internal/settings"
	"motorpool/lab/bench/floor"
	"motorpool/lab/bench/load"
	"motorpool/lab/bench/measure"
	"motorpool/lab/bench/report"
)

type commands struct {
	measure.Setup
	Out string `default:"bench.json" placeholder:"FILE" help:"For all that was measured."`

	All struct {
		Short bool `help:"Everything, briefly, in two minutes: small and short loads, and a faster network."`
	} `cmd:"" default:"withargs" help:"Everything in turn, scale with 100,000 vehicles and five million audit log entries (default)."`
	experiments
	Job struct {
		Name     string `arg:""`
		Settings string `arg:""`
	} `cmd:"" hidden:""`
}

type experiments struct {
	Command measure.Command `cmd:"" help:"Commands over HTTP, against an MQTT round trip, and handlers that store nothing, or all."`
	Waiting measure.Waiting `cmd:"" help:"Very many commands that wait for their vehicles: memory, and latency of answers."`
	Ingest  measure.Ingest  `cmd:"" help:"Reports a second that are stored, against a subscriber that counts them."`
	Fleet   measure.Fleet   `cmd:"" help:"What a report costs where each vehicle reports once in 40 s: CPU, WAL, memory, delay."`
	Rental  measure.Rental  `cmd:"" help:"What the start of a rental adds to its payment and its command."`
	Scale   measure.Scale   `cmd:"" help:"A million vehicles, 100,000 connected, against a thousand: start, memory, commands."`
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
	var all []measure.Experiment
	switch selected := chosen.Selected(); selected.Name {
	case load.Command:
		return load.Run(ctx, c.Job.Name, c.Job.Settings, &load.Requests{}, &load.Units{}, &load.Reports{},
			&floor.Echo{}, &floor.Handler{}, &floor.Subscriber{})
	case "all":
		if all, err = everything(c.All.Short); err != nil {
			return err
		}
	default:
		all = []measure.Experiment{selected.Target.Addr().Interface().(measure.Experiment)}
	}
	if err := c.OpenFiles(); err != nil {
		return err
	}
	results := &report.Results{Machine: measure.ThisMachine(), Rounds: c.Rounds, Figures: map[string][]float64{}}
	var failures []error
	for _, e := range all { // also after one that failed
		if ctx.Err() == nil {
			if err := e.Measure(ctx, c.Setup, results); err != nil {
				failures = append(failures, fmt.Errorf("%s: %w", strings.ToLower(reflect.TypeOf(e).Elem().Name()), err))
			}
		}
	}
	results.Sum()
	text, err := json.MarshalIndent(results, "", "  ")
	if err == nil {
		err = os.WriteFile(c.Out, append(text, '\n'), 0o644)
	}
	results.Write(os.Stdout)
	return errors.Join(append(failures, err)...)
}

// everything returns all experiments at their size.
func everything(short bool) ([]measure.Experiment, error) {
	var e experiments
	all := []measure.Experiment{&e.Command, &e.Waiting, &e.Ingest, &e.Fleet, &e.Rental, &e.Scale}
	for _, experiment := range all {
		if err := kong.ApplyDefaults(experiment); err != nil {
			return nil, err
		}
	}
	e.Scale.Vehicles, e.Scale.Connected, e.Scale.History = 100_000, 1000, 5_000_000
	if short {
		e.Command.Duration, e.Command.Slow = time.Second, 5*time.Second
		e.Waiting.Vehicles, e.Waiting.Network, e.Waiting.Ramp = 2000, time.Second, 1500*time.Millisecond
		e.Ingest.Duration = time.Second
		e.Fleet.Vehicles, e.Fleet.Rate, e.Fleet.Duration, e.Fleet.StateInterval = 2000, 500, 8*time.Second, 2*time.Second
		e.Rental.Starts = 10
		e.Scale.Vehicles, e.Scale.Connected, e.Scale.Small, e.Scale.History, e.Scale.InFlight = 2000, 500, 500, 20_000, 32
		e.Scale.Duration = 250 * time.Millisecond
	}
	return all, nil
}
