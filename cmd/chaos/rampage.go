package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// strike is a fault that happened.
type strike struct {
	fault
	From, To time.Time // from before it was made until after it was lifted
	Err      error     // errNotHere, or nil
}

// rampage lets every fault of a schedule strike at its time, and returns when all are lifted.
func (w *world) rampage(ctx context.Context, faults []fault) []strike {
	var mu sync.Mutex // guards what follows
	var strikes []strike
	targets := map[string]*sync.Mutex{} // a fault that takes longer than planned delays the next one of its target
	for _, f := range faults {
		targets[f.Target] = &sync.Mutex{}
	}
	begin := time.Now()
	var all sync.WaitGroup
	for _, f := range faults {
		pause(ctx, time.Until(begin.Add(f.At)))
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			targets[f.Target].Lock()
			defer targets[f.Target].Unlock()
			s := strike{fault: f, From: time.Now()}
			w.log.Info("fault", "kind", f.Kind.name, "target", f.Target, "for", f.For, "amount", f.Amount, "cars", len(f.Cars))
			s.Err = f.Kind.strike(w, ctx, f)
			s.To = time.Now()
			if s.Err != nil && !errors.Is(s.Err, errNotHere) {
				w.fall(fmt.Errorf("fault %q of %s: %w", f.Kind.name, f.Target, s.Err))
			}
			mu.Lock()
			defer mu.Unlock()
			strikes = append(strikes, s)
		})
	}
	all.Wait()
	return strikes
}

// calm returns a test for stretches of time that no fault touched.
func calm(strikes []strike) func(from, to time.Time) bool {
	return func(from, to time.Time) bool {
		for _, s := range strikes {
			if s.Err == nil && from.Before(s.To.Add(aftermath)) && to.After(s.From) {
				return false
			}
		}
		return true
	}
}

// aftermath is how long after a fault a call still counts as struck by it.
const aftermath = time.Second
