// Package money checks that each charge, deposit and refund is made exactly once. It runs instances
// of the service as processes, with real servers and a simulated payment processor. By HTTP, it
// starts, extends, fines, refunds, captures from and ends many bookings.
// Meanwhile it kills the instances, Postgres and the processor; and the processor fails, too:
// it charges without an answer, and answers with errors that it repeats for the same key.
//
//	callers ─HTTP─ instances ─ Postgres, Redis, Mosquitto
//	                   │  ▲
//	                   ▼  └─ relay ─┐ notices: to one instance or to all; some are lost
//	               processor ───────┘
//
// Every call is repeated with its key until the answer is definite. When all faults are over and
// nothing is due any more, the audit compares three accounts: what the callers were answered, what
// Postgres has stored, and the processor's ledger.
package money

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"motorpool/lab/chaos/verdict"
	"motorpool/rental"
	"motorpool/simulator/sandbox"
	"motorpool/simulator/world"
	"motorpool/telematics"
)

// Config describes a round.
type Config struct {
	Seed      uint64
	Bookings  int
	Instances int // Defaults to 3
	// Bookings begin and faults happen for that long. Defaults to a second for ten bookings, and at
	// least 15 s.
	Duration time.Duration
	// Hurry ends leases of dead workers and pauses between retries early, once all faults are over.
	// Without it, the round waits for minutes.
	Hurry bool
	// LostCommits makes the failover to a standby that is behind the only fault.
	LostCommits bool
	Progress    func(string) // is called at each step. Defaults to nothing
}

const (
	bookingsASecond = 10
	shortest        = 15 * time.Second
)

func (c Config) withDefaults() (Config, error) {
	c.Instances = cmp.Or(c.Instances, 3)
	c.Duration = cmp.Or(c.Duration, max(shortest, time.Duration(c.Bookings)*time.Second/bookingsASecond))
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	switch {
	case c.Bookings < 20:
		return c, errors.New("a round of money needs 20 bookings, or more: so that every kind of call occurs")
	case c.Instances < 2:
		return c, errors.New("a round of money needs two instances, or more: so that one takes over charges from another")
	}
	return c, nil
}

// Round builds the world, breaks it, heals it, and checks. An error means that the world itself
// failed.
func Round(ctx context.Context, w *world.World, c Config) (result Result, err error) {
	if c, err = c.withDefaults(); err != nil {
		return result, err
	}
	begin := time.Now()
	r := &round{Config: c, World: w, counters: newCounters(), agencyKeys: map[telematics.AgencyID]rental.AgencyKey{}}
	err = r.run(ctx, &result)
	result.Config, result.Took = c, time.Since(begin)
	return result, err
}

func (r *round) run(ctx context.Context, result *Result) error {
	r.Progress(fmt.Sprintf("seed %d: starting servers and %d instances; %d bookings", r.Seed, r.Instances, r.Bookings))
	if err := r.build(ctx); err != nil {
		return err
	}
	r.Progress(fmt.Sprintf("%v of load, with faults", r.Duration))
	begin := time.Now()
	broken := make(chan struct{})
	loading, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer close(broken)
		if !r.LostCommits {
			r.injectFaults(ctx)
		} else if err := r.loseCommits(ctx, stop); err != nil {
			r.Fail(fmt.Errorf("%s: %w", lostFault, err))
		}
	}()
	named := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(named)
		if r.LostCommits {
			result.Shown = r.makeBookings(ctx, stopped)
		}
	}()
	r.runBookings(loading)
	<-broken
	if r.LostCommits {
		world.Pause(ctx, bookedAfter)
	}
	close(stopped)
	<-named
	result.Load = time.Since(begin)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.Progress("all faults are over: waiting until nothing is due")
	begin = time.Now()
	if r.LostCommits {
		if err := errors.Join(r.Ready(ctx), r.repeatAll(ctx)); err != nil {
			return err
		}
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	result.Settling, result.Operations = time.Since(begin), r.allOperations()
	var err error
	if result.Record, err = r.read(ctx); err != nil {
		return err
	}
	if r.LostCommits {
		if result.Named, err = r.readNames(ctx); err != nil {
			return err
		}
	}
	result.Ledger = r.processor.Ledger()
	result.Fired = r.processor.Fired()
	result.Counts = r.counters.all()
	result.Report = Check(result.Evidence)
	return nil
}

// Result is a round.
type Result struct {
	Config Config
	Evidence
	Fired    map[sandbox.FaultKind]int
	Counts   map[string]map[string]int
	Load     time.Duration
	Settling time.Duration
	Took     time.Duration
	Report   verdict.Report
}
