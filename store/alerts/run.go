package alerts

import (
	"context"
	"errors"
	"sync"
	"time"

	"motorpool/guard"
	"motorpool/store/pg"
)

// Run sweeps while this instance has the lease, and writes alarms of units. It blocks until the
// context ends, writes the alarms that are left, and returns nil.
func (s *Store) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	for doing, run := range map[string]func(context.Context) error{"sweep alerts": s.runSweeps, "write alarms": s.runAlarms} {
		loops.Go(func() { _ = s.Guard.Keep(ctx, doing, run) })
	}
	loops.Wait()
	return nil
}

func (s *Store) runSweeps(ctx context.Context) error {
	defer s.rest()
	for next := time.Now(); guard.Pause(ctx, sweepEvery); {
		// Without Redis each instance sweeps: that costs more, and changes nothing.
		if mine, err := s.TryLease(ctx); err == nil && !mine {
			s.rest()
			continue
		}
		if began := time.Now(); !began.Before(next) {
			s.sweepOnce(ctx)
			next = time.Now().Add((sweepShare - 1) * time.Since(began))
		}
	}
	return nil
}

// rest forgets what only an instance that sweeps keeps up to date.
func (s *Store) rest() {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	s.receives, s.areasVersion = time.Time{}, ""
	s.metrics.setOpen(nil)
}

func (s *Store) sweepOnce(ctx context.Context) {
	began := time.Now()
	err := errors.Join(s.Sweep(ctx), s.countOpen(ctx))
	s.metrics.seconds.Observe(time.Since(began).Seconds())
	if s.unswept.Note(ctx, s.Logger, "alerts not evaluated", err); err == nil {
		s.metrics.lastSweep.SetToCurrentTime()
	}
}

// countOpen counts open alerts for the metrics.
func (s *Store) countOpen(ctx context.Context) error {
	counts := map[kind]float64{}
	var of kind
	var n float64
	err := pg.Each(ctx, s.DB.Pool, []any{&of.rule, &of.severity, &n}, func() error {
		counts[of] = n
		return nil
	}, `select rule, severity, count(*) as count from alerts where no is not null and cleared_at is null group by rule, severity`)
	if err != nil {
		return err
	}
	s.metrics.setOpen(counts)
	return nil
}
