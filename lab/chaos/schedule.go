package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"motorpool/lab/chaos/clocks"
	"motorpool/lab/chaos/runner"
	"motorpool/lab/world"
)

// Plan is what a schedule depends on: the same Plan has the same schedule, to the millisecond. How
// the threads of a dozen processes interleave then cannot be repeated.
type Plan struct {
	Seed      uint64
	Duration  time.Duration
	Instances int
	Vehicles  int
}

// Fault is a fault of a round.
type Fault struct {
	At     time.Duration // since the load began
	For    time.Duration
	Kind   *Kind
	Target string
	Cars   []int // that it strikes, of faults of cars
	Amount int64 // in the kind's unit
}

const (
	// The faults come in waves with a pause after each: undisturbed commands show what is normal.
	waveLength = 40 * time.Second
	calmLength = 5 * time.Second

	meanGap   = 1250 * time.Millisecond // between the beginnings of two faults
	recovery  = 2 * time.Second         // without faults of the same target, after a fault
	minLength = 500 * time.Millisecond
	maxLength = 15 * time.Second
)

// Schedule contains every kind of fault once, in random order, before any comes again.
func (p Plan) Schedule() []Fault {
	rng := rand.New(rand.NewPCG(p.Seed, 0xfa0175))
	var faults []Fault
	var deck []*Kind
	busy := map[string]time.Duration{} // until when a target has a fault
	for _, w := range p.waves() {
		gap := min(meanGap, (w.to-w.from)*3/time.Duration(len(Scheduled())*4))
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

// Single is the fault of a round with one fault, which begins after a quarter of the time and lasts
// for half of it.
func (p Plan) Single(k *Kind) Fault {
	rng := rand.New(rand.NewPCG(p.Seed, 0xfa0175))
	f := Fault{At: p.Duration / 4, For: max(k.least, p.Duration/2), Kind: k, Target: k.target(p, rng)}
	f.draw(p, rng)
	return f
}

// deal returns a fault of the first kind of the deck whose target is free, and the index of the
// kind.
func (p Plan) deal(deck []*Kind, at, end time.Duration, busy map[string]time.Duration, rng *rand.Rand) (Fault, int, bool) {
	for i, k := range deck {
		target := k.target(p, rng)
		if busy[target] > at || end-at < k.least {
			continue
		}
		f := Fault{At: at.Truncate(time.Millisecond), Kind: k, Target: target}
		// A short round must have time for every kind.
		f.For = min(length(rng, k), end-at, max(k.least, p.Duration/10)).Truncate(time.Millisecond)
		f.draw(p, rng)
		return f, i, true
	}
	return Fault{}, 0, false
}

type wave struct{ from, to time.Duration }

func (p Plan) waves() []wave {
	count := max(1, int((p.Duration+waveLength/2)/waveLength))
	each := p.Duration / time.Duration(count)
	var waves []wave
	for i := range count {
		from := time.Duration(i) * each
		waves = append(waves, wave{from, from + each - min(calmLength, each/6)})
	}
	return waves
}

// shuffled returns a deck with the faults of processes in its first part, between the others:
// several wait for the same process, some have a minimum length, and the last of them would come
// too late in the round.
func shuffled(rng *rand.Rand) []*Kind {
	var processes, others, deck []*Kind
	for _, k := range Scheduled() {
		if k.process {
			processes = append(processes, k)
		} else {
			others = append(others, k)
		}
	}
	for _, part := range [][]*Kind{processes, others} {
		rng.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
	}
	for i := range max(len(processes), len(others)) {
		deck = append(deck, processes[min(i, len(processes)):min(i+1, len(processes))]...)
		deck = append(deck, others[min(i, len(others)):min(i+1, len(others))]...)
	}
	return deck
}

// length draws the length of a fault, mostly a short one.
func length(rng *rand.Rand, k *Kind) time.Duration {
	mean := 1200 * time.Millisecond
	if k.mild {
		mean = 4 * time.Second
	}
	return min(max(k.least, minLength)+time.Duration(rng.ExpFloat64()*float64(mean)), maxLength)
}

// draw draws the parameters of a fault.
func (f *Fault) draw(p Plan, rng *rand.Rand) {
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
}

// String is a line of the printed schedule.
func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%9.3fs  %-22s %-26s for %v", f.At.Seconds(), f.Kind.Name, f.Target, f.For)
	if f.Kind.cars != nil {
		fmt.Fprintf(&b, ", %d cars", len(f.Cars))
	}
	if f.Kind.amount != nil {
		fmt.Fprintf(&b, ", %d %s", f.Amount, f.Kind.unit)
	}
	return b.String()
}

// breakNothing lasts as long as a fault.
func (r *round) breakNothing(ctx context.Context, f Fault) error { world.Pause(ctx, f.For); return nil }

// injection is a fault that happened.
type injection struct {
	Fault
	From, To time.Time // from before it began until after it was over
	Err      error     // errUnsupported, or nil
}

// errUnsupported means that this machine cannot have that fault.
var errUnsupported = errors.New("not available here")

// injectAll injects every fault of the round at its time, and returns when all are over.
func (r *round) injectAll(ctx context.Context) error {
	progress(fmt.Sprintf("%v of load, %d faults", r.Duration, len(r.faults)))
	var faults []runner.Fault
	for _, f := range r.faults {
		faults = append(faults, runner.Fault{At: f.At, Target: f.Target, Strike: func(ctx context.Context) { r.inject(ctx, f) }})
	}
	runner.Inject(ctx, faults)
	return nil
}

func (r *round) inject(ctx context.Context, f Fault) {
	i := injection{Fault: f, From: time.Now()}
	r.Log.Info("fault injected", "kind", f.Kind.Name, "target", f.Target, "for", f.For, "amount", f.Amount, "cars", len(f.Cars))
	i.Err = f.strike(r, ctx)
	i.To = time.Now()
	if errors.Is(i.Err, clocks.ErrUnsupported) {
		i.Err = errUnsupported
	}
	if r.mustCome(i.Err) && !errors.Is(i.Err, errUnsupported) {
		r.Fail(fmt.Errorf("fault %q of %s: %w", f.Kind.Name, f.Target, i.Err))
	}
	r.injections.Add(i)
}

// strike injects the fault, and returns when it is over.
func (f Fault) strike(r *round, ctx context.Context) error {
	if f.Kind.strike == nil {
		return r.strike(ctx, f)
	}
	return f.Kind.strike(r, ctx, f)
}

// aftermath is how long after a fault calls may still be disturbed by it.
const aftermath = time.Second
