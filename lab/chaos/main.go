// Command chaos checks the promises of the service: never late, never twice, never forged, never
// forgotten. It runs several instances on real servers, with hundreds of simulated cars and many
// callers, and injects faults by a schedule that its seed draws (schedule.go). Then package audit
// compares the accounts of the callers, Postgres, Redis and the cars' flight recorders.
//
//	callers ─line─ instances ─line─ Postgres, Redis, Mosquitto ─line─ cars
//
// A line is a network that can be cut, silenced, delayed, slowed, reset or torn (package network).
// Processes are killed, stopped and frozen; clocks are set wrong, a disk is filled, messages are
// replayed and forged. See docs/chaos.md.
//
// Packages money and maintenance have other rounds; package runner runs them all.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9/logging"
	"github.com/rs/zerolog"

	"motorpool/internal/logger"
	"motorpool/internal/settings"
	"motorpool/lab/chaos/runner"
	"motorpool/lab/chaos/verdict"
	"motorpool/lab/world"
)

// flags are those of the command line; docs/chaos.md describes the kinds of rounds.
type flags struct {
	Seed        uint64        `default:"0" placeholder:"N" help:"Of all that is random: faults, orders, cars; 0 draws one (default 0)."`
	Commands    int           `default:"0" placeholder:"N" help:"To record (default 20000; with --duration, as many as possible)."`
	Duration    time.Duration `default:"0s" help:"Of the load (default what --commands needs at 100 a second)."`
	Vehicles    int           `default:"300" placeholder:"N" help:"Simulated cars (default ${default})."`
	OVMS        int           `name:"ovms" default:"10" placeholder:"PERCENT" help:"Of the cars, with OVMS modules (default ${default})."`
	Teltonika   int           `default:"10" placeholder:"PERCENT" help:"Of the cars, with Teltonika units (default ${default})."`
	Day         bool          `help:"Run 24 hours of 50 bought units' cars, and 50 others, in 24 minutes; --duration takes a slice."`
	Instances   int           `default:"3" placeholder:"N" help:"Processes of the service (default ${default})."`
	Callers     int           `default:"96" placeholder:"N" help:"Concurrent callers (default ${default})."`
	Bookings    int           `default:"0" placeholder:"N" help:"Run a round of money instead; takes --duration."`
	Rentals     int           `default:"0" placeholder:"N" help:"Run a round of rentals by clients instead; takes --duration."`
	Fault       string        `default:"" placeholder:"NAME" help:"Run a round of one fault instead; all: of each in no other; list them."`
	Rollout     bool          `help:"Run a rolling restart behind HAProxy instead: no command fails."`
	Shards      bool          `help:"Run a round of several MQTT brokers instead, of which one is killed; takes --commands."`
	Maintenance bool          `help:"Run a round of credentials of OVMS modules instead, while Mosquitto is reloaded and restarted."`
	Binary      string        `default:"" placeholder:"FILE" help:"The motorpool program to test (default one that is built from here)."`
	Race        bool          `help:"Build that program with the race detector."`
	Keep        bool          `help:"Keep the logs of a round without violations, too."`
	Print       bool          `help:"Print the schedule of faults, and exit."`
	LogLevel    string        `default:"warn" placeholder:"LEVEL" help:"debug, info (every fault), warn or error (default ${default})."`
}

