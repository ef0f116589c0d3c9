package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// resident is the memory of a process that is in use (VmRSS), shared pages in full.
func resident(pid int) (int64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	status, err := p.NewStatus()
	if err != nil {
		return 0, fmt.Errorf("read memory: %w", err)
	}
	return int64(status.VmRSS), nil
}

// lookEvery is between two looks at what a process holds.
const lookEvery = 50 * time.Millisecond

// watchResident looks again and again at what a process holds, until it is told to stop, and returns the most that it saw.
func watchResident(ctx context.Context, pid int) (stop func() (most int64, err error)) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	var most int64
	var failure error
	go func() {
		defer close(done)
		for {
			now, err := resident(pid)
			if err != nil {
				failure = err
				return
			}
			most = max(most, now)
			select {
			case <-time.After(lookEvery):
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() (int64, error) {
		cancel()
		<-done
		return most, failure
	}
}
