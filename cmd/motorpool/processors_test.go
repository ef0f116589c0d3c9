package main

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestOneProcessorIsEnoughForWhoIsCalm(t *testing.T) {
	look := func(share float64, ready uint64) usage {
		return usage{cpu: time.Duration(share * float64(lookEvery)), elapsed: lookEvery, ready: ready}
	}
	calmly, busily, inQueue, large := look(0.4, 1), look(0.9, 1), look(0.4, 5), look(0.4, 1)
	large.live = 2 * little
	const window = int(calmFor / lookEvery)
	type step struct {
		times int
		see   usage
		want  bool
	}
	for name, steps := range map[string][]step{
		"calm for a second":          {{window - 1, calmly, false}, {1, calmly, true}, {window, calmly, true}},
		"next to idle":               {{window, look(0, 0), true}},
		"busy is not calm":           {{2 * window, busily, false}},
		"a little busy":              {{5, busily, false}, {window - 5, calmly, true}},
		"half of the time busy":      {{window / 2, busily, false}, {window - window/2, calmly, false}, {window, calmly, true}},
		"a queue is not calm":        {{2 * window, inQueue, false}},
		"seldom a queue":             {{window / seldom, inQueue, false}, {window - window/seldom, calmly, true}},
		"more than one can do":       {{window, calmly, true}, {1, busily, false}, {window - 1, calmly, false}, {1, calmly, true}},
		"a queue, and another":       {{window, calmly, true}, {1, inQueue, true}, {1, inQueue, false}},
		"a queue that goes again":    {{window, calmly, true}, {1, inQueue, true}, {1, calmly, true}, {1, inQueue, true}},
		"calm, but large":            {{2 * window, large, false}, {window, calmly, true}, {1, large, false}},
		"a queue, and then too much": {{window, calmly, true}, {1, inQueue, true}, {1, busily, false}},
	} {
		var p processors
		for i, s := range steps {
			for range s.times - 1 {
				p.choose(s.see)
			}
			if got := p.choose(s.see); got != s.want {
				t.Errorf("%s, step %d: one is enough: %t, want %t", name, i, got, s.want)
				break
			}
		}
	}
}

func TestWhoDoesNextToNothingIsLookedAtLessOften(t *testing.T) {
	var p processors
	p.choose(usage{cpu: time.Millisecond, elapsed: 10 * time.Millisecond})
	if got := p.look(); got != lookEvery {
		t.Errorf("a tenth of a processor is looked at after %v", got)
	}
	p.choose(usage{cpu: time.Millisecond, elapsed: time.Second})
	if got := p.look(); got != restEvery {
		t.Errorf("a thousandth of a processor is looked at after %v", got)
	}
}

func TestProcessorsFollowTheLoad(t *testing.T) {
	defer runtime.SetDefaultGOMAXPROCS()
	t.Setenv("GOMAXPROCS", "")
	runtime.SetDefaultGOMAXPROCS()
	runtime.GC() // what other tests held is not in use any more
	all := runtime.GOMAXPROCS(0)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		paceProcessors(ctx, 0)
	}()
	await := func(want int, where string) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); runtime.GOMAXPROCS(0) != want; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d processors, want %d", where, runtime.GOMAXPROCS(0), want)
			}
		}
	}
	await(1, "with nothing to do")
	var stop atomic.Bool
	defer stop.Store(true)
	for range 8 {
		go func() {
			for !stop.Load() { // busily
			}
		}()
	}
	await(all, "with more to do than one can")
	stop.Store(true)
	await(1, "with nothing to do again")
	cancel()
	<-ended
	await(all, "at the end")
}

func TestWhoSaysHowManyProcessorsHasThem(t *testing.T) {
	defer runtime.SetDefaultGOMAXPROCS()
	t.Setenv("GOMAXPROCS", "3")
	runtime.GOMAXPROCS(3)          // as the runtime does at the start
	paceProcessors(t.Context(), 0) // returns at once
	if got := runtime.GOMAXPROCS(0); got != 3 {
		t.Errorf("%d processors, want 3", got)
	}
}
