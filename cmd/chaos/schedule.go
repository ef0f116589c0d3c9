package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// plan is what a schedule depends on: the same plan has the same schedule, to the millisecond. How the threads of a
// dozen processes interleave then is nobody's to repeat.
type plan struct {
	Seed      uint64
	Duration  time.Duration
	Instances int
	Vehicles  int
}

// fault is one thing that goes wrong, for a while.
type fault struct {
	At     time.Duration // since the load began
	For    time.Duration
	Kind   *kind
	Target string
	Cars   []int         // that it strikes, of car faults
	Skew   time.Duration // of a clock
	Amount int64         // in the kind's unit
}

const (
	// The faults come in waves with a calm after each: commands that run undisturbed show what is normal.
	waveLength = 40 * time.Second
	calmLength = 5 * time.Second

	meanGap   = 1250 * time.Millisecond // between the beginnings of two faults
	recovery  = 2 * time.Second         // that a target is left alone after a fault
	minLength = 500 * time.Millisecond
	maxLength = 15 * time.Second
	maxSkew   = 60 * time.Second
)

// schedule deals every kind of fault once, in random order, before any comes again.
func (p plan) schedule() []fault {
	rng := rand.New(rand.NewPCG(p.Seed, 0xfa0175))
	var faults []fault
	var deck []*kind
	busy := map[string]time.Duration{} // until when a target is taken
	for _, w := range p.waves() {
		gap := min(meanGap, (w.to-w.from)*3/time.Duration(len(kinds)*4))
		for at := w.from + gap; at < w.to-minLength; at += gap/2 + time.Duration(rng.Int64N(int64(gap))) {
			if len(deck) == 0 {
				deck = shuffled(rng)
			}
			if f, dealt, ok := p.deal(deck, at, w.to, busy, rng); ok {
				deck = slices.Delete(deck, dealt, dealt+1)
				busy[f.Target] = f.At + f.For + recovery
				faults = append(faults, f)
			}
		}
	}
	return faults
}

// deal makes a fault of the first kind of the deck whose target is free.
func (p plan) deal(deck []*kind, at, end time.Duration, busy map[string]time.Duration, rng *rand.Rand) (fault, int, bool) {
	for i, k := range deck {
		target := k.target(p, rng)
		if busy[target] > at || end-at < k.least {
			continue
		}
		f := fault{At: at.Truncate(time.Millisecond), Kind: k, Target: target}
		// In a short round every kind must find its time.
		f.For = min(length(rng, k), end-at, max(k.least, p.Duration/10)).Truncate(time.Millisecond)
		f.draw(p, rng)
		return f, i, true
	}
	return fault{}, 0, false
}

type wave struct{ from, to time.Duration }

func (p plan) waves() []wave {
	count := max(1, int((p.Duration+waveLength/2)/waveLength))
	each := p.Duration / time.Duration(count)
	var waves []wave
	for i := range count {
		from := time.Duration(i) * each
		waves = append(waves, wave{from, from + each - min(calmLength, each/6)})
	}
	return waves
}

// shuffled has the processes in its first part, between the others: several faults wait for the same process, some need
// their time, and the end of a round would come too soon for the last of them.
func shuffled(rng *rand.Rand) []*kind {
	var processes, others, deck []*kind
	for i := range kinds {
		if kinds[i].process {
			processes = append(processes, &kinds[i])
		} else {
			others = append(others, &kinds[i])
		}
	}
	for _, part := range [][]*kind{processes, others} {
		rng.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
	}
	for i := range max(len(processes), len(others)) {
		deck = append(deck, processes[min(i, len(processes)):min(i+1, len(processes))]...)
		deck = append(deck, others[min(i, len(others)):min(i+1, len(others))]...)
	}
	return deck
}

// length is mostly short.
func length(rng *rand.Rand, k *kind) time.Duration {
	mean := 1200 * time.Millisecond
	if k.mild {
		mean = 4 * time.Second
	}
	return min(max(k.least, minLength)+time.Duration(rng.ExpFloat64()*float64(mean)), maxLength)
}

// draw draws what a fault of its kind needs to know.
func (f *fault) draw(p plan, rng *rand.Rand) {
	if f.Kind.amount != nil {
		f.Amount = f.Kind.amount(rng)
	}
	if f.Kind.cars != nil {
		for range max(6, p.Vehicles/10) {
			car := rng.IntN(p.Vehicles) + 1
			if f.Kind.cars(car) && !slices.Contains(f.Cars, car) {
				f.Cars = append(f.Cars, car)
			}
		}
	}
	if f.Kind.skews {
		f.Skew = (time.Second + time.Duration(rng.Int64N(int64(maxSkew-time.Second)))).Truncate(time.Millisecond)
		if rng.IntN(2) == 0 {
			f.Skew = -f.Skew
		}
	}
}

// String is a line of the printed schedule.
func (f fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%9.3fs  %-22s %-26s for %v", f.At.Seconds(), f.Kind.name, f.Target, f.For)
	if f.Kind.cars != nil {
		fmt.Fprintf(&b, ", %d cars", len(f.Cars))
	}
	if f.Kind.skews {
		fmt.Fprintf(&b, ", by %v", f.Skew)
	}
	if f.Kind.amount != nil {
		fmt.Fprintf(&b, ", %d %s", f.Amount, f.Kind.unit)
	}
	return b.String()
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
