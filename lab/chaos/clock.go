package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"motorpool/lab/chaos/audit"
	"motorpool/lab/chaos/clocks"
	"motorpool/lab/world"
	"motorpool/simulator"
)

// clockRight is after how long an instance with a corrected clock certainly works again.
const clockRight = 2 * time.Second

// setClock sets the wall clock of servers ahead; negative: back; zero: right.
func setClock(ahead time.Duration, servers ...server) error {
	set := func(pid int) error { return clocks.Set(pid, ahead) }
	return errors.Join(inEach(servers, set), inEach(servers, set)) // Postgres forks
}

func inEach(servers []server, do func(pid int) error) error {
	var failures []error
	for _, s := range servers {
		pids, err := s.Processes()
		failures = append(failures, err)
		for _, pid := range pids {
			failures = append(failures, do(pid))
		}
	}
	return errors.Join(failures...)
}

// timekeepers are the instances and Postgres.
func (r *round) timekeepers() (all []server) {
	for _, n := range r.Running {
		all = append(all, n)
	}
	return append(all, r.Postgres)
}

// noteClock notes when the clock of an instance was wrong, or else that of Postgres or of all.
func (r *round) noteClock(target string, c audit.ClockFault) {
	r.clocks.Lock()
	defer r.clocks.Unlock()
	of := r.instance(target)
	if of < 0 {
		of = audit.All
	}
	r.clocks.wrong[of] = append(r.clocks.wrong[of], c)
}

// setWrong sets the clock of an instance, or of Postgres, ahead or back for a while. It counts as
// down meanwhile.
func (r *round) setWrong(ctx context.Context, f Fault) error {
	defer r.down(f.Target)()
	from := time.Now()
	if err := setClock(aheadOf(f), r.server(f.Target)); err != nil {
		return err
	}
	world.Pause(ctx, f.For)
	err := setClock(0, r.server(f.Target))
	r.noteClock(f.Target, audit.ClockFault{From: from, To: time.Now(), Ahead: aheadOf(f)})
	world.Pause(ctx, clockRight)
	return err
}

// suspensions is how often a machine is suspended in a round of one fault.
const suspensions = 2

// suspend suspends the machine of an instance, or the one that all servers share: its clocks stand
// still, and its wall clock is right again some seconds after it goes on. In a round of one fault,
// commands are halted the first time, while some are in flight; the second time, some are accepted.
func (r *round) suspend(ctx context.Context, f Fault) error {
	defer r.down(f.Target)()
	if r.Fault == "" {
		return r.suspendFor(ctx, f, f.For.Truncate(time.Second), f.Amount)
	}
	for n := range suspensions {
		lag := f.Amount
		if f.Target != everything { // a halt is not known without a clock that is right
			lag *= int64(n)
		}
		var halting sync.WaitGroup
		var unhalted error
		r.orderUnanswered(ctx, newDraw(r.Seed, int(f.At), r.fleet, r.Instances), 0)
		if n == 0 {
			world.Pause(ctx, time.Second) // they are sent
		} else {
			world.Pause(ctx, accepting)
		}
		if n == 0 && f.Target != everything {
			halting.Go(func() {
				world.Pause(ctx, time.Second/2)
				unhalted = r.haltCommands(ctx, Fault{At: f.At, For: f.For / suspensions, Target: Halt(0)})
			})
		}
		err := r.suspendFor(ctx, f, (f.For / suspensions).Truncate(time.Second), lag)
		halting.Wait()
		if err = errors.Join(err, unhalted); err != nil {
			return err
		}
	}
	return nil
}

// suspensionNoticed is how long an instance may need to notice that it was suspended, where only
// the clock of Postgres and the halts there show it: it reads both twice a second.
const suspensionNoticed = 1500 * time.Millisecond

// accepting is a time after which some of many orders are accepted, and not published.
const accepting = 30 * time.Millisecond

// maxLag is after how many seconds the clock of a machine is right at the latest, when it goes on.
const maxLag = 3

