package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"motorpool/lab/chaos/audit"
	"motorpool/lab/world"
)

// uptime records when each instance was certainly up: running, with access to Postgres; and when at
// least one was. A fault counts from before it begins until after it is over. It is safe for
// concurrent use.
type uptime struct {
	mu        sync.Mutex // guards what follows
	postgres  int        // present faults of Postgres
	instances []instanceUptime
	any       intervals
	stalled   []audit.Interval // of this machine
}

// instanceUptime is the uptime of one instance.
type instanceUptime struct {
	faults int // present ones
	intervals
}

// intervals is when something was up.
type intervals struct {
	since time.Time // zero: it is down
	past  []audit.Interval
}

func newUptime(instances int) *uptime {
	u := &uptime{instances: make([]instanceUptime, instances)}
	u.change(func() {})
	return u
}

// allDown records that no instance reaches Postgres, until the returned function is called.
func (u *uptime) allDown() (over func()) { return u.count(&u.postgres) }

// down records that an instance does not run, or does not reach Postgres, until the returned
// function is called.
func (u *uptime) down(i int) (over func()) { return u.count(&u.instances[i].faults) }

func (u *uptime) count(faults *int) (over func()) {
	u.change(func() { *faults++ })
	return func() { u.change(func() { *faults-- }) }
}

func (u *uptime) change(update func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now, one := time.Now(), false
	update()
	for i := range u.instances {
		up := u.postgres == 0 && u.instances[i].faults == 0
		u.instances[i].set(up, now)
		one = one || up
	}
	u.any.set(one, now)
}

// stall records that this machine stalled for a while, so that no instance counts as up.
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

// stalledWithin reports whether this machine stalled in an interval.
func (u *uptime) stalledWithin(from, to time.Time) bool {
	return slices.ContainsFunc(u.stalls(), func(i audit.Interval) bool { return i.From.Before(to) && i.To.After(from) })
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

func (s *intervals) set(up bool, now time.Time) {
	switch {
	case up && s.since.IsZero():
		s.since = now
	case !up && !s.since.IsZero():
		s.past = append(s.past, audit.Interval{From: s.since, To: now})
		s.since = time.Time{}
	}
}

func (s *intervals) interrupt(from, to time.Time) {
	if s.since.IsZero() || !from.After(s.since) {
		return
	}
	s.past = append(s.past, audit.Interval{From: s.since, To: from})
	s.since = to
}

// all returns the intervals so far; the last one may not have ended.
func (s *intervals) all() []audit.Interval {
	all := slices.Clone(s.past)
	if !s.since.IsZero() {
		all = append(all, audit.Interval{From: s.since})
	}
	return all
}

const (
	stallProbe = 50 * time.Millisecond
	// stallLimit is how late a busy machine may be.
	stallLimit = 500 * time.Millisecond
)

// watchStalls records when this process got no CPU time: then the others got none either.
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
			for ; ctx.Err() == nil; world.Pause(ctx, readinessEvery) {
				asked := time.Now()
				ready := n.Ready(ctx)
				r.mu.Lock()
				r.said[i].set(ready, asked)
				r.mu.Unlock()
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

// mustCome records the result of something that was awaited generously: that it did not come in
// time is a violation. It reports whether the error is one of the harness itself.
func (r *round) mustCome(err error) bool {
	late := errors.Is(err, world.ErrNotInTime)
	if err != nil && !late {
		return true
	}
	r.awaited.Add(err)
	return false
}
