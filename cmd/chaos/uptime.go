package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"motorpool/cmd/chaos/audit"
)

// uptime knows when an instance surely ran and reached Postgres, and when at least one did. It errs on the side of
// "not": a hindrance counts from before it is made until after it is gone.
type uptime struct {
	mu        sync.Mutex // guards what follows
	postgres  int        // hindrances of all instances
	instances []reach
	any       stretches
	stalled   []audit.Interval // of this machine
}

// reach is what is known of one instance.
type reach struct {
	hindrances int
	stretches
}

// stretches is when something was so.
type stretches struct {
	since time.Time // zero: it is not so
	past  []audit.Interval
}

func newUptime(instances int) *uptime {
	u := &uptime{instances: make([]reach, instances)}
	u.change(func() {})
	return u
}

// hinderAll says that no instance reaches Postgres, until the returned function is called.
func (u *uptime) hinderAll() (lift func()) { return u.hinder(&u.postgres) }

// hinderInstance says that one does not, or does not run.
func (u *uptime) hinderInstance(i int) (lift func()) { return u.hinder(&u.instances[i].hindrances) }

func (u *uptime) hinder(count *int) (lift func()) {
	u.change(func() { *count++ })
	return func() { u.change(func() { *count-- }) }
}

func (u *uptime) change(what func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now, one := time.Now(), false
	what()
	for i := range u.instances {
		up := u.postgres == 0 && u.instances[i].hindrances == 0
		u.instances[i].note(up, now)
		one = one || up
	}
	u.any.note(one, now)
}

// stall says that this machine did nothing for a while, which is no service's fault.
func (u *uptime) stall(from, to time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := range u.instances {
		u.instances[i].interrupt(from, to)
	}
	u.any.interrupt(from, to)
	u.stalled = append(u.stalled, audit.Interval{From: from, To: to})
}

func (u *uptime) stalls() []audit.Interval {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.stalled)
}

func (u *uptime) up() []audit.Interval {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.any.all()
}

func (u *uptime) reach() map[int][]audit.Interval {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := map[int][]audit.Interval{}
	for i := range u.instances {
		all[i] = u.instances[i].all()
	}
	return all
}

func (s *stretches) note(is bool, now time.Time) {
	switch {
	case is && s.since.IsZero():
		s.since = now
	case !is && !s.since.IsZero():
		s.past = append(s.past, audit.Interval{From: s.since, To: now})
		s.since = time.Time{}
	}
}

func (s *stretches) interrupt(from, to time.Time) {
	if s.since.IsZero() || !from.After(s.since) {
		return
	}
	s.past = append(s.past, audit.Interval{From: s.since, To: from})
	s.since = to
}

// all returns the stretches so far; the last one may still go on.
func (s *stretches) all() []audit.Interval {
	all := slices.Clone(s.past)
	if !s.since.IsZero() {
		all = append(all, audit.Interval{From: s.since})
	}
	return all
}

const (
	stallProbe = 50 * time.Millisecond
	// stallLimit is what a busy machine may be late without being called stalled.
	stallLimit = 500 * time.Millisecond
)

// watchStalls notes when this process itself got no time to run: then the others did not either.
func (u *uptime) watchStalls(ctx context.Context) {
	tick := time.NewTicker(stallProbe)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		if now.Sub(last) > stallLimit {
			u.stall(last, now)
		}
		last = now
	}
}
