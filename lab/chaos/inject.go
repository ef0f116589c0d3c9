package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"motorpool/lab/chaos/clocks"
	"motorpool/lab/world"
)

// breakNothing lasts as long as a fault.
func (r *round) breakNothing(ctx context.Context, f Fault) error { world.Pause(ctx, f.For); return nil }

// injection is a fault that happened.
type injection struct {
	Fault
	From, To time.Time // from before it began until after it was over
	Err      error     // errUnsupported, or nil
}

// errUnsupported means that this machine cannot have that fault.
var errUnsupported = errors.New("not available here")

// injectAll injects every fault of the round at its time, and returns when all are over.
func (r *round) injectAll(ctx context.Context) error {
	progress(fmt.Sprintf("%v of load, %d faults", r.Duration, len(r.faults)))
	// A fault that takes longer than planned delays the next one of its target.
	targets := map[string]*sync.Mutex{}
	for _, f := range r.faults {
		targets[f.Target] = &sync.Mutex{}
	}
	begin := time.Now()
	var all sync.WaitGroup
	for _, f := range r.faults {
		world.Pause(ctx, time.Until(begin.Add(f.At)))
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			targets[f.Target].Lock()
			defer targets[f.Target].Unlock()
			i := injection{Fault: f, From: time.Now()}
			r.Log.Info("fault injected", "kind", f.Kind.Name, "target", f.Target, "for", f.For, "amount", f.Amount, "cars", len(f.Cars))
			i.Err = f.strike(r, ctx)
			i.To = time.Now()
			if errors.Is(i.Err, clocks.ErrUnsupported) {
				i.Err = errUnsupported
			}
			if r.mustCome(i.Err) && !errors.Is(i.Err, errUnsupported) {
				r.Fail(fmt.Errorf("fault %q of %s: %w", f.Kind.Name, f.Target, i.Err))
			}
			r.injections.Add(i)
		})
	}
	all.Wait()
	return nil
}

// strike injects the fault, and returns when it is over.
func (f Fault) strike(r *round, ctx context.Context) error {
	if f.Kind.strike == nil {
		return r.strike(ctx, f)
	}
	return f.Kind.strike(r, ctx, f)
}

// aftermath is how long after a fault calls may still be disturbed by it.
const aftermath = time.Second
