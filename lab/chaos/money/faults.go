package money

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"motorpool/lab/chaos/clocks"
	"motorpool/lab/world"
	"motorpool/simulator/sandbox"
)

// fault is a fault of a process, which is injected repeatedly.
type fault struct {
	name  string
	every time.Duration // about
	least int           // how often in a round at least
	do    func(*round, context.Context, *rand.Rand) error
}

// lease is how long a worker of the service holds a charge.
const lease = time.Minute

var moneyFaults = []fault{
	{
		name: "instance killed", every: 7 * time.Second, least: 2,
		do: onInstance(func(_ *round, ctx context.Context, rng *rand.Rand, n *instance) error {
			return kill(ctx, rng, n)
		}),
	},
	{
		name: "instance stopped", every: 35 * time.Second, least: 1,
		do: onInstance(func(_ *round, _ context.Context, _ *rand.Rand, n *instance) error {
			return restart(n) // SIGTERM, as a deployment does
		}),
	},
	{name: "instance suspended for longer than a lease", every: 90 * time.Second, do: onInstance((*round).suspend)},
	{name: "postgres killed", every: 14 * time.Second, least: 2, do: func(r *round, ctx context.Context, rng *rand.Rand) error {
		return kill(ctx, rng, r.Postgres)
	}},
	{name: "redis killed", every: 45 * time.Second, do: func(r *round, ctx context.Context, rng *rand.Rand) error {
		return kill(ctx, rng, r.Redis)
	}},
	{name: "processor killed", every: 9 * time.Second, least: 2, do: func(r *round, ctx context.Context, rng *rand.Rand) error {
		return kill(ctx, rng, r.processor)
	}},
	{name: "processor without answers after it did the work", every: 25 * time.Second, do: (*round).silenceProcessor},
}

// howOften returns how often a fault happens in a round.
func (s fault) howOften(length time.Duration) int {
	return max(s.least, int(length/s.every))
}

// processorFaults are the faults of the processor during the load, in percent of the requests. For
// the same key, the processor repeats a faulty answer forever.
var processorFaults = []sandbox.Fault{
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

// injectFaults lasts as long as bookings begin. All faults are over when it returns.
func (r *round) injectFaults(ctx context.Context) error {
	r.relay.drops.Store(true)
	var orders []sandbox.Fault
	for _, f := range processorFaults {
		f.Times = -1
		orders = append(orders, f)
	}
	// Each comes at least twice, but first each once, so that a short round has all of them.
	for range atLeast {
		for _, f := range processorFaults {
			f.Times, f.Percent = 1, certainPercent
			orders = append(orders, f)
		}
	}
	if err := r.processor.Break(orders...); err != nil {
		return err
	}
	begin := time.Now()
	var work sync.WaitGroup
	for i, s := range r.faults {
		rng := rand.New(rand.NewPCG(r.Seed, 1<<34+uint64(i)))
		work.Go(func() {
			n := s.howOften(r.Duration)
			for k := range n {
				share := r.Duration / time.Duration(n)
				world.Pause(ctx, time.Until(begin.Add(share*time.Duration(k)+time.Duration(rng.Int64N(int64(share))))))
				if ctx.Err() != nil {
					return
				}
				struck := time.Now()
				if err := s.do(r, ctx, rng); err != nil {
					r.Fail(fmt.Errorf("%s: %w", s.name, err))
					return
				}
				r.Log.Info("fault injected", "kind", s.name, "for", time.Since(struck))
				r.struck.Add(s.name)
			}
		})
	}
	work.Wait()
	r.processor.Heal()
	r.relay.drops.Store(false)
	return nil
}

// process can be killed.
type process interface {
	Kill() error
	Restart() error
}

// kill is kill -9, and a restart after a while.
func kill(ctx context.Context, rng *rand.Rand, p process) error {
	if err := p.Kill(); err != nil {
		return err
	}
	world.Pause(ctx, 100*time.Millisecond+time.Duration(rng.Int64N(int64(1200*time.Millisecond))))
	return restart(p)
}

// restart tries again when the server cannot start because others are down.
func restart(p process) error {
	const tries = 4
	var err error
	for range tries {
		if err = p.Restart(); err == nil {
			return nil
		}
	}
	return err
}

// onInstance lets a fault strike an instance that has no other.
func onInstance(strike func(*round, context.Context, *rand.Rand, *instance) error) func(*round, context.Context, *rand.Rand) error {
	return func(r *round, ctx context.Context, rng *rand.Rand) error {
		for ; ctx.Err() == nil; world.Pause(ctx, 50*time.Millisecond) {
			if n := r.instances[rng.IntN(len(r.instances))]; n.struck.TryLock() {
				defer n.struck.Unlock()
				return strike(r, ctx, rng, n)
			}
		}
		return nil
	}
}

// suspend stops an instance, with its monotonic clock where that is possible, until others have
// taken over its work, and resumes it in the middle of that work.
func (r *round) suspend(ctx context.Context, rng *rand.Rand, n *instance) error {
	if err := n.Pause(); err != nil {
		return err
	}
	took := lease + time.Duration(rng.IntN(10))*time.Second
	world.Pause(ctx, took)
	pids, err := n.Processes()
	for _, pid := range pids {
		if failure := errors.Join(clocks.TakeBack(pid, took), clocks.Set(pid, 0)); !errors.Is(failure, clocks.ErrUnsupported) {
			err = errors.Join(err, failure)
		}
	}
	err = errors.Join(err, n.Resume())
	r.resumed = time.Now()
	return err
}

// silenceProcessor makes the processor perform the next requests without an answer, until the
// time-out of the service.
func (r *round) silenceProcessor(context.Context, *rand.Rand) error {
	var orders []sandbox.Fault
	for _, path := range []string{
		"/v1/payment_intents", "/v1/payment_intents/*/confirm", "/v1/payment_intents/*/capture", "/v1/payment_intents/*/cancel",
		"/v1/refunds",
	} {
		orders = append(orders, sandbox.Fault{Kind: sandbox.HangAfter, Method: http.MethodPost, Path: path})
	}
	return r.processor.Break(orders...)
}
