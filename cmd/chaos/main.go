// Command chaos shows that the promise holds: never late, never twice, never forged, never forgotten. It runs several
// instances of the service on real servers, with some hundreds of simulated cars and many callers, and breaks everything
// that can break, by a schedule that its seed draws. Then package audit reconciles what the callers, Postgres, Redis and
// the cars' flight recorders say.
//
//	callers ─line─ instance ─line─ Postgres, Redis, Mosquitto ─line─ cars
//
// A line is a network that can be cut, silenced, delayed, slowed, reset or torn. All else is killed, frozen, emptied,
// filled, skewed, replayed or forged. See docs/chaos.md.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/rs/zerolog"

	"motorpool/cmd/chaos/audit"
	"motorpool/cmd/internal/app"
	"motorpool/cmd/internal/logger"
	"motorpool/cmd/internal/service"
	"motorpool/simulator/devstack"
)

type flags struct {
	Seed      uint64        `default:"0" placeholder:"N" help:"Of everything that is drawn: faults, orders, cars; 0 draws one (default ${default})."`
	Commands  int           `default:"0" placeholder:"N" help:"Commands to get on record (default 20000; with --duration, as many as come)."`
	Duration  time.Duration `default:"0s" placeholder:"DURATION" help:"Of the load (default what --commands needs at 100 a second)."`
	Vehicles  int           `default:"300" placeholder:"N" help:"Simulated cars (default ${default})."`
	Instances int           `default:"3" placeholder:"N" help:"Processes of the service (default ${default})."`
	Callers   int           `default:"96" placeholder:"N" help:"Concurrent callers (default ${default})."`
	Bookings  int           `default:"0" placeholder:"N" help:"Another round instead, of money: so many bookings are started, extended and fined, and each charge must be made once. Of the other flags --seed, --duration, --instances and those below count."`
	Failover  bool          `help:"Another round instead, of a failover: Postgres's primary is killed, and a standby that is seconds behind is promoted. Of the other flags --seed, --instances and those below count."`
	Binary    string        `default:"" placeholder:"FILE" help:"The motorpool program to test (default one that is built from here)."`
	Race      bool          `help:"Build that program with the race detector."`
	Keep      bool          `help:"Keep the logs of a round without violations, too."`
	Print     bool          `help:"Print the schedule of faults, and do nothing."`
	LogLevel  string        `default:"warn" placeholder:"LEVEL" help:"debug, info (every fault), warn or error (default ${default})."`
}

// How a round ends: 0 where it found no violation.
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
	var settings app.Settings
	parser, err := kong.New(&f, append(settings.Options("CHAOS"), kong.Name("chaos"),
		kong.Description("Breaks everything that can break, and shows that no law of docs/architecture.md does."))...)
	if err != nil {
		return worthless, err
	}
	_, err = parser.Parse(args)
	if err = errors.Join(settings.Problems(), err, f.complete()); err != nil {
		return worthless, err
	}
	zerolog.SetGlobalLevel(zerolog.Disabled) // a toxic logs
	p := plan{Seed: f.Seed, Duration: f.Duration, Instances: f.Instances, Vehicles: f.Vehicles}
	if f.Print {
		for _, fault := range p.schedule() {
			fmt.Println(fault)
		}
		return 0, nil
	}
	if f.Bookings > 0 {
		return f.roundOfMoney(ctx)
	}
	if f.Failover {
		return f.roundOfFailover(ctx)
	}
	return f.round(ctx, p)
}

const (
	defaultCommands = 20000
	commandsASecond = 100
)

// complete fills in what follows from the rest.
func (f *flags) complete() error {
	if f.Failover {
		return f.completeFailover()
	}
	if f.Bookings > 0 {
		return f.completeMoney()
	}
	if f.Commands == 0 && f.Duration == 0 {
		f.Commands = defaultCommands
	}
	if f.Duration == 0 {
		f.Duration = max(time.Duration(f.Commands)*time.Second/commandsASecond, shortest)
	}
	for f.Seed == 0 {
		f.Seed = uint64(rand.Uint32())
	}
	switch {
	case f.Instances < 2:
		return errors.New("--instances: two, or more: what two could break together is half of what is tested")
	case f.Vehicles < 50:
		return errors.New("--vehicles: 50, or more: each kind of car must be there")
	case f.Duration < shortest:
		return fmt.Errorf("--duration: %v, or more: every kind of fault must find its time", shortest)
	case f.Race && f.Binary != "":
		return errors.New("--race: builds a program of its own; leave --binary out")
	case f.Callers < 1 || f.Commands < 0:
		return errors.New("--callers, --commands: want positive numbers")
	}
	return nil
}

