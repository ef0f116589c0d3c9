package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"motorpool/cmd/chaos/audit"
	"motorpool/cmd/internal/service"
)

const (
	clockAhead = "instance clock ahead" // the fault

	// clockFaultTag is the build tag of a service whose clock can be set wrong, by a file that this variable names: see
	// clock_fault.go in package app.
	clockFaultTag  = "clockfault"
	clockFaultFile = "MOTORPOOL_CLOCK_FAULT"

	// clockFaultLength is how long a clock is wrong at least; mostly it is longer, so that what goes on being published is noticed.
	clockFaultLength = 4 * time.Second
	// clockRight is after how long an instance whose clock was set right surely works again.
	clockRight = 2 * time.Second
)

// clockFile says by how much the clock of an instance is ahead. Without it the clock is right.
func (w *world) clockFile(instance int) string {
	return w.path(fmt.Sprintf("instance-%d.clock", instance))
}

// setClockAhead sets the clock of an instance ahead while it runs. It does none of the work that it does for others meanwhile.
func (w *world) setClockAhead(ctx context.Context, f fault) error {
	if !service.HasTag(w.Binary, clockFaultTag) {
		return errNotHere
	}
	i := slices.IndexFunc(w.instances, func(n *instance) bool { return n.Name == f.Target })
	defer w.hindered(f.Target)()
	file := w.clockFile(i)
	if err := os.WriteFile(file+".new", []byte(aheadOf(f).String()), 0o600); err != nil {
		return err
	}
	if err := os.Rename(file+".new", file); err != nil { // it is read at any moment
		return err
	}
	pause(ctx, f.For)
	err := os.Remove(file)
	pause(ctx, clockRight)
	return err
}

func aheadOf(f fault) time.Duration { return time.Duration(f.Amount) * time.Second }

// wrongClocks returns when the clock of each instance was ahead: a strike lasts for clockRight longer.
func (w *world) wrongClocks(strikes []strike) map[int][]audit.ClockFault {
	clocks := map[int][]audit.ClockFault{}
	for i, n := range w.instances {
		for _, s := range strikes {
			if s.Kind.name == clockAhead && s.Target == n.Name && s.Err == nil {
				clocks[i] = append(clocks[i], audit.ClockFault{From: s.From, To: s.To.Add(-clockRight), Ahead: aheadOf(s.fault)})
			}
		}
	}
	return clocks
}
