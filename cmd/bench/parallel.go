package main

import (
	"context"
	"sync"
	"time"
)

// called is what came of many calls.
type called struct {
	Answered int64   `json:"answered"`
	Refused  int64   `json:"refused"`
	Why      string  `json:"why,omitempty"` // of one that was refused
	Rate     float64 `json:"per_second"`
	quantiles
}

// inParallel lets a number of workers call, each one call after the other, for a while. The end cuts no call off.
func inParallel(ctx context.Context, workers int, d time.Duration, worker func(n int) (call func() error)) called {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var mu sync.Mutex // guards what follows
	var sum called
	all := newLatencies()
	var running sync.WaitGroup
	begin := time.Now()
	for n := range workers {
		call := worker(n)
		running.Go(func() {
			own, answered, refused, why := newLatencies(), int64(0), int64(0), ""
			for ctx.Err() == nil {
				sent := time.Now()
				if err := call(); err != nil {
					refused++
					why = err.Error()
					continue
				}
				own.add(time.Since(sent))
				answered++
			}
			mu.Lock()
			defer mu.Unlock()
			all.h.Merge(own.h)
			sum.Answered += answered
			sum.Refused += refused
			if why != "" {
				sum.Why = why
			}
		})
	}
	running.Wait()
	sum.Rate = float64(sum.Answered) / time.Since(begin).Seconds()
	sum.quantiles = all.quantiles()
	return sum
}
