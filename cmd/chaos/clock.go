package main

import (
	"context"
	"errors"
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
	defer r.down(f.Target)()
	i := r.instance(f.Target)
	if err := r.setClock(i, aheadOf(f)); err != nil {
		return err
	}
	world.Pause(ctx, f.For)
	err := r.setClock(i, 0)
	world.Pause(ctx, clockRight)
	return err
}

// setClock sets the clock of an instance ahead, atomically, as it is read at any time.
func (r *round) setClock(instance int, ahead time.Duration) error {
	file := r.clockFile(instance)
	if err := os.WriteFile(file+".new", []byte(ahead.String()), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// withPostgresClock lets the clock of Postgres be set, too: a schema that is searched first has
// other functions.
func (r *round) withPostgresClock(ctx context.Context) error {
	if err := r.setPostgresClock(ctx, 0); err != nil {
		return err
	}
	r.replicated[fault.Postgres] = r.Postgres.URL() + "&search_path=public,pg_catalog"
	return nil
}

func (r *round) setPostgresClock(ctx context.Context, ahead time.Duration) error {
	for name, stability := range map[string]string{"now": "stable", "clock_timestamp": "volatile"} {
		if err := r.set(ctx, fmt.Sprintf(`create or replace function public.%s() returns timestamptz language sql %s as
			$$select pg_catalog.%[1]s() + interval '%[3]d seconds'$$`, name, stability, int64(ahead.Seconds()))); err != nil {
			return err
		}
	}
	return nil
}

// leapFor is how long the clocks are wrong.
const leapFor = 5 * time.Second

// leap sets the clocks of all instances and of Postgres ahead, and back, as a wrong time server
// does, and kills an instance meanwhile, so that others must settle what it has sent. Cars have the
// time from satellites.
func (r *round) leap(ctx context.Context, f fault.Fault) error {
	if !world.HasTag(r.World.Binary, clockFaultTag) {
		return errUnsupported
	}
	defer r.uptime.allDown()()
	for _, ahead := range []time.Duration{aheadOf(f), 0} {
		at := time.Now()
		var failures []error
		for i := range r.Running {
			failures = append(failures, r.setClock(i, ahead))
		}
		if err := errors.Join(append(failures, r.setPostgresClock(ctx, ahead))...); err != nil {
			return fmt.Errorf("set all clocks: %w", err)
		}
		if ahead == 0 {
			r.leaps[0].To = time.Now()
			break
		}
		r.leaps = []audit.ClockFault{{From: at, Ahead: ahead}}
		world.Pause(ctx, leapFor)
		r.orderUnanswered(ctx, newDraw(r.Seed, int(f.At), r.fleet, r.Instances), 0)
		world.Pause(ctx, time.Second) // they are sent
		if err := r.Running[0].Kill(); err != nil {
			return err
		}
	}
	if err := r.Running[0].Restart(); err != nil {
		return err
	}
	world.Pause(ctx, clockRight)
	return nil
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
