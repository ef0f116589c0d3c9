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
	"slices"
	"sync"
	"time"

	"motorpool/lab/chaos/runner"
	"motorpool/lab/world"
	"motorpool/rental"
	"motorpool/telematics"
)

// Plan is what is special about a round.
type Plan struct {
	// Hurry ends leases of dead workers and pauses between retries early, once all faults are over.
	// Without it, the round waits for minutes.
	Hurry bool
	// LostCommits makes the failover to a standby that is behind the only fault.
	LostCommits bool
}

const (
	bookingsASecond = 10
	shortest        = 15 * time.Second
)

// Round returns rounds of money, of three instances by default. Bookings begin and faults happen
// for the duration, by default a second for ten bookings, and at least 15 s.
func Round(p Plan) runner.Kind {
	return func(w *world.World, c runner.Config) (runner.Round, error) {
		r, err := newRound(w, c, p, "bookings", c.Bookings, bookingsASecond)
		if err != nil {
			return runner.Round{}, err
		}
		faults := r.injectFaults
		if p.LostCommits {
			faults = r.loseCommits
		}
		return runner.Round{
			Starts: fmt.Sprintf("servers and %d instances; %d bookings", r.Instances, c.Bookings),
			World: []world.Step{
				{What: "servers", Do: r.startServers}, {What: "bookings", Do: r.createBookings}, {What: "instances", Do: r.startInstances},
			},
			Load: r.load, Faults: faults, Settle: r.collect, Check: r.result,
		}, nil
	}
}

func newRound(w *world.World, c runner.Config, p Plan, of string, number, aSecond int) (*round, error) {
	c.Instances = cmp.Or(c.Instances, 3)
	c.Duration = cmp.Or(c.Duration, max(shortest, time.Duration(number)*time.Second/time.Duration(aSecond)))
	if number < 20 || c.Instances < 2 {
		return nil, fmt.Errorf("a round of %s needs 20, or more, so that every kind of request occurs, "+
			"and two instances, or more, so that one takes over from another", of)
	}
	return &round{
		Config: c, Plan: p, World: w, faults: slices.Clone(moneyFaults),
		agencyKeys: map[telematics.AgencyID]rental.AgencyKey{}, lost: make(chan struct{}),
	}, nil
}

// load performs the operations of all bookings; where commits are lost, until then, and makes other
// bookings meanwhile, and for a while after the failover.
func (r *round) load(ctx context.Context, over <-chan struct{}) {
	r.Progress(fmt.Sprintf("%v of load, with faults", r.Duration))
	begin := time.Now()
	defer func() { r.loaded = time.Since(begin) }()
	if !r.LostCommits {
		r.runBookings(ctx)
		return
	}
	loading, stop := context.WithCancel(ctx)
	defer stop()
	booking, stopBooking := context.WithCancel(ctx)
	var others sync.WaitGroup
	others.Go(func() { r.Shown = r.makeBookings(booking) })
	others.Go(func() {
		select {
		case <-r.lost:
		case <-ctx.Done():
		}
		stop()
	})
	r.runBookings(loading)
	<-over
	world.Pause(ctx, bookedAfter)
	stopBooking()
	others.Wait()
}

// collect waits until nothing is due any more, and collects the accounts.
func (r *round) collect(ctx context.Context) (err error) {
	begin := time.Now()
	if r.LostCommits {
		if err := errors.Join(r.Ready(ctx), r.repeatAll(ctx)); err != nil {
			return err
		}
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	r.settled, r.Operations = time.Since(begin), r.allOperations()
	if r.Record, err = r.read(ctx); err == nil && r.LostCommits {
		r.Named, err = r.readNames(ctx)
	}
	r.Ledger = r.processor.Ledger()
	return err
}
