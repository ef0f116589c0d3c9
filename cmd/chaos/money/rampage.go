package money

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"motorpool/simulator/sandbox"
)

// strike is something that is done to a process, again and again.
type strike struct {
	name  string
	every time.Duration // about
	least int           // how often in a round at least
	do    func(*world, context.Context, *rand.Rand) error
}

// lease is for how long the service's workers take a charge.
const lease = time.Minute

var allStrikes = []strike{
	{name: "instance killed", every: 7 * time.Second, least: 2, do: (*world).killInstance},
	{name: "instance stopped", every: 35 * time.Second, least: 1, do: (*world).stopInstance},
	{name: "instance frozen for longer than a lease", every: 90 * time.Second, do: (*world).freezeInstance},
	{name: "postgres killed", every: 14 * time.Second, least: 2, do: func(w *world, ctx context.Context, rng *rand.Rand) error {
		return killed(ctx, rng, w.postgres)
	}},
	{name: "redis killed", every: 45 * time.Second, do: func(w *world, ctx context.Context, rng *rand.Rand) error {
		return killed(ctx, rng, w.redis)
	}},
	{name: "processor killed", every: 9 * time.Second, least: 2, do: func(w *world, ctx context.Context, rng *rand.Rand) error {
		return killed(ctx, rng, w.processor)
	}},
	{name: "processor silent after it did what was asked", every: 25 * time.Second, do: (*world).silenceProcessor},
}

// howOften returns how often a strike comes in a round.
func (s strike) howOften(length time.Duration) int {
	return max(s.least, int(length/s.every))
}

// ailments are what the processor suffers from while the load lasts, in percent of the requests. An answer that is a fault is the
// key's for ever.
var ailments = []sandbox.Fault{
	{Kind: sandbox.HangAfter, Percent: 2, For: time.Second},
	{Kind: sandbox.HangBefore, Percent: 1, For: time.Second},
	{Kind: sandbox.ResetAfter, Percent: 3},
	{Kind: sandbox.ResetBefore, Percent: 2},
	{Kind: sandbox.FailAfter, Percent: 4, Method: http.MethodPost},
	{Kind: sandbox.FailBefore, Percent: 3, Method: http.MethodPost},
	{Kind: sandbox.TooMany, Percent: 3},
	{Kind: sandbox.Slow, Percent: 3, Method: http.MethodPost, For: 300 * time.Millisecond},
}

const (
	atLeast        = 2
	certainPercent = 20
)

// rampage breaks everything for as long as bookings begin, and heals it.
func (w *world) rampage(ctx context.Context) {
	w.relay.loses.Store(true)
	var orders []sandbox.Fault
	for _, f := range ailments {
		f.Times = -1
		orders = append(orders, f)
	}
	for _, f := range ailments { // and each for certain, so that a short round knows all of them
		f.Times, f.Percent = atLeast, certainPercent
		orders = append(orders, f)
	}
	if err := w.processor.Break(orders...); err != nil {
		w.fall(err)
	}
	begin := time.Now()
	var work sync.WaitGroup
	for i, s := range allStrikes {
		rng := rand.New(rand.NewPCG(w.Seed, 1<<34+uint64(i)))
		work.Go(func() {
			n := s.howOften(w.Duration)
			for k := range n {
				share := w.Duration / time.Duration(n)
				pause(ctx, time.Until(begin.Add(share*time.Duration(k)+time.Duration(rng.Int64N(int64(share))))))
				if ctx.Err() != nil {
					return
				}
				struck := time.Now()
				if err := s.do(w, ctx, rng); err != nil {
					w.fall(fmt.Errorf("%s: %w", s.name, err))
					return
				}
				w.Logger.Info("strike", "what", s.name, "for", time.Since(struck))
				w.figures.add(strikes, s.name)
			}
		})
	}
	work.Wait()
	w.processor.Heal()
	w.relay.loses.Store(false)
}

// mortal is what can be killed.
type mortal interface {
	Kill() error
	Restart() error
}

// killed ends a server without a warning, and starts it again after a while.
func killed(ctx context.Context, rng *rand.Rand, m mortal) error {
	if err := m.Kill(); err != nil {
		return err
	}
	pause(ctx, 100*time.Millisecond+time.Duration(rng.Int64N(int64(1200*time.Millisecond))))
	return revived(m)
}

// revived starts a server, and again where it did not get up while others were down.
func revived(m mortal) error {
	const tries = 4
	var err error
	for range tries {
		if err = m.Restart(); err == nil {
			return nil
		}
	}
	return err
}

// victim returns an instance that nothing strikes at the moment, held until free is called.
func (w *world) victim(ctx context.Context, rng *rand.Rand) (n *instance, free func()) {
	for ctx.Err() == nil {
		n = w.instances[rng.IntN(len(w.instances))]
		if n.struck.TryLock() {
			return n, n.struck.Unlock
		}
		pause(ctx, 50*time.Millisecond)
	}
	return nil, func() {}
}

func (w *world) killInstance(ctx context.Context, rng *rand.Rand) error {
	n, free := w.victim(ctx, rng)
	defer free()
	if n == nil {
		return nil
	}
	return killed(ctx, rng, n)
}

// stopInstance ends an instance as a deployment does, and starts it again.
func (w *world) stopInstance(ctx context.Context, rng *rand.Rand) error {
	n, free := w.victim(ctx, rng)
	defer free()
	if n == nil {
		return nil
	}
	return revived(n)
}

// freezeInstance lets an instance sleep until others have taken over what it was doing, and wake up in the midst of it.
func (w *world) freezeInstance(ctx context.Context, rng *rand.Rand) error {
	n, free := w.victim(ctx, rng)
	defer free()
	if n == nil {
		return nil
	}
	if err := n.Pause(); err != nil {
		return err
	}
	pause(ctx, lease+time.Duration(rng.Int64N(int64(10*time.Second))))
	err := n.Resume()
	w.thawed = time.Now()
	return err
}

// silenceProcessor has the next requests carried out and never answered, until the service itself gives up.
func (w *world) silenceProcessor(context.Context, *rand.Rand) error {
	var orders []sandbox.Fault
	for _, path := range []string{
		"/v1/payment_intents", "/v1/payment_intents/*/confirm", "/v1/payment_intents/*/capture", "/v1/payment_intents/*/cancel", "/v1/refunds",
	} {
		orders = append(orders, sandbox.Fault{Kind: sandbox.HangAfter, Method: http.MethodPost, Path: path})
	}
	return w.processor.Break(orders...)
}
