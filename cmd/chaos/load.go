package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"motorpool/cmd/chaos/audit"
	"motorpool/telematics"
)

// load is the callers, and their account.
type load struct {
	*world
	turns   chan struct{}
	errands sync.WaitGroup // orders that a fault needs

	mu    sync.Mutex // guards calls
	calls []audit.Call
}

const (
	paceInterval = 50 * time.Millisecond
	// freePace is how many orders a second are made where no number of commands is asked for.
	freePace = 150
	tries    = 5
)

// run makes calls until as many commands as asked for are on record and the time is over, and returns when every caller
// has its last answer. A load that cannot get so many accepted gives up after half as much time again.
func (l *load) run(ctx context.Context) {
	var callers sync.WaitGroup
	for n := range l.Callers {
		callers.Go(func() { l.caller(ctx, newDraw(l.Seed, n, l.Vehicles, l.Instances)) })
	}
	l.pace(ctx)
	close(l.turns)
	callers.Wait()
}

// pace gives turns to callers, so that the commands spread over the time.
func (l *load) pace(ctx context.Context) {
	begin, before := time.Now(), l.watch.commands()
	rate := float64(freePace)
	if l.Commands > 0 {
		rate = float64(l.Commands) / l.Duration.Seconds()
	}
	burst := int(2*rate*paceInterval.Seconds()) + 1
	tick := time.NewTicker(paceInterval)
	defer tick.Stop()
	for made := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		elapsed, done := time.Since(begin), l.watch.commands()-before
		if elapsed > l.Duration && done >= l.Commands || elapsed > l.Duration*3/2 {
			return
		}
		if l.Commands == 0 {
			done = made
		}
		wanted := int(rate * min(elapsed, l.Duration).Seconds())
		for range min(wanted-done, burst) {
			select {
			case l.turns <- struct{}{}:
				made++
			default: // every caller is busy
			}
		}
	}
}

func (l *load) caller(ctx context.Context, d *draw) {
	for range l.turns {
		l.place(ctx, d, d.order())
	}
}

// place makes an order. Where no answer came, and the order has a key, the caller asks again, at any instance.
func (l *load) place(ctx context.Context, d *draw, o order) {
	instance := o.instance
	for try := range tries {
		patience := callTimeout
		if try == 0 && o.hangUp > 0 {
			patience = o.hangUp
		}
		calls := l.call(ctx, o, d.id(), instance, patience)
		l.note(calls)
		c, again := calls[0], false
		switch {
		case ctx.Err() != nil || o.key == "":
		case c.Status == 0:
			again = try > 0 || o.hangUp == 0 || o.insists
		case c.Code == telematics.TelematicsUnavailable:
			again = o.insists
		case c.Outcome == telematics.Executed, c.Status == http.StatusAccepted:
			again, o.repeats = o.repeats, false
		}
		if c.Status == 0 || c.Status >= 500 {
			pause(ctx, time.Duration(50+d.rng.IntN(400))*time.Millisecond)
		}
		if !again {
			return
		}
		instance = d.rng.IntN(l.Instances)
	}
}

func (l *load) note(calls []audit.Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, calls...)
}

// warmUp has every car hear a command, before anything goes wrong: see mayLoseTime.
func (l *load) warmUp(ctx context.Context) {
	turns := make(chan int)
	var callers sync.WaitGroup
	for n := range l.Callers {
		d := newDraw(l.Seed, l.Callers+n, l.Vehicles, l.Instances)
		callers.Go(func() {
			for car := range turns {
				l.note(l.call(ctx, order{car: car, action: telematics.Lock}, d.id(), car%l.Instances, callTimeout))
			}
		})
	}
	for car := 1; car <= l.Vehicles; car++ {
		turns <- car
	}
	close(turns)
	callers.Wait()
}
