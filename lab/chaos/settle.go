package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"motorpool/lab/chaos/audit"
	"motorpool/lab/world"
	"motorpool/simulator"
)

const (
	settleWithin = 60 * time.Second
	// steadyFor is how long the number of unknown commands must not change.
	steadyFor = 4 * time.Second
	// maxRedisTTL is how long an entry may outlive the last command, with a margin.
	maxRedisTTL = 95 * time.Second
	// floodAfter is longer than an instance avoids a server that has failed.
	floodAfter = 2 * time.Second
)

// settle lets one unit flood its topics, and one client the service, waits until no state changes
// any more, and collects the evidence. The audit checks what has not settled in time.
func (r *round) settle(ctx context.Context) error {
	r.loadEnded()
	progress("all faults are over: one unit floods its topics")
	flood, err := r.flood(ctx)
	if err != nil {
		return err
	}
	progress("one client floods the service")
	r.endFaults(ctx)
	world.Pause(ctx, floodAfter)
	clientFlood, err := r.clientFlood(ctx)
	if r.mustCome(err) {
		return fmt.Errorf("flood: %w", err)
	}
	if err := r.settleCommands(ctx); err != nil {
		return err
	}
	err = r.collectEvidence(ctx)
	r.evidence.Floods, r.evidence.ClientFlood = []audit.Flood{flood}, clientFlood
	return err
}

// loadEnded waits for the orders that faults have sent.
func (r *round) loadEnded() {
	r.load.background.Wait()
	r.loading.To = time.Now()
}

// settleCommands waits until no state changes any more.
func (r *round) settleCommands(ctx context.Context) error {
	for _, s := range r.injections.All() {
		if s.Kind.Name == RadioLate {
			// Delayed messages still arrive.
			world.Pause(ctx, time.Until(s.To.Add(MaxRadioDelay)))
		}
	}
	r.await(ctx, settleWithin, "no command is open", func(ctx context.Context) bool {
		open, _, err := r.watcher.unsettled(ctx)
		return err == nil && open == 0
	})
	// Every car has reported its latest answers once more.
	world.Pause(ctx, reportInterval+time.Second)
	steady, before := time.Now(), -1
	r.await(ctx, settleWithin, "the number of unknown commands is steady", func(ctx context.Context) bool {
		_, unknown, err := r.watcher.unsettled(ctx)
		if err != nil || unknown != before {
			steady, before = time.Now(), unknown
		}
		return time.Since(steady) > steadyFor
	})
	if !r.short() {
		r.Log.Info("waiting until redis entries expire", "at_most", maxRedisTTL)
		r.await(ctx, maxRedisTTL, "redis entries have expired", func(ctx context.Context) bool {
			entries, err := r.pending(ctx)
			return err == nil && !slices.ContainsFunc(entries, func(e audit.RedisKey) bool { return !e.Stays() })
		})
	}
	world.Pause(ctx, time.Second)
	return ctx.Err()
}

// endFaults ends the faults of cars, and waits until all instances are ready and all cars
// connected. One that does not come in time is a violation: the round goes on without it.
func (r *round) endFaults(ctx context.Context) {
	for i, c := range r.cars {
		c.SetClock(simulator.Clock{})
		c.SetFaults(profileOf(i + 1).Faults) // a car that waits to reconnect connects now
	}
	r.mustCome(r.Ready(ctx))
	r.mustCome(r.carsConnected(ctx))
}

// short rounds do not wait until entries of Redis expire; each must have an expiry.
func (r *round) short() bool { return r.Duration <= time.Minute }

// await waits for a condition, and logs if it does not hold in time.
func (r *round) await(ctx context.Context, within time.Duration, condition string, holds func(context.Context) bool) {
	if err := world.Eventually(ctx, within, condition, holds); err != nil {
		r.Log.Warn("not settled in time", "err", err)
	}
}
