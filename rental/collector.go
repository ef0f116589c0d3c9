package rental

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// CollectorConfig is what a collector is built of. All ports are needed.
type CollectorConfig struct {
	Ledger    Ledger
	Notices   Notices
	Cards     Cards
	Processor Processor

	Workers int              // charges that are carried out concurrently, and notices. Defaults to 8.
	Lease   time.Duration    // for which a charge is taken. Defaults to 1 min.
	Every   time.Duration    // between two looks for what is due. Defaults to 1 s.
	Timeout time.Duration    // of one call of the processor; at most a third of the lease. Defaults to 20 s.
	Logger  *slog.Logger     // Defaults to slog.Default().
	Now     func() time.Time // Defaults to time.Now.

	// Metrics is where what the collector counts is registered. Defaults to a new registry.
	Metrics prometheus.Registerer
}

func (c CollectorConfig) withDefaults() CollectorConfig {
	c.Workers = cmp.Or(c.Workers, 8)
	c.Lease = cmp.Or(c.Lease, time.Minute)
	c.Every = cmp.Or(c.Every, time.Second)
	// Between two writes, which renew the lease, there are at most two calls.
	c.Timeout = min(cmp.Or(c.Timeout, 20*time.Second), c.Lease/3)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	return c
}

// Collector carries out the charges that are due, and handles what the processor tells. Any number of them may
// work on one record. It is safe for concurrent use.
type Collector struct {
	CollectorConfig
	metrics *metrics
	charges chan struct{} // something may be due
	notices chan struct{}
}

// NewCollector assembles a collector. It does nothing before Run.
func NewCollector(c CollectorConfig) *Collector {
	c = c.withDefaults()
	return &Collector{CollectorConfig: c, metrics: newMetrics(c.Metrics),
		charges: make(chan struct{}, 1), notices: make(chan struct{}, 1)}
}

// Nudge has the collector look for what is due now rather than at the next look. It does not block.
func (c *Collector) Nudge() {
	poke(c.charges)
	poke(c.notices)
}

func poke(hint chan struct{}) {
	select {
	case hint <- struct{}{}:
	default: // the hint is set already
	}
}

// Run carries out charges and handles notices until the context ends. A call in flight then may take as long as one
// call of the processor may take; unfinished charges are taken again when their lease has expired.
func (c *Collector) Run(ctx context.Context) error {
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		select {
		case <-time.After(c.Timeout):
			stop()
		case <-working.Done():
		}
	})()

	var loops sync.WaitGroup
	loops.Go(func() {
		serve(ctx, working, c.loop("charges", c.charges), func(ctx context.Context, limit int) ([]Job, error) {
			return c.Ledger.TakeCharges(ctx, limit, c.Lease)
		}, c.processCharge)
	})
	loops.Go(func() {
		serve(ctx, working, c.loop("notices", c.notices), func(ctx context.Context, limit int) ([]Notice, error) {
			return c.Notices.TakeNotices(ctx, limit, c.Lease)
		}, c.handle)
	})
	loops.Wait()
	return nil
}

// workLoop is one kind of work that comes due.
type workLoop struct {
	what    string
	workers int
	every   time.Duration
	hint    chan struct{}
	log     *slog.Logger
}

func (c *Collector) loop(what string, hint chan struct{}) workLoop {
	return workLoop{what: what, workers: c.Workers, every: c.Every, hint: hint, log: c.Logger}
}

// serve takes due jobs, as many as there are free workers, until the context ends, and waits for its
// workers. They use the context working.
func serve[T any](ctx, working context.Context, l workLoop, take func(context.Context, int) ([]T, error), do func(context.Context, T)) {
	var workers sync.WaitGroup
	defer workers.Wait()
	free := make(chan struct{}, l.workers)
	for range l.workers {
		free <- struct{}{}
	}
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	for {
		n := claim(ctx, free)
		if n == 0 {
			return
		}
		due, err := take(ctx, n)
		if err != nil && ctx.Err() == nil {
			l.log.Warn("due jobs not read", "what", l.what, "err", err)
		}
		for _, one := range due {
			workers.Go(func() {
				defer func() { free <- struct{}{} }()
				do(working, one)
			})
		}
		for range n - len(due) {
			free <- struct{}{}
		}
		if len(due) == n {
			continue // there may be more
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-l.hint:
		}
	}
}

// claim waits for a free worker, and returns how many are free: zero once the context has ended.
func claim(ctx context.Context, free chan struct{}) int {
	select {
	case <-ctx.Done():
		return 0
	case <-free:
	}
	for n := 1; ; n++ {
		select {
		case <-free:
		default:
			return n
		}
	}
}
