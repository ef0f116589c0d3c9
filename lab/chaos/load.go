package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/lab/chaos/audit"
	"motorpool/lab/chaos/runner"
	"motorpool/lab/world"
	"motorpool/telematics"
)

// load runs the callers, and records their calls.
type load struct {
	*round
	turns      chan struct{}
	background sync.WaitGroup // orders that a fault needs
	calls      runner.Log[audit.Call]
}

const (
	paceInterval = 50 * time.Millisecond
	// defaultRate is how many orders a second are sent if no number of commands is given.
	defaultRate = 150
	attempts    = 5
)

// run sends orders until Commands are on record and Duration is over, and returns when every caller
// has its last answer. If the service does not accept that number, it gives up after half as much
// time again. In a round of all faults, drivers use their keys meanwhile.
func (l *load) run(ctx context.Context, _ <-chan struct{}) {
	l.loading.From = time.Now()
	driving, stop := context.WithCancel(ctx)
	var callers, drivers sync.WaitGroup
	if l.single() == "" {
		drivers.Go(func() { l.useKeys(driving) })
	}
	for n := range l.Callers {
		callers.Go(func() { l.caller(ctx, newDraw(l.Seed, n, l.fleet, l.Instances)) })
	}
	l.pace(ctx)
	close(l.turns)
	callers.Wait()
	stop()
	drivers.Wait()
}

// pace spreads the orders over the time.
func (l *load) pace(ctx context.Context) {
	begin, before := time.Now(), l.watcher.commands()
	rate := float64(defaultRate)
	if l.Commands > 0 {
		rate = float64(l.Commands) / l.Duration.Seconds()
	}
	burst := int(2*rate*paceInterval.Seconds()) + 1
	tick := time.NewTicker(paceInterval)
	defer tick.Stop()
	for sent := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		elapsed, done := time.Since(begin), l.watcher.commands()-before
		if elapsed > l.Duration && done >= l.Commands || elapsed > l.Duration*3/2 {
			return
		}
		if l.Commands == 0 {
			done = sent
		}
		wanted := int(rate * min(elapsed, l.Duration).Seconds())
		for range min(wanted-done, burst) {
			select {
			case l.turns <- struct{}{}:
				sent++
			default: // every caller is busy
			}
		}
	}
}

func (l *load) caller(ctx context.Context, d *draw) {
	next := d.order
	if one := Find(l.Fault); one != nil && one.plain {
		next = d.plain
	}
	for range l.turns {
		l.send(ctx, d, next())
	}
}

// send sends an order. If no answer comes, and the order has a key, the caller repeats it, to any
// instance.
func (l *load) send(ctx context.Context, d *draw, o order) {
	instance := o.instance
	for attempt := range attempts {
		timeout := callTimeout
		if attempt == 0 && o.hangUp > 0 {
			timeout = o.hangUp
		}
		calls := l.call(ctx, o, d.id(), instance, timeout)
		l.calls.Add(calls...)
		c, again := calls[0], false
		switch {
		case ctx.Err() != nil || o.key == "":
		case c.Status == 0:
			again = attempt > 0 || o.hangUp == 0 || o.insists
		case c.Code == telematics.TelematicsUnavailable:
			again = o.insists
		case c.Outcome == telematics.Executed, c.Status == http.StatusAccepted:
			again, o.repeats = o.repeats, false
		}
		if c.Status == 0 || c.Status >= 500 {
			world.Pause(ctx, time.Duration(50+d.rng.IntN(400))*time.Millisecond)
		}
		if !again {
			return
		}
		instance = d.rng.IntN(l.Instances)
	}
}

// warmUp sends a command to every car before the faults begin: see fault.go.
func (l *load) warmUp(ctx context.Context) error {
	d := newDraw(l.Seed, l.Callers, l.fleet, l.Instances)
	var callers errgroup.Group
	callers.SetLimit(l.Callers)
	for car := 1; car <= l.Vehicles; car++ {
		id := d.id()
		callers.Go(func() error {
			l.calls.Add(l.call(ctx, order{car: car, action: telematics.Lock}, id, car%l.Instances, callTimeout)...)
			return nil
		})
	}
	return callers.Wait()
}
