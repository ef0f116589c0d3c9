package runner

import (
	"context"
	"slices"
	"sync"
	"time"

	"motorpool/lab/world"
)

// Fault is a fault of a schedule.
type Fault struct {
	At     time.Duration // since the load began
	Target string        // no two faults strike one concurrently: one that lasts delays the next
	Strike func(context.Context)
}

// Inject injects each fault at its time, and returns when all are over.
func Inject(ctx context.Context, faults []Fault) {
	slices.SortStableFunc(faults, func(a, b Fault) int { return int(a.At - b.At) })
	targets := map[string]*sync.Mutex{}
	for _, f := range faults {
		targets[f.Target] = &sync.Mutex{}
	}
	begin := time.Now()
	var all sync.WaitGroup
	for _, f := range faults {
		if world.Pause(ctx, time.Until(begin.Add(f.At))); ctx.Err() != nil {
			break
		}
		all.Go(func() {
			targets[f.Target].Lock()
			defer targets[f.Target].Unlock()
			f.Strike(ctx)
		})
	}
	all.Wait()
}
