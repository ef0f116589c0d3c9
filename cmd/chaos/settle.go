package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"motorpool/cmd/chaos/audit"
	"motorpool/cmd/internal/service"
	"motorpool/simulator"
	"motorpool/telematics"
)

const (
	settleWithin = 60 * time.Second
	// steadyFor is how long the number of unknown commands must stay the same.
	steadyFor = 4 * time.Second
	// redisKeeps is how long an entry may outlive the last command, with a margin.
	redisKeeps = 95 * time.Second
	// floodAfter is for what an instance does not ask a server that has failed a moment ago.
	floodAfter = 2 * time.Second
	// redisForgets is after how long behind its deadline an entry must be gone.
	redisForgets = 65 * time.Second
)

// settle makes everything right again, and waits until all that can be known is. What does not settle in time is for the
// audit to judge. As soon as everything is right again one client floods the service, which must harm nobody.
func (w *world) settle(ctx context.Context, l *load, strikes []strike) (flood audit.ClientFlood, err error) {
	if err := w.heal(ctx); err != nil {
		return flood, fmt.Errorf("settle: %w", err)
	}
	pause(ctx, floodAfter)
	if flood, err = w.clientFlood(ctx, l); err != nil {
		return flood, fmt.Errorf("flood: %w", err)
	}
	for _, s := range strikes {
		if s.Kind.name == radioLate {
			pause(ctx, time.Until(s.To.Add(latest))) // what is on its way still arrives
		}
	}
	w.report(ctx, "nothing open", func(ctx context.Context) bool {
		open, _, err := w.watch.undecided(ctx)
		return err == nil && open == 0
	})
	pause(ctx, reportInterval+time.Second) // every car has reported its latest answers once more
	steady, before := time.Now(), -1
	w.report(ctx, "nothing settles any more", func(ctx context.Context) bool {
		_, unknown, err := w.watch.undecided(ctx)
		if err != nil || unknown != before {
			steady, before = time.Now(), unknown
		}
		return time.Since(steady) > steadyFor
	})
	if !w.short() {
		w.log.Info("waiting for redis to forget", "at_most", redisKeeps)
		w.reportWithin(ctx, redisKeeps, "redis forgot", func(ctx context.Context) bool {
			entries, err := w.pending(ctx)
			return err == nil && !slices.ContainsFunc(entries, func(e audit.Entry) bool { return !e.Stays() })
		})
	}
	// What is overdue in the index of deadlines goes with the next command.
	for _, car := range []int{1, 2} {
		d := newDraw(w.Seed, 2*w.Callers+car, w.Vehicles, w.Instances)
		l.note(w.call(ctx, order{car: car, action: telematics.Lock}, d.id(), 0, callTimeout))
	}
	pause(ctx, time.Second)
	return flood, ctx.Err()
}

// heal sets right what faults have left in cars, and waits until all cars and instances are there.
func (w *world) heal(ctx context.Context) error {
	for i, c := range w.fleet.Cars() {
		c.SetClock(simulator.Clock{})
		c.SetFaults(profileOf(i + 1).Faults) // a car that waits to connect again connects now
	}
	if err := w.ready(ctx); err != nil {
		return err
	}
	return w.carsConnected(ctx)
}

// short rounds do not wait for what Redis keeps for a minute: there it must have an end, at least.
func (w *world) short() bool { return w.Duration <= time.Minute }

func (w *world) report(ctx context.Context, what string, holds func(context.Context) bool) {
	w.reportWithin(ctx, settleWithin, what, holds)
}

func (w *world) reportWithin(ctx context.Context, within time.Duration, what string, holds func(context.Context) bool) {
	if err := service.Eventually(ctx, within, what, holds); err != nil {
		w.log.Warn("did not settle", "err", err)
	}
}
