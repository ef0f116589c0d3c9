// Command chaos checks the promises of the service: never late, never twice, never forged, never
// forgotten. It runs several instances on real servers, with hundreds of simulated cars and many
// callers, and injects faults by a schedule that its seed draws (package fault). Then package audit
// compares the accounts of the callers, Postgres, Redis and the cars' flight recorders.
//
//	callers ─line─ instances ─line─ Postgres, Redis, Mosquitto ─line─ cars
//
// A line is a network that can be cut, silenced, delayed, slowed, reset or torn (package network).
// Processes are killed, stopped and frozen; clocks are set wrong, a disk is filled, messages are
// replayed and forged. See docs/chaos.md.
//
// Packages money, failover, rollout, shards and maintenance are other rounds.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
	"motorpool/lab/chaos/failover"
	"motorpool/lab/chaos/fault"
	"motorpool/lab/chaos/maintenance"
	"motorpool/lab/chaos/money"
	"motorpool/lab/chaos/rollout"
	"motorpool/lab/chaos/shards"
	"motorpool/lab/chaos/verdict"
	"motorpool/simulator/world"
)

type flags struct {
	Seed        uint64        `default:"0" placeholder:"N" help:"Of everything that is random: faults, orders, cars; 0 draws one (default ${default})."`
	Commands    int           `default:"0" placeholder:"N" help:"Commands to record (default 20000; with --duration, as many as possible)."`
	Duration    time.Duration `default:"0s" placeholder:"DURATION" help:"Of the load (default what --commands needs at 100 a second)."`
	Vehicles    int           `default:"300" placeholder:"N" help:"Simulated cars (default ${default})."`
	OVMS        int           `name:"ovms" default:"10" placeholder:"PERCENT" help:"Of the cars, those with an OVMS module (default ${default})."`
	Teltonika   int           `default:"10" placeholder:"PERCENT" help:"Of the cars, those with a Teltonika unit (default ${default}). All others speak protocol v1."`
	Day         bool          `help:"Run the round with a full day of the OVMS and Teltonika units' cars, 60 times as fast, in 24 minutes; --duration takes a slice of it. It has 100 cars, a quarter of them with each of these units."`
	Instances   int           `default:"3" placeholder:"N" help:"Processes of the service (default ${default})."`
	Callers     int           `default:"96" placeholder:"N" help:"Concurrent callers (default ${default})."`
	Bookings    int           `default:"0" placeholder:"N" help:"Run the round of money instead, with N bookings: each charge must be made once. Uses --seed, --duration, --instances and the flags below."`
	Fault       string        `default:"" placeholder:"NAME" help:"Run a round with this one fault instead, in the midst of 2000 commands, such as vehicles-locked; all: each that is in no other round, one after the other, briefly; with another name the program lists them. postgres-async is a failover that loses commands; it uses --seed and --instances alone."`
	Rollout     bool          `help:"Run the round of a rolling restart instead: two instances behind HAProxy with TLS are restarted one after the other under load, and no command fails. Uses --seed and the flags below."`
	Shards      bool          `help:"Run the round of shards instead: one of three MQTT brokers behind HAProxy is killed under load, and started again. Uses --seed, --commands (default 2000) and the flags below."`
	Maintenance bool          `help:"Run the round of maintenance instead: Mosquitto is reloaded and restarted, and credentials are added, rotated and removed, under OVMS modules, which a refused login would end. Uses --seed and the flags below."`
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
		kong.Description("Injects faults of every kind, and checks the promises of docs/architecture.md."))...)
	if err != nil {
		return worthless, err
	}
	_, err = parser.Parse(args)
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

const (
	defaultCommands   = 20000
	commandsPerSecond = 100
	minDuration       = 30 * time.Second
	// singleDuration is how long a round of one fault lasts: half of it is the fault's.
	singleDuration    = 40 * time.Second
	minSingleDuration = 10 * time.Second
)