// shortest is how long the shortest round is.
const shortest = 30 * time.Second

// round builds a world, breaks it, lets it settle, and judges.
func (f flags) round(ctx context.Context, p plan) (code int, err error) {
	dir, err := os.MkdirTemp("", "motorpool-chaos-")
	if err != nil {
		return worthless, err
	}
	// Postgres runs as another user, and must reach its folder.
	if err := os.Chmod(dir, 0o711); err != nil {
		return worthless, err
	}
	code = worthless
	defer func() {
		if code != 0 || f.Keep {
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	for _, server := range []string{devstack.MosquittoServer, devstack.RedisServer} {
		if err := devstack.Available(server); err != nil {
			return code, err
		}
	}
	if f.Binary, err = service.Program(ctx, f.Binary, dir, f.Race, clockFaultTag); err != nil {
		return code, err
	}
	ctx, fall := context.WithCancelCause(ctx)
	defer fall(nil)
	w := &world{flags: f, dir: dir, log: logger.New(os.Stderr, f.LogLevel, "text"), fall: fall}
	s, err := w.play(ctx, p)
	if failure := w.tearDown(); failure != nil {
		w.log.Warn("not taken down", "err", failure)
	}
	if err != nil {
		f.explain(dir)
		return code, cmp.Or(context.Cause(ctx), err)
	}
	if s.Races, err = racesIn(dir); err != nil {
		return code, err
	}
	switch {
	case len(s.Report.Violations) > 0 || s.Races > 0:
		code = violated
	case s.worthless() == "":
		code = 0
	}
	if code != 0 || f.Keep {
		f.explain(dir)
	}
	s.write(os.Stdout)
	return code, nil
}

// explain says what a person needs who wants to know more.
func (f flags) explain(dir string) {
	fmt.Fprintf(os.Stderr, "chaos: the logs are in %s; once more: make chaos SEED=%d COMMANDS=%d DURATION=%v\n", dir, f.Seed, f.Commands, f.Duration)
}

// play is the round itself.
func (w *world) play(ctx context.Context, p plan) (summary, error) {
	s := summary{plan: p, Wanted: w.Commands}
	say := func(what string) { fmt.Fprintf(os.Stderr, "chaos: %s\n", what) }
	say(fmt.Sprintf("seed %d: starting servers, %d instances, %d cars", p.Seed, p.Instances, p.Vehicles))
	if err := w.build(ctx); err != nil {
		return s, err
	}
	l := &load{world: w, turns: make(chan struct{}, w.Callers)}
	w.load = l
	l.warmUp(ctx)
	faults := p.schedule()
	say(fmt.Sprintf("%v of load, %d faults", w.Duration, len(faults)))

	begin := time.Now()
	loaded := make(chan struct{})
	go func() { defer close(loaded); l.run(ctx) }()
	s.Strikes = w.rampage(ctx, faults)
	<-loaded
	l.errands.Wait()
	s.Load = time.Since(begin)
	if ctx.Err() != nil {
		return s, ctx.Err()
	}
	say("all faults are lifted: one unit floods its topics")
	flood, err := w.flood(ctx, l)
	if err != nil {
		return s, err
	}
	say("one client floods the service; settling")
	clientFlood, err := w.settle(ctx, l, s.Strikes)
	if err != nil {
		return s, err
	}
	if s.Evidence, err = w.gather(ctx, l, s.Strikes); err != nil {
		return s, err
	}
	s.Evidence.Floods, s.Evidence.ClientFlood = []audit.Flood{flood}, clientFlood
	s.Report = audit.Check(s.Evidence)
	return s, nil
}
