package main

import (
	"context"
	"sync"
	"time"

	"motorpool/cmd/chaos/audit"
)

// uptime knows when at least one instance surely ran and reached Postgres. It errs on the side of "not": a hindrance
// counts from before it is made until after it is gone.
type uptime struct {
	mu        sync.Mutex // guards what follows
	postgres  int        // hindrances of all instances
	instances []int      // hindrances of each
	since     time.Time  // zero: not up
	intervals []audit.Interval
}

func newUptime(instances int) *uptime {
	return &uptime{instances: make([]int, instances), since: time.Now()}
}

// hinderAll says that no instance reaches Postgres, until the returned function is called.
func (u *uptime) hinderAll() (lift func()) { return u.hinder(&u.postgres) }

// hinderInstance says that one does not, or does not run.
func (u *uptime) hinderInstance(i int) (lift func()) { return u.hinder(&u.instances[i]) }

func (u *uptime) hinder(count *int) (lift func()) {
	u.change(func() { *count++ })
	return func() { u.change(func() { *count-- }) }
}

func (u *uptime) change(what func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	what()
	switch up := u.up(); {
	case up && u.since.IsZero():
		u.since = now
	case !up && !u.since.IsZero():
		u.intervals = append(u.intervals, audit.Interval{From: u.since, To: now})
		u.since = time.Time{}
	}
}

func (u *uptime) up() bool {
	for _, hindrances := range u.instances {
		if hindrances == 0 && u.postgres == 0 {
			return true
		}
	}
	return false
}

// stalled says that this machine did nothing for a while, which is no service's fault.
func (u *uptime) stalled(from, to time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.since.IsZero() || !from.After(u.since) {
		return
	}
	u.intervals = append(u.intervals, audit.Interval{From: u.since, To: from})
	u.since = to
}

// all returns the stretches so far, the last one without an end.
func (u *uptime) all() []audit.Interval {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := append([]audit.Interval(nil), u.intervals...)
	if !u.since.IsZero() {
		all = append(all, audit.Interval{From: u.since})
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
			u.stalled(last, now)
		}
		last = now
	}
}