// complete checks the flags, and sets those that follow from others.
func (f *flags) complete() error {
	for f.Seed == 0 {
		f.Seed = uint64(rand.Uint32())
	}
	switch {
	case f.Race && f.Binary != "":
		return errors.New("--race: builds a separate program; leave --binary out")
	case f.Fault == everyFault && !f.Print && f.Bookings == 0:
		f.Commands, f.Duration = cmp.Or(f.Commands, briefCommands), cmp.Or(f.Duration, briefDuration)
	case f.Fault == postgresAsync && (f.Commands != 0 || f.Duration != 0):
		return errors.New("--fault=postgres-async: its load is fixed; leave --commands and --duration out")
	case f.Fault == commitsLost && !f.Print:
		f.Bookings = cmp.Or(f.Bookings, lostBookings)
		return nil
	case f.Fault != "" && f.Fault != postgresAsync && f.Fault != everyFault && fault.Find(f.Fault) == nil:
		return fmt.Errorf(
			"--fault: no fault is called %q; there are %s; %s is each that is in no other round", f.Fault,
			strings.Join(append(fault.Names(), postgresAsync, commitsLost), ", "), everyFault,
		)
	case f.Fault != "" && (f.Print || f.Bookings != 0):
		return errors.New("--fault: another round than that of all faults; leave --bookings and --print out")
	case f.Rollout && (f.Fault != "" || f.Commands != 0 || f.Print || f.Bookings != 0 || f.Duration != 0):
		return errors.New(
			"--rollout: another round than that of commands; leave --commands, --bookings, --fault, --duration and --print out",
		)
	case f.Shards && (f.Fault != "" || f.Rollout || f.Print || f.Bookings != 0 || f.Duration != 0):
		return errors.New("--shards: another round than that of commands; leave --bookings, --fault, --rollout, --duration and --print out")
	case f.Maintenance && (f.Fault != "" || f.Rollout || f.Shards || f.Commands != 0 || f.Print || f.Bookings != 0 || f.Duration != 0):
		return errors.New(
			"--maintenance: another round than that of commands; leave --commands, --bookings, --fault, --rollout, --shards, --duration and --print out",
		)
	case f.Bookings > 0 && (f.Commands != 0 || f.Print):
		return errors.New("--bookings: another round than that of commands; leave --commands and --print out")
	case f.Day && (f.Rollout || f.Shards || f.Maintenance || f.Bookings > 0):
		return errors.New("--day: of the round of all faults; leave --bookings, --rollout, --shards and --maintenance out")
	case f.Fault == postgresAsync || f.Rollout || f.Shards || f.Maintenance || f.Bookings > 0:
		return nil
	}
	if f.Day {
		if f.Fault != "" {
			return errors.New("--day: of the round of all faults; leave --fault out")
		}
		f.Vehicles, f.OVMS, f.Teltonika = dayVehicles, dayShare, dayShare
		if f.Duration == 0 {
			f.Duration = 24 * time.Hour / daySpeed
		}
		f.Commands = cmp.Or(f.Commands, int(f.Duration.Seconds()*dayRate))
	}
	least := minDuration
	if f.Fault != "" {
		f.Commands, f.Duration, least = cmp.Or(f.Commands, defaultSingleCommands), cmp.Or(f.Duration, singleDuration), minSingleDuration
	}
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

func (f flags) plan() fault.Plan {
	return fault.Plan{Seed: f.Seed, Duration: f.Duration, Instances: f.Instances, Vehicles: f.Vehicles}
}

// result is the result of a round.
type result interface {
	Write(out io.Writer)
	Worthless() string // why the round proves nothing, or ""
	Outcome() *verdict.Report
}

// runInFolder runs a round in a temporary folder, which stays if the round found something. It
// returns the exit code, too.
func (f flags) runInFolder(ctx context.Context) (res result, code int, err error) {
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
	if f.Binary, err = world.BuildProgram(ctx, f.Binary, dir, f.Race, clockFaultTag); err != nil {
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
		fmt.Printf("data races: %d, in the logs of the instances\n", races)
	}
	switch {
	case len(res.Outcome().Violations) > 0 || races > 0:
		return res, violated, nil
	case res.Worthless() != "":
		return res, worthless, nil
	}
	return res, 0, nil
}

// arguments are those of make chaos for the same round.
func (f flags) arguments() string {
	switch {
	case f.Fault == postgresAsync, f.Fault == commitsLost:
		return fmt.Sprintf("SEED=%d ARGS=--fault=%s", f.Seed, f.Fault)
	case f.Fault != "":
		return fmt.Sprintf("SEED=%d COMMANDS=%d DURATION=%v ARGS=--fault=%s", f.Seed, f.Commands, f.Duration, f.Fault)
	case f.Rollout:
		return fmt.Sprintf("SEED=%d ARGS=--rollout", f.Seed)
	case f.Shards:
		return fmt.Sprintf("SEED=%d COMMANDS=%d ARGS=--shards", f.Seed, f.Commands)
	case f.Maintenance:
		return fmt.Sprintf("SEED=%d ARGS=--maintenance", f.Seed)
	case f.Bookings > 0:
		return fmt.Sprintf("SEED=%d ARGS=\"--bookings %d\"", f.Seed, f.Bookings)
	}
	text := fmt.Sprintf("SEED=%d COMMANDS=%d DURATION=%v", f.Seed, f.Commands, f.Duration)
	if f.Day {
		text += " ARGS=--day"
	}
	return text
}

// runRound runs a round, and searches the logs of its processes for the secrets that were in use.
func (f flags) runRound(ctx context.Context, dir string, log *slog.Logger) (res result, err error) {
	var built *world.World
	err = world.Run(ctx, dir, f.Binary, log, func(ctx context.Context, w *world.World) error {
		built = w
		switch {
		case f.Fault == postgresAsync:
			r, err := failover.Round(ctx, w, failover.Config{Seed: f.Seed, Instances: f.Instances, Alerts: true, Progress: progress})
			res = &r
			return err
		case f.Rollout:
			r, err := rollout.Round(ctx, w, rollout.Config{Seed: f.Seed, Progress: progress})
			res = &r
			return err
		case f.Shards:
			r, err := shards.Round(ctx, w, shards.Config{Seed: f.Seed, Commands: f.Commands, Progress: progress})
			res = &r
			return err
		case f.Maintenance:
			r, err := maintenance.Round(ctx, w, maintenance.Config{Seed: f.Seed, Progress: progress})
			res = &r
			return err
		case f.Bookings > 0:
			r, err := money.Round(ctx, w, money.Config{
				Seed: f.Seed, Bookings: f.Bookings, Instances: f.Instances, Duration: f.Duration, Progress: progress,
				LostCommits: f.Fault == commitsLost, Hurry: f.Fault == commitsLost,
			})
			res = &r
			return err
		}
		one := &round{flags: f, World: w}
		if f.Fault != "" {
			s, failure := one.runSingle(ctx)
			res, err = &s, failure
		} else {
			s, failure := one.run(ctx)
			res, err = &s, failure
		}
		if failure := w.Close(); err == nil {
			addFindings(res.Outcome(), &one.findings, failure)
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
	addLeaks(res.Outcome(), found)
	return res, nil
}

const comesInTime = "what was awaited came in time"

// addFindings adds what did not come in time, though it must, and why processes did not end.
func addFindings(report *verdict.Report, f *findings, closing error) {
	awaited, missing := f.all()
	report.AddLaw(comesInTime, awaited+1)
	if closing != nil {
		missing = append(missing, closing.Error())
	}
	for _, what := range missing {
		report.Must(comesInTime, false, "%s", what)
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

// racesIn counts the reports of the race detector in the logs of the instances.
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
		races += bytes.Count(text, []byte("WARNING: DATA RACE"))
	}
	return races, nil
}
