package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"motorpool/lab/chaos/maintenance"
	"motorpool/lab/chaos/money"
	"motorpool/lab/chaos/runner"
)

// kind is a kind of round, as the command line has it.
type kind struct {
	is func(flags) bool // chosen by
	// takes are the flags, among those that choose or shape a round, that it can have.
	takes    []string
	complete func(*flags) error // sets flags that follow from others. Nil: none
	round    func(flags) runner.Kind
}

const (
	defaultCommands   = 20000
	commandsPerSecond = 100
	minDuration       = 30 * time.Second

	// The defaults of a round of one fault, half of which is the fault's.
	singleCommands    = 2000
	singleDuration    = 40 * time.Second
	minSingleDuration = 10 * time.Second

	// commitsLost is a round of money in which Postgres fails over to a standby that is behind.
	commitsLost  = "commits-lost"
	lostBookings = 150
)

// kinds are the kinds of rounds. That of all faults is the last.
var kinds = []kind{
	{
		is: faultIs(commitsLost), takes: []string{"--fault", "--bookings", "--duration"},
		complete: func(f *flags) error { f.Bookings = cmp.Or(f.Bookings, lostBookings); return nil },
		round:    func(flags) runner.Kind { return money.Round(money.Plan{LostCommits: true, Hurry: true}) },
	}, {
		is: faultIs(everyFault), takes: []string{"--fault", "--commands", "--duration"},
		complete: func(f *flags) error {
			f.Commands, f.Duration = cmp.Or(f.Commands, briefCommands), cmp.Or(f.Duration, briefDuration)
			return f.completeCommands(minSingleDuration)
		},
	}, {
		is: func(f flags) bool { return f.Fault != "" }, takes: []string{"--fault", "--commands", "--duration"},
		complete: func(f *flags) error {
			if f.single() == "" {
				return fmt.Errorf("--fault: no fault is called %q; --fault=%s prints their names", f.Fault, list)
			}
			return f.completeSingle(f.single())
		},
		round: func(f flags) runner.Kind { return f.commands },
	}, {
		is: func(f flags) bool { return f.Rollout }, takes: []string{"--rollout", "--commands", "--duration"},
		complete: func(f *flags) error { return f.completeSingle(RollingRestart) },
		round:    func(f flags) runner.Kind { return f.of(RollingRestart).commands },
	}, {
		is: func(f flags) bool { return f.Shards }, takes: []string{"--shards", "--commands", "--duration"},
		complete: func(f *flags) error { return f.completeSingle(ShardKilled) },
		round:    func(f flags) runner.Kind { return f.of(ShardKilled).commands },
	}, {
		is: func(f flags) bool { return f.Maintenance }, takes: []string{"--maintenance"},
		round: func(flags) runner.Kind { return maintenance.Round(maintenance.Plan{}) },
	}, {
		is: func(f flags) bool { return f.Bookings > 0 }, takes: []string{"--bookings", "--duration"},
		round: func(flags) runner.Kind { return money.Round(money.Plan{}) },
	}, {
		is: func(f flags) bool { return f.Rentals > 0 }, takes: []string{"--rentals", "--duration"},
		round: func(flags) runner.Kind { return money.Rentals(money.Plan{}) },
	}, {
		is: func(f flags) bool { return f.Day }, takes: []string{"--day", "--commands", "--duration", "--print"},
		complete: func(f *flags) error {
			f.Vehicles, f.OVMS, f.Teltonika = dayVehicles, dayShare, dayShare
			f.Duration = cmp.Or(f.Duration, 24*time.Hour/daySpeed)
			f.Commands = cmp.Or(f.Commands, int(f.Duration.Seconds()*dayRate))
			return f.completeCommands(minDuration)
		},
		round: func(f flags) runner.Kind { return f.commands },
	}, {
		is: func(flags) bool { return true }, takes: []string{"--commands", "--duration", "--print"},
		complete: func(f *flags) error { return f.completeCommands(minDuration) },
		round:    func(f flags) runner.Kind { return f.commands },
	},
}

