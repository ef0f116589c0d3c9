// Package failover kills Postgres's primary while commands run, and promotes an asynchronous
// standby that is seconds behind. Then it checks that no vehicle refuses a command as out of order,
// and that every executed command is on record, or its answer is stored as one to an unrecorded
// command.
//
//	callers ─ instance 0, 1 ─ line ─ primary ─ line ─ standby
//	               └─ Mosquitto ─ cars, with a flight recorder
package failover

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the audit does not read through the store under test

	"motorpool/lab/chaos/alerts"
	"motorpool/lab/chaos/fault"
	"motorpool/lab/chaos/network"
	"motorpool/simulator/world"
)

// Config describes a round.
type Config struct {
	Seed      uint64
	Vehicles  int           // Defaults to 40
	Instances int           // Defaults to 2
	Behind    time.Duration // replication lag of the standby. Defaults to 3 s
	Load      time.Duration // before, and after. Defaults to 5 s
	Alerts    bool          // check the shipped alerts, with a Prometheus. Defaults to false
	Progress  func(string)  // is called at each step. Defaults to nothing
}

func (c Config) withDefaults() (Config, error) {
	c.Vehicles = cmp.Or(c.Vehicles, 40)
	c.Instances = cmp.Or(c.Instances, 2)
	c.Behind = cmp.Or(c.Behind, 3*time.Second)
	c.Load = cmp.Or(c.Load, 5*time.Second)
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	if c.Behind > repeatedResults*pace {
		return c, fmt.Errorf(
			"the standby may be %v behind at most: a unit repeats its last %d results only", repeatedResults*pace,
			repeatedResults,
		)
	}
	return c, nil
}

// repeatedResults is how many results a report repeats at most [TEL-3].
const repeatedResults = 8

// settleWithin bounds how long answers to lost commands may take to be stored.
const settleWithin = 30 * time.Second

// Round builds the world, fails over, and checks. An error means that the world itself failed.
func Round(ctx context.Context, w *world.World, c Config) (result Result, err error) {
	if c, err = c.withDefaults(); err != nil {
		return result, err
	}
	r := &round{Config: c, World: w, lines: network.Network{}}
	result = Result{Config: c, Calls: map[string]int{}}
	begin := time.Now()
	err = r.run(ctx, &result)
	result.Took = time.Since(begin)
	return result, err
}

func (r *round) run(ctx context.Context, result *Result) error {
	r.Progress(fmt.Sprintf("seed %d: starting servers, a standby, %d instances and %d cars", r.Seed, r.Instances, r.Vehicles))
	if err := r.build(ctx); err != nil {
		return err
	}
	var watch alerts.Watch
	if r.Alerts {
		var err error
		if watch, err = alerts.Start(r.World); err != nil {
			return err
		}
	}
	count := func(answers map[string]int) {
		for answer, n := range answers {
			result.Calls[answer] += n
		}
	}
	r.Progress(fmt.Sprintf("%v of load", r.Load))
	count(r.sendCommands(ctx, time.Now().Add(r.Load)))
	syncing, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := r.standby.InSync(syncing, r.Postgres); err != nil {
		return err
	}
	r.Progress(fmt.Sprintf("the standby is cut off; %v of load, then a failover to it", r.Behind))
	r.lines[replication].Cut()
	end := time.Now().Add(r.Behind)
	loaded := make(chan map[string]int, 1)
	go func() { loaded <- r.sendCommands(ctx, end) }()
	world.Pause(ctx, r.Behind-pace/2) // so that commands are in flight
	result.Failover = time.Now()
	if err := r.failOver(ctx); err != nil {
		return err
	}
	count(<-loaded)
	if err := r.Ready(ctx); err != nil {
		return err
	}
	// Reports repeat only the last eight results: wait before there are others.
	r.Progress("waiting for the answers to lost commands")
	if err := r.settle(ctx, result); err != nil {
		return err
	}
	r.Progress(fmt.Sprintf("%v of load on the promoted standby", r.Load))
	count(r.sendCommands(ctx, time.Now().Add(r.Load)))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	answered := time.Now()
	if err := r.settle(ctx, result); err != nil || !r.Alerts {
		return err
	}
	fired, err := watch.Fired(ctx)
	if err != nil {
		return err
	}
	alerts.Check(&result.Report, alerts.Round{
		Fault: fault.PostgresAsync, From: result.Failover, To: answered, Fired: fired, Stalled: func(_, _ time.Time) bool { return false },
	})
	return nil
}

// failOver kills the primary, promotes the standby, and connects the instances to it.
func (r *round) failOver(ctx context.Context) error {
	if err := r.Postgres.Kill(); err != nil {
		return err
	}
	r.lines[database].Cut()
	if err := r.standby.Promote(ctx); err != nil {
		return err
	}
	return r.lines[database].MendTo(r.standby.URL())
}

// settle checks until no violation is left, or the time is over.
func (r *round) settle(ctx context.Context, result *Result) error {
	db, err := sqlx.Open("postgres", r.standby.URL()+"&connect_timeout=2")
	if err != nil {
		return err
	}
	defer db.Close()
	for end := time.Now().Add(settleWithin); ; world.Pause(ctx, 200*time.Millisecond) {
		record, err := readRecord(ctx, db)
		if err != nil {
			return err
		}
		verdict := check(r.fleet.Recorder.Events(), record, result.Failover)
		if len(verdict.Violations) == 0 || time.Now().After(end) || ctx.Err() != nil {
			result.Verdict = verdict
			return ctx.Err()
		}
	}
}
