package money

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"motorpool/lab/chaos/clocks"
	"motorpool/lab/chaos/runner"
	"motorpool/lab/world"
	"motorpool/simulator/sandbox"
)

// fault is a fault that is injected repeatedly.
type fault struct {
	name  string
	every time.Duration // about
	least int           // how often in a round at least
	// of returns the process that it strikes. Nil: an instance, drawn each time.
	of func(*round) process
	do func(*round, context.Context, *rand.Rand, process) error
}

// lease is how long a worker of the service holds a charge.
const lease = time.Minute

// workAgain is how long an instance that was suspended goes on before the next fault strikes it.
const workAgain = 5 * time.Second

var moneyFaults = []fault{
	{name: "instance killed", every: 7 * time.Second, least: 2, do: kill},
	{name: "instance stopped", every: 35 * time.Second, least: 1, do: restart},
	{name: "instance suspended for longer than a lease", every: 90 * time.Second, do: (*round).suspend},
	{name: "postgres killed", every: 14 * time.Second, least: 2, of: func(r *round) process { return r.Postgres }, do: kill},
	{name: "redis killed", every: 45 * time.Second, of: func(r *round) process { return r.Redis }, do: kill},
	{name: "processor killed", every: 9 * time.Second, least: 2, of: theProcessor, do: kill},
	{name: "processor without answers after it did the work", every: 25 * time.Second, of: theProcessor, do: silence},
}

func theProcessor(r *round) process { return r.processor }

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
	runner.Inject(ctx, r.schedule())
	r.processor.Heal()
	r.relay.drops.Store(false)
	return nil
}

// schedule draws when each fault strikes, and which instance.
func (r *round) schedule() (all []runner.Fault) {
	for i, s := range r.faults {
		rng := rand.New(rand.NewPCG(r.Seed, 1<<34+uint64(i)))
		n := s.howOften(r.Duration)
		for k := range n {
			share := r.Duration / time.Duration(n)
			f := runner.Fault{At: share*time.Duration(k) + time.Duration(rng.Int64N(int64(share))), Target: s.name}
			var struck process
			if s.of != nil {
				struck = s.of(r)
			} else {
				n := r.Running[rng.IntN(len(r.Running))]
				f.Target, struck = n.Name, n
			}
			drawn := rand.New(rand.NewPCG(rng.Uint64(), 0))
			f.Strike = func(ctx context.Context) {
				begin := time.Now()
				if err := s.do(r, ctx, drawn, struck); err != nil {
					r.Fail(fmt.Errorf("%s: %w", s.name, err))
					return
				}
				r.Log.Info("fault injected", "kind", s.name, "target", f.Target, "for", time.Since(begin))
				r.struck.Add(s.name)
			}
			all = append(all, f)
		}
	}
	return all
}

// process can be killed.
type process interface {
	Kill() error
	Restart() error
}

// kill is kill -9, and a restart after a while.
func kill(r *round, ctx context.Context, rng *rand.Rand, p process) error {
	if err := p.Kill(); err != nil {
		return err
	}
	world.Pause(ctx, 100*time.Millisecond+time.Duration(rng.Int64N(int64(1200*time.Millisecond))))
	return restart(r, ctx, rng, p)
}

// restart is SIGTERM, as a deployment does. It tries again when the server cannot start because
// others are down.
func restart(_ *round, _ context.Context, _ *rand.Rand, p process) (err error) {
	for range 4 {
		if err = p.Restart(); err == nil {
			break
		}
	}
	return err
}

// suspend stops an instance, with its monotonic clock where that is possible, until others have
// taken over its work, and resumes it in the middle of that work.
func (r *round) suspend(ctx context.Context, rng *rand.Rand, p process) error {
	n := p.(*world.Instance) // of the faults of instances
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
	world.Pause(ctx, workAgain)
	return err
}

// silence makes the processor perform the next requests without an answer, until the
// time-out of the service.
func silence(r *round, _ context.Context, _ *rand.Rand, _ process) error {
	var orders []sandbox.Fault
	for _, path := range []string{
		"/v1/payment_intents", "/v1/payment_intents/*/confirm", "/v1/payment_intents/*/capture", "/v1/payment_intents/*/cancel",
		"/v1/refunds",
	} {
		orders = append(orders, sandbox.Fault{Kind: sandbox.HangAfter, Method: http.MethodPost, Path: path})
	}
	return r.processor.Break(orders...)
}