func faultIs(name string) func(flags) bool { return func(f flags) bool { return f.Fault == name } }

// completeSingle completes the flags of a round of one fault.
func (f *flags) completeSingle(fault string) error {
	switch fault {
	case RollingRestart:
		f.Instances = 2
	case ShardKilled:
		f.OVMS, f.Teltonika = 0, 0 // they connect to no shard
	}
	f.Commands = cmp.Or(f.Commands, singleCommands)
	f.Duration = cmp.Or(f.Duration, max(singleDuration, 2*Find(fault).least))
	return f.completeCommands(minSingleDuration)
}

// kind returns the kind of round that the flags choose.
func (f flags) kind() kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.is(f) })]
}

// given returns the flags that choose or shape a round, with their values.
func (f flags) given() map[string]any {
	all := map[string]any{
		"--commands": f.Commands, "--duration": f.Duration, "--bookings": f.Bookings, "--rentals": f.Rentals, "--fault": f.Fault,
		"--day": f.Day, "--rollout": f.Rollout, "--shards": f.Shards, "--maintenance": f.Maintenance, "--print": f.Print,
	}
	maps.DeleteFunc(all, func(_ string, value any) bool { return reflect.ValueOf(value).IsZero() })
	return all
}

// exclude refuses flags that the kind of round does not take.
func (f flags) exclude(k kind) error {
	var excess []string
	for _, flag := range slices.Sorted(maps.Keys(f.given())) {
		if !slices.Contains(k.takes, flag) {
			excess = append(excess, flag)
		}
	}
	if len(excess) > 0 {
		return fmt.Errorf("%s: another kind of round; leave %s out", k.takes[0], strings.Join(excess, ", "))
	}
	return nil
}

// arguments are those of make chaos for the same round.
func (f flags) arguments() string {
	var args []string
	given := f.given()
	for _, flag := range slices.Sorted(maps.Keys(given)) {
		args = append(args, fmt.Sprintf("%s=%v", flag, given[flag]))
	}
	return fmt.Sprintf("SEED=%d ARGS=%q", f.Seed, strings.Join(args, " "))
}

// The faults that are in no other round, one round after the other.

const (
	everyFault    = "all"
	list          = "list"
	briefCommands = 1000
	briefDuration = 20 * time.Second

	presenceStoredLate = "presence-stored-late"
)

// of returns the flags of the round of one of the faults.
func (f flags) of(name string) flags {
	f.Fault = name
	switch name {
	case commitsLost:
		f.Commands, f.Duration = 0, 0 // fixed
	case presenceStoredLate:
		f.Commands, f.Duration = 2*f.Commands, 2*f.Duration // it takes 20 s itself
	}
	return f
}

// runEach runs the round of each fault, and prints a line of each, and those that found something
// or prove nothing. The worst round is the exit code.
func (f flags) runEach(ctx context.Context, out io.Writer) (worst int, err error) {
	violations := 0
	for _, name := range names(false) {
		one, begin := f.of(name), time.Now()
		if err := one.complete(); err != nil {
			return worthless, err
		}
		progress("fault " + name)
		res, code, err := one.runInFolder(ctx)
		if ctx.Err() != nil {
			return worthless, ctx.Err()
		}
		if res != nil && code != 0 {
			res.Write(out)
		}
		found, done := 0, 0
		if res != nil {
			found, done = len(res.Violations), res.Done
		}
		took := time.Since(begin).Round(time.Second)
		fmt.Fprintf(out, "%s: %d commands, %d violations, exit code %d, in %v\n", name, done, found, code, took)
		if err != nil { // the harness broke
			fmt.Fprintf(out, "%s: %v\n", name, err)
		}
		violations += found
		worst = worse(worst, code)
	}
	fmt.Fprintf(out, "violations: %d\n", violations)
	return worst, nil
}

// worse returns the worse one of two exit codes: what violated is worse than what proves nothing.
func worse(a, b int) int {
	if a == violated || b == 0 {
		return a
	}
	return b
}
