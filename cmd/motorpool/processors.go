package main

import (
	"context"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"syscall"
	"time"
)

// Go wakes a thread for each goroutine that becomes ready while a processor has nothing to do, and one that comes too late to find work looks
// for some before it sleeps again. A command that is alone makes dozens ready, one after the other: with one processor nobody is woken, for a quarter
// less of the service's CPU.
const (
	lookEvery = 20 * time.Millisecond  // where there is work
	restEvery = 100 * time.Millisecond // where there is next to none
	calmFor   = time.Second            // before one processor must do

	// busy, calm and rest are shares of one processor's time.
	busy = 0.8
	calm = 0.6
	rest = 0.02

	// queue is how many goroutines may wait for one processor; more are no reason for others if they are seen in one look of ten.
	queue  = 2
	seldom = 10

	// little is what one processor collects fast: to change their number waits for a collection that is under way.
	little = 64 << 20 // bytes in use
)

// assembly is how long the parts of the service, of which some are sized by the processors, may take to be put together.
const assembly = 5 * time.Second

// paceProcessors lets the process have one processor where that is enough, unless GOMAXPROCS says how many, from some time on until the context ends.
func paceProcessors(ctx context.Context, from time.Duration) {
	if said, err := strconv.Atoi(os.Getenv("GOMAXPROCS")); (err == nil && said > 0) || runtime.GOMAXPROCS(0) == 1 {
		return
	}
	defer runtime.SetDefaultGOMAXPROCS()
	var p processors
	before := readUsage()
	for wait := from; ; wait = p.look() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		now := readUsage()
		switch one := p.one; p.choose(now.since(before)) {
		case one: // as before
		case true:
			runtime.GOMAXPROCS(1)
		default:
			runtime.SetDefaultGOMAXPROCS()
		}
		before = now
	}
}

// processors chooses between one and all.
type processors struct {
	one     bool
	last    usage // at the last look
	window  usage // what all are judged by, at its end
	looks   int   // in the window
	crowded int   // of these, with a queue
}

// choose reports whether one is enough, from what was seen since the last look.
func (p *processors) choose(u usage) bool {
	twice := p.last.ready > queue && u.ready > queue
	p.last = u
	if p.one {
		p.one = u.share() < busy && !twice && u.live <= little
		return p.one
	}
	p.looks++
	if u.ready > queue {
		p.crowded++
	}
	if p.window = p.window.and(u); p.window.elapsed >= calmFor {
		p.one = p.window.share() < calm && p.crowded*seldom <= p.looks && u.live <= little
		p.window, p.looks, p.crowded = usage{}, 0, 0
	}
	return p.one
}

// look returns when to look again.
func (p *processors) look() time.Duration {
	if p.last.share() < rest {
		return restEvery
	}
	return lookEvery
}

// usage is what the process does: its CPU time, in how long, the goroutines that are ready to run and do not, and the bytes in use.
type usage struct {
	cpu, elapsed time.Duration
	ready, live  uint64
}

// share returns how much of one processor's time was used.
func (u usage) share() float64 {
	if u.elapsed == 0 {
		return 0
	}
	return u.cpu.Seconds() / u.elapsed.Seconds()
}

func (u usage) and(next usage) usage {
	return usage{cpu: u.cpu + next.cpu, elapsed: u.elapsed + next.elapsed, ready: next.ready, live: next.live}
}

func (u usage) since(before usage) usage {
	return usage{cpu: u.cpu - before.cpu, elapsed: u.elapsed - before.elapsed, ready: u.ready, live: u.live}
}

var started = time.Now()

// readUsage returns the usage since the start.
func readUsage() usage {
	samples := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // it fails for no process that asks for itself
	return usage{
		cpu: time.Duration(used.Utime.Nano() + used.Stime.Nano()), elapsed: time.Since(started),
		ready: samples[0].Value.Uint64(), live: samples[1].Value.Uint64(),
	}
}
