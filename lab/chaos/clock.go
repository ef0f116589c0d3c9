package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"motorpool/lab/chaos/audit"
	"motorpool/lab/world"
	"motorpool/simulator"
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
func (r *round) setClockAhead(ctx context.Context, f Fault) error {
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
	r.replicated[Postgres] = r.Postgres.URL() + "&search_path=public,pg_catalog"
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

// setAllClocks sets the clocks of all instances and of Postgres ahead.
func (r *round) setAllClocks(ctx context.Context, ahead time.Duration) error {
	var failures []error
	for i := range r.Running {
		failures = append(failures, r.setClock(i, ahead))
	}
	if err := errors.Join(append(failures, r.setPostgresClock(ctx, ahead))...); err != nil {
		return fmt.Errorf("set all clocks: %w", err)
	}
	return nil
}

// obeyPostgresClock lets the functions that find their tables by a fixed search path find that
// clock, too.
func (r *round) obeyPostgresClock(ctx context.Context) error {
	return r.set(ctx, `do $$
		declare f record;
		begin
			for f in select oid::regprocedure as name from pg_proc
				where pronamespace = 'public'::regnamespace and array_to_string(proconfig, ' ') like '%search_path=%'
			loop
				execute format('alter function %s set search_path = public, pg_catalog, pg_temp', f.name);
			end loop;
		end $$`)
}

// beforeMonthsEnd is how long before the end of a month the clocks are set to.
const beforeMonthsEnd = 2 * time.Second

// endMonth sets all clocks, those of cars included, to just before the end of a month, some months
// ahead, where they stay: as if the service had run for months.
func (r *round) endMonth(ctx context.Context, f Fault) error {
	if !world.HasTag(r.World.Binary, clockFaultTag) {
		return errUnsupported
	}
	over := r.uptime.allDown()
	now := time.Now().UTC()
	r.newMonth = time.Date(now.Year(), now.Month()+time.Month(f.Amount), 1, 0, 0, 0, 0, time.UTC)
	ahead := r.newMonth.Add(-beforeMonthsEnd).Sub(now).Truncate(time.Second)
	r.leaps = []audit.ClockFault{{From: now, Ahead: ahead}}
	if err := r.setAllClocks(ctx, ahead); err != nil {
		return err
	}
	for _, c := range r.cars {
		c.SetClock(simulator.Clock{Skew: ahead})
	}
	world.Pause(ctx, clockRight)
	over()
	world.Pause(ctx, f.For-clockRight)
	return nil
}

// months returns where the rows of the new month are, when housekeeping has had its time.
func (r *round) months(ctx context.Context) (*audit.Months, error) {
	m := &audit.Months{}
	count := func(ctx context.Context) error {
		return errors.Join(
			r.watcher.db.GetContext(ctx, &m.Outside, `select count(*) from activity_default`),
			r.watcher.db.GetContext(ctx, &m.Entries, `select count(*) from activity where at >= $1`, r.newMonth),
			r.watcher.db.GetContext(ctx, &m.Samples, `select count(*) from telemetry where at >= $1`, r.newMonth))
	}
	var err error
	_ = world.Eventually(ctx, keptWithin, "each row is in the partition of its month", func(ctx context.Context) bool {
		err = count(ctx)
		return retryLater(ctx, err == nil && m.Outside == 0 && m.Entries > 0 && m.Samples > 0)
	}) // the audit shows what is missing
	for _, n := range r.Running {
		values, failure := n.Metrics(ctx)
		err = errors.Join(err, failure)
		m.Refused += int(values[`motorpool_telemetry_samples_dropped_total{reason="refused"}`])
	}
	return m, err
}

// keptWithin is how long housekeeping may need: it looks for missing partitions once a minute.
const keptWithin = 90 * time.Second

// leapFor is how long the clocks are wrong.
const leapFor = 5 * time.Second

// leap sets the clocks of all instances and of Postgres ahead, and back, as a wrong time server
// does, and kills an instance meanwhile, so that others must settle what it has sent. Cars have the
// time from satellites.
func (r *round) leap(ctx context.Context, f Fault) error {
	if !world.HasTag(r.World.Binary, clockFaultTag) {
		return errUnsupported
	}
	defer r.uptime.allDown()()
	for _, ahead := range []time.Duration{aheadOf(f), 0} {
		at := time.Now()
		if err := r.setAllClocks(ctx, ahead); err != nil {
			return err
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

func aheadOf(f Fault) time.Duration { return time.Duration(f.Amount) * time.Second }

// wrongClocks returns when the clock of each instance was ahead: the injection ends clockRight
// later.
func (r *round) wrongClocks() map[int][]audit.ClockFault {
	clocks := map[int][]audit.ClockFault{}
	for i, n := range r.Running {
		for _, s := range r.injections.All() {
			if s.Kind.Name == ClockAhead && s.Target == n.Name && s.Err == nil {
				clocks[i] = append(clocks[i], audit.ClockFault{From: s.From, To: s.To.Add(-clockRight), Ahead: aheadOf(s.Fault)})
			}
		}
	}
	return clocks
}
