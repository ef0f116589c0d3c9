package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"motorpool/cmd/chaos/audit"
	"motorpool/cmd/internal/world"
)

// readiness records when each instance said that it is ready. It is safe for concurrent use.
type readiness struct {
	mu   sync.Mutex // guards said
	said []intervals
}

const readinessEvery = 250 * time.Millisecond

// watchReadiness asks each instance until the context ends.
func watchReadiness(ctx context.Context, watching *sync.WaitGroup, instances []*world.Instance) *readiness {
	r := &readiness{said: make([]intervals, len(instances))}
	for i, n := range instances {
		watching.Go(func() {
			for ctx.Err() == nil {
				asked := time.Now()
				ready := n.Ready(ctx)
				r.mu.Lock()
				r.said[i].set(ready, asked)
				r.mu.Unlock()
				world.Pause(ctx, readinessEvery)
			}
		})
	}
	return r
}

// all returns when each instance said that it is ready, by its number.
func (r *readiness) all() map[int][]audit.Interval {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[int][]audit.Interval{}
	for i := range r.said {
		all[i] = r.said[i].all()
	}
	return all
}

// findings are what did not come in time, though the harness waited generously for it: a violation,
// not a failure of the harness. It is safe for concurrent use.
type findings struct {
	mu      sync.Mutex // guards what follows
	awaited int
	missing []string
}

// mustCome records the result of something that was awaited. It reports whether the error is one of
// the harness itself.
func (r *round) mustCome(err error) bool {
	r.findings.mu.Lock()
	defer r.findings.mu.Unlock()
	r.findings.awaited++
	if errors.Is(err, world.ErrNotInTime) {
		r.findings.missing = append(r.findings.missing, err.Error())
		return false
	}
	return err != nil
}

func (f *findings) all() (awaited int, missing []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.awaited, slices.Clone(f.missing)
}