// Exit codes; 0: no violation.
const (
	violated  = 1
	worthless = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "chaos: %v\n", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (int, error) {
	var f flags
	var reader settings.Reader
	parser, err := kong.New(&f, append(reader.Options("CHAOS"), kong.Name("chaos"),
		kong.Description("Injects faults of every kind, and checks the promises: see docs/chaos.md."))...)
	if err != nil {
		return worthless, err
	}
	_, err = parser.Parse(args)
	if f.Fault == list && err == nil {
		fmt.Println(strings.Join(names(true), "\n"))
		return 0, nil
	}
	if err = errors.Join(reader.Problems(), err, f.complete()); err != nil {
		return worthless, err
	}
	if f.Print {
		for _, fault := range f.plan().Schedule() {
			fmt.Println(fault)
		}
		return 0, nil
	}
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxiproxy logs
	logging.Disable()                        // go-redis logs each failover
	if f.Fault == everyFault {
		return f.runEach(ctx, os.Stdout)
	}
	res, code, err := f.runInFolder(ctx)
	if res != nil {
		res.Write(os.Stdout)
	}
	return code, err
}

// complete checks the flags, and sets those that follow from others.
func (f *flags) complete() error {
	for f.Seed == 0 {
		f.Seed = uint64(rand.Uint32())
	}
	if f.Race && f.Binary != "" {
		return errors.New("--race: builds a separate program; leave --binary out")
	}
	k := f.kind()
	if k.complete == nil {
		k.complete = func(*flags) error { return nil }
	}
	return cmp.Or(f.exclude(k), k.complete(f))
}

// completeCommands completes the flags of a round of commands.
func (f *flags) completeCommands(least time.Duration) error {
	if f.Commands == 0 && f.Duration == 0 {
		f.Commands = defaultCommands
	}
	if f.Duration == 0 {
		f.Duration = max(time.Duration(f.Commands)*time.Second/commandsPerSecond, least)
	}
	switch {
	case f.Instances < 2:
		return errors.New("--instances: two, or more: conflicts between two are half of what is tested")
	case f.OVMS < 0 || f.Teltonika < 0 || f.makeup().v1 < 50:
		return errors.New("--vehicles, --ovms, --teltonika: 50 cars of protocol v1, or more: so that there are some of each kind")
	case f.Duration < least:
		return fmt.Errorf("--duration: %v, or more: so that there is time for every fault", least)
	case f.Callers < 1 || f.Commands < 0:
		return errors.New("--callers, --commands: want positive numbers")
	}
	return nil
}

// makeup returns how many cars have which units.
func (f flags) makeup() makeup {
	m := makeup{ovms: f.Vehicles * f.OVMS / 100, teltonika: f.Vehicles * f.Teltonika / 100}
	m.v1 = f.Vehicles - m.ovms - m.teltonika
	return m
}

func (f flags) plan() Plan {
	return Plan{Seed: f.Seed, Duration: f.Duration, Instances: f.Instances, Vehicles: f.Vehicles}
}

// runInFolder runs a round in a temporary folder, which stays if the round found something. It
// returns the exit code, too.
func (f flags) runInFolder(ctx context.Context) (res *runner.Result, code int, err error) {
	dir, err := world.TempDir("motorpool-chaos-")
	if err != nil {
		return nil, worthless, err
	}
	defer func() {
		if code == 0 && !f.Keep {
			err = errors.Join(err, os.RemoveAll(dir))
			return
		}
		fmt.Fprintf(os.Stderr, "chaos: the logs are in %s; to repeat the round: make chaos %s\n", dir, f.arguments())
	}()
	if f.Binary, err = world.BuildProgram(ctx, f.Binary, dir, f.Race); err != nil {
		return nil, worthless, err
	}
	if res, err = f.runRound(ctx, dir, logger.New(os.Stderr, f.LogLevel, "text")); err != nil {
		return nil, worthless, err
	}
	races, err := racesIn(dir)
	if err != nil {
		return nil, worthless, err
	}
	if races > 0 {
		fmt.Printf("data races or panics: %d, in the logs of the instances\n", races)
	}
	switch {
	case len(res.Violations) > 0 || races > 0:
		return res, violated, nil
	case res.Worthless != "":
		return res, worthless, nil
	}
	return res, 0, nil
}

// runRound runs a round, and searches the logs of its processes for the secrets that were in use.
func (f flags) runRound(ctx context.Context, dir string, log *slog.Logger) (*runner.Result, error) {
	var built *world.World
	var res runner.Result
	c := runner.Config{
		Seed: f.Seed, Instances: f.Instances, Bookings: f.Bookings, Rentals: f.Rentals, Duration: f.Duration, Progress: progress,
	}
	err := world.Run(ctx, dir, f.Binary, log, func(ctx context.Context, w *world.World) (err error) {
		built = w
		if res, err = runner.Run(ctx, w, f.kind().round(f), c); err == nil {
			addAwaited(&res, w.Close())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	found, err := built.SearchLogs() // the world is closed, so they are complete
	if err != nil {
		return nil, err
	}
	addLeaks(&res.Report, found)
	return &res, nil
}

const comesInTime = "what was awaited came in time"

// addAwaited adds the law about what did not come in time, though it must; closing is why processes
// did not end.
func addAwaited(res *runner.Result, closing error) {
	res.AddLaw(comesInTime, 0)
	for _, err := range append(res.Awaited, closing) {
		res.Must(comesInTime, err == nil, "%v", err)
	}
}

const noSecret = "no log has a secret"

// addLeaks adds the law about logs, checked once for each line.
func addLeaks(report *verdict.Report, found world.LogSearch) {
	report.AddLaw(noSecret, found.Lines)
	for _, leak := range found.Leaks {
		report.Must(noSecret, false, "%v", leak)
	}
}

func progress(step string) { fmt.Fprintf(os.Stderr, "chaos: %s\n", step) }

// racesIn counts the reports of the race detector, and the panics, in the logs of the instances.
func racesIn(dir string) (int, error) {
	logs, err := filepath.Glob(filepath.Join(dir, "instance-*.log"))
	if err != nil {
		return 0, fmt.Errorf("count data races: %w", err)
	}
	races := 0
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			return 0, fmt.Errorf("count data races: %w", err)
		}
		races += bytes.Count(text, []byte("WARNING: DATA RACE")) + bytes.Count(text, []byte("panic:"))
	}
	return races, nil
}
