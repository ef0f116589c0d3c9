package main

import (
	"context"
	"os"
	"runtime"
	"runtime/metrics"
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

	// busy and calm are parts of one processor's time.
	busy = 0.8
	calm = 0.6
	rest = 0.02

	// queue is how many goroutines may wait for one processor; more are no reason for others if they are seen in one look of ten.
	queue  = 2
	seldom = 10
)

// paceProcessors lets the process have one processor where that is enough, unless GOMAXPROCS says how many, until the context ends.
func paceProcessors(ctx context.Context) {
	if os.Getenv("GOMAXPROCS") != "" || runtime.GOMAXPROCS(0) == 1 {
		return
	}
	defer runtime.SetDefaultGOMAXPROCS()
	var p processors
	for last := readUsage(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.look()):
		}
		now := readUsage()
		switch one := p.one; p.choose(now.since(last)) {
		case one: // as before
		case true:
			runtime.GOMAXPROCS(1)
		default:
			runtime.SetDefaultGOMAXPROCS()
		}
		last = now
	}
}

// processors chooses between one and all.
type processors struct {
	one     bool
	last    usage // at the last look
	window  usage // since one or all was chosen, or thought about
	looks   int   // in the window
	crowded int   // of these, with a queue
}

// choose reports whether one is enough, from what was seen since the last look.
func (p *processors) choose(u usage) bool {
	inTurn := p.last.ready > queue && u.ready > queue
	p.last = u
	if p.one {
		p.one = u.part() < busy && !inTurn
		return p.one
	}
	p.looks++
	if u.ready > queue {
		p.crowded++
	}
	if p.window = p.window.and(u); p.window.over >= calmFor {
		p.one = p.window.part() < calm && p.crowded*seldom <= p.looks
		p.window, p.looks, p.crowded = usage{}, 0, 0
	}
	return p.one
}

// look returns when to look again.
func (p *processors) look() time.Duration {
	if p.last.part() < rest {
		return restEvery
	}
	return lookEvery
}

// usage is what the process does: its CPU time, by when, and the goroutines that are ready to run and do not.
type usage struct {
	cpu, over time.Duration
	ready     uint64
}

// part returns how much of one processor's time was used.
func (u usage) part() float64 {
	if u.over == 0 {
		return 0
	}
	return u.cpu.Seconds() / u.over.Seconds()
}

func (u usage) and(next usage) usage {
	return usage{cpu: u.cpu + next.cpu, over: u.over + next.over, ready: next.ready}
}

func (u usage) since(last usage) usage {
	return usage{cpu: u.cpu - last.cpu, over: u.over - last.over, ready: u.ready}
}

var started = time.Now()

func readUsage() usage {
	ready := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}
	metrics.Read(ready)
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // it fails for no process that asks for itself
	return usage{cpu: time.Duration(used.Utime.Nano() + used.Stime.Nano()), over: time.Since(started), ready: ready[0].Value.Uint64()}
}
