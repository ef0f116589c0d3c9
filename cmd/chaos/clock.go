package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"motorpool/cmd/chaos/audit"
	"motorpool/cmd/chaos/fault"
	"motorpool/cmd/internal/world"
)

const (
	// clockFaultTag is the build tag of a service whose clock a file can set wrong, which
	// clockFaultFile names: see clock_fault.go in package app.
	clockFaultTag  = "clockfault"
	clockFaultFile = "MOTORPOOL_CLOCK_FAULT"

	// clockRight is after how long an instance with a corrected clock certainly works again.
	clockRight = 2 * time.Second
)

// clockFile contains by how much the clock of an instance is ahead. Without the file, the clock is
// right.
func (r *round) clockFile(instance int) string {
	return r.Path(fmt.Sprintf("instance-%d.clock", instance))
}

// setClockAhead sets the clock of a running instance ahead. The instance counts as down meanwhile.
func (r *round) setClockAhead(ctx context.Context, f fault.Fault) error {
	if !world.HasTag(r.World.Binary, clockFaultTag) {
		return errUnsupported
	}
	i := r.instance(f.Target)
	defer r.down(f.Target)()
	file := r.clockFile(i)
	if err := os.WriteFile(file+".new", []byte(aheadOf(f).String()), 0o600); err != nil {
		return err
	}
	if err := os.Rename(file+".new", file); err != nil { // atomically, as it is read at any time
		return err
	}
	world.Pause(ctx, f.For)
	err := os.Remove(file)
	world.Pause(ctx, clockRight)
	return err
}

func aheadOf(f fault.Fault) time.Duration { return time.Duration(f.Amount) * time.Second }

// wrongClocks returns when the clock of each instance was ahead: the injection ends clockRight
// later.
func (r *round) wrongClocks(injections []injection) map[int][]audit.ClockFault {
	clocks := map[int][]audit.ClockFault{}
	for i, n := range r.Running {
		for _, s := range injections {
			if s.Kind.Name == fault.ClockAhead && s.Target == n.Name && s.Err == nil {
				clocks[i] = append(clocks[i], audit.ClockFault{From: s.From, To: s.To.Add(-clockRight), Ahead: aheadOf(s.Fault)})
			}
		}
	}
	return clocks
}
