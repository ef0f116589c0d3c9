// Package charging executes due charges, on every instance, and handles the notices of the
// payment processor.
package charging

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/guard"
	"motorpool/rental"
)

// Config assembles a collector. All ports are required.
type Config struct {
	Ledger    rental.Ledger
	Notices   rental.Notices
	Cards     rental.Cards
	Processor rental.Processor

	// Charges, and likewise notices, that are handled concurrently. Defaults to 8.
	Workers int
	Lease   time.Duration // of a charge or notice. Defaults to 1 min.
	Every   time.Duration // between two queries for due work. Defaults to 1 s.
	// Timeout bounds one call of the processor; at most a third of the lease. Defaults to 20 s.
	Timeout time.Duration
	Logger  *slog.Logger     // Defaults to slog.Default().
	Now     func() time.Time // Defaults to time.Now.

	// Metrics registers the collector's metrics. Defaults to a new registry.
	Metrics prometheus.Registerer
	// Settled is called when a charge of a booking has a new state; nil: not called.
	Settled func(rental.BookingID)
	// Guard recovers panics of single jobs, which are due again when their lease has expired. Nil:
	// they are only logged.
	Guard *guard.Guard
}

func (c Config) withDefaults() Config {
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

// Collector executes due charges, and handles the processor's notices. Any number of collectors may
// share one database. It is safe for concurrent use.
type Collector struct {
	Config
	metrics *metrics
	charges chan struct{} // something may be due
	notices chan struct{}
}

// NewCollector assembles a collector. It does nothing before Run.
func NewCollector(c Config) *Collector {
	c = c.withDefaults()
	return &Collector{Config: c, metrics: newMetrics(c.Metrics),
		charges: make(chan struct{}, 1), notices: make(chan struct{}, 1)}
}

// Nudge makes the collector query for due work now, not only after Every. It does not block.
func (c *Collector) Nudge() {
	wakeUp(c.charges)
	wakeUp(c.notices)
}

func wakeUp(hint chan struct{}) {
	select {
	case hint <- struct{}{}:
	default: // the hint is set already
	}
}

// Run executes charges and handles notices. It blocks until the context ends, and then for Timeout
// at most, for work in flight; it returns nil. Unfinished charges are due again when their lease
// has expired.
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
		_ = c.Guard.Keep(ctx, "collect charges", func(ctx context.Context) error {
			return serve(ctx, working, c, "charges", c.charges, c.Ledger.TakeCharges, c.processCharge)
		})
	})
	loops.Go(func() {
		_ = c.Guard.Keep(ctx, "handle notices", func(ctx context.Context) error {
			return serve(ctx, working, c, "notices", c.notices, c.Notices.TakeNotices, c.handle)
		})
	})
	loops.Wait()
	return nil
}

// serve takes as many due jobs as there are free workers, until ctx ends, then waits for its
// workers. They use the context working.
func serve[T any](
	ctx, working context.Context, c *Collector, what string, hint <-chan struct{},
	take func(context.Context, int, time.Duration) ([]T, error), do func(context.Context, T),
) error {
	var workers sync.WaitGroup
	defer workers.Wait()
	free := make(chan struct{}, c.Workers)
	for range c.Workers {
		free <- struct{}{}
	}
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	var outage guard.Outage
	for {
		n := claim(ctx, free)
		if n == 0 {
			return nil
		}
		var due []T
		err := c.Guard.Try("take due "+what, func() (err error) {
			due, err = take(ctx, n, c.Lease)
			return err
		})
		outage.Note(ctx, c.Logger, "due "+what+" not read", err)
		for _, one := range due {
			workers.Go(func() {
				defer func() { free <- struct{}{} }()
				_ = c.Guard.Do("process "+what, func() { do(working, one) })
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
			return nil
		case <-tick.C:
		case <-hint:
		}
	}
}

// claim waits for a free worker, claims all free ones, and returns their number; zero: the context
// has ended.
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

// backoff is how long to wait after attempts in a row that changed nothing.
var backoff = [...]time.Duration{5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute}

// backoffAfter returns how long to wait after the given number of tries without a result, from 1.
func backoffAfter(tries int) time.Duration { return backoff[min(max(tries, 1), len(backoff))-1] }

// dunning is how long to wait after successive declines of one card.
var dunning = [...]time.Duration{time.Hour, 24 * time.Hour, 3 * 24 * time.Hour, 7 * 24 * time.Hour}

// retryAfter returns how long to wait after the given number of declines of one card, counted from
// 1; false: the card is not tried again.
func retryAfter(declines int) (time.Duration, bool) {
	if declines > len(dunning) {
		return 0, false
	}
	return dunning[max(declines, 1)-1], true
}

// queryAfter is after how long the processor is queried about a charge that others change, if no
// notice came: notices may be lost.
var queryAfter = map[rental.ChargeState]time.Duration{
	rental.RequiresAction: time.Hour,      // changed by the card's owner
	rental.Authorized:     24 * time.Hour, // the processor may end the hold
}