func (r *round) suspendFor(ctx context.Context, f Fault, took time.Duration, lag int64) error {
	servers := []server{}
	if f.Target == everything {
		servers = append(r.timekeepers(), r.Redis, r.Mosquitto)
	} else {
		servers = append(servers, r.server(f.Target))
	}
	for _, s := range servers {
		if err := s.Pause(); err != nil {
			return err
		}
	}
	world.Pause(ctx, took)
	err := inEach(servers, func(pid int) error { return clocks.TakeBack(pid, took) })
	if lag == 0 {
		err = errors.Join(err, setClock(0, servers...))
	}
	from := time.Now()
	for _, s := range servers {
		err = errors.Join(err, s.Resume())
	}
	if lag > 0 && err == nil {
		world.Pause(ctx, time.Duration(lag)*time.Second)
		err = setClock(0, servers...)
		r.noteClock(f.Target, audit.ClockFault{From: from, To: time.Now(), Ahead: -took, Suspended: true})
	}
	world.Pause(ctx, clockRight)
	return err
}

// beforeMonthsEnd is how long before the end of a month the clocks are set to.
const beforeMonthsEnd = 2 * time.Second

// endMonth sets all clocks, those of cars included, to just before the end of a month, some months
// ahead, where they stay: as if the service had run for months.
func (r *round) endMonth(ctx context.Context, f Fault) error {
	over := r.uptime.allDown()
	now := time.Now().UTC()
	r.newMonth = time.Date(now.Year(), now.Month()+time.Month(f.Amount), 1, 0, 0, 0, 0, time.UTC)
	ahead := r.newMonth.Add(-beforeMonthsEnd).Sub(now).Truncate(time.Second)
	if err := setClock(ahead, r.timekeepers()...); err != nil {
		return err
	}
	r.noteClock(f.Target, audit.ClockFault{From: now, To: now.Add(time.Hour), Ahead: ahead})
	for _, c := range r.cars {
		c.SetClock(simulator.Clock{Skew: ahead})
	}
	world.Pause(ctx, clockRight)
	over()
	world.Pause(ctx, f.For-clockRight)
	// Samples from before have no partition any more.
	var err error
	r.refusedBefore, err = r.refusedSamples(ctx)
	return err
}

func (r *round) refusedSamples(ctx context.Context) (n int, err error) {
	for _, instance := range r.Running {
		values, failure := instance.Metrics(ctx)
		err = errors.Join(err, failure)
		n += int(values[`motorpool_telemetry_samples_dropped_total{reason="refused"}`])
	}
	return n, err
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
	refused, failure := r.refusedSamples(ctx)
	m.Refused = refused - r.refusedBefore
	return m, errors.Join(err, failure)
}

// keptWithin is how long housekeeping may need: it looks for missing partitions once a minute.
const keptWithin = 90 * time.Second

// leapFor is how long the clocks are wrong.
const leapFor = 5 * time.Second

// leap sets the clocks of all instances and of Postgres wrong, and right, as a wrong time server
// does, and kills an instance meanwhile, so that others must settle what it has sent. Cars have the
// time from satellites.
func (r *round) leap(ctx context.Context, f Fault) error {
	defer r.uptime.allDown()()
	from := time.Now()
	if err := setClock(aheadOf(f), r.timekeepers()...); err != nil {
		return err
	}
	world.Pause(ctx, leapFor)
	r.orderUnanswered(ctx, newDraw(r.Seed, int(f.At), r.fleet, r.Instances), 0)
	world.Pause(ctx, time.Second) // they are sent
	if err := r.Running[0].Kill(); err != nil {
		return err
	}
	err := setClock(0, r.timekeepers()[1:]...)
	r.noteClock(f.Target, audit.ClockFault{From: from, To: time.Now(), Ahead: aheadOf(f)})
	if err = errors.Join(err, r.Running[0].Restart()); err == nil {
		world.Pause(ctx, clockRight)
	}
	return err
}

func aheadOf(f Fault) time.Duration { return time.Duration(f.Amount) * time.Second }
