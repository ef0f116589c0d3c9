// Package ingest stores what units send unasked: telemetry, presence and signs of life. It also
// records units that no vehicle has.
//
// The MQTT client's callback adds each message to a bounded queue and returns [LAW-8]. The
// messages of one unit are read in their order, and stored in batches of all that have come
// meanwhile. Overflow is dropped and counted, first that of units beyond their allowance.
package ingest

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"motorpool/guard"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Twins stores the reported state of vehicles.
type Twins interface {
	// Observe merges observations, whatever the order of arrival [LAW-7]. It returns the changes,
	// the units that no vehicle has, and those whose presence it could not store yet.
	Observe(context.Context, []delivery.Observation) (delivery.Seen, error)
	// Report begins to merge a report for a caller that waits until every instance sees it. It
	// does not block. The function that it returns blocks until every instance does, or the
	// context ends; the merge goes on after that. Call the function once; it returns what Observe
	// returns.
	Report(delivery.Observation) (wait func(context.Context) (delivery.Seen, error))
	// Run flushes merged observations, so that every instance sees them, until the context ends,
	// and then the rest. It passes changes that Observe has not returned to publish.
	Run(ctx context.Context, publish func([]telematics.Change)) error
}

// UnknownUnits stores the units that no vehicle has.
type UnknownUnits interface {
	// StoreUnknownUnits inserts such units, or adds to their rows. The units are sorted by serial
	// and distinct.
	StoreUnknownUnits(context.Context, []telematics.UnknownUnit) error
}

// Health stores findings about units that are not in their reports: clock errors, rejects and
// reconnects.
type Health interface {
	// StoreHealth adds findings to the rows of units, and ignores units that no vehicle has. The
	// units are sorted by serial and distinct.
	StoreHealth(context.Context, []telematics.UnitHealth) error
}

// Contacts reads changes of the connectivity of vehicles.
type Contacts interface {
	// Aged returns changes of connectivity, by time or by a report, that Observe has not
	// returned: each change once, whichever instance calls, by the database's time.
	Aged(context.Context) ([]telematics.Change, error)
}

// Config configures an Ingest. All fields are required, except UnknownUnits and Health.
type Config struct {
	Twins        Twins
	Contacts     Contacts
	UnknownUnits UnknownUnits // nil: unknown units are only counted
	Health       Health       // nil: the health of single units is not recorded

	// Publishes the changes that observations have made.
	Changed func([]telematics.Change)
	// Is called with the results that a report repeats [TEL-3]
	Repeated func(telematics.Unit, telematics.Report, time.Time)
	Now      func() time.Time // this instance's clock
	// Counts what is dropped, by kind and reason.
	Dropped *prometheus.CounterVec
	Metrics prometheus.Registerer

	QueueSize   int           // messages that wait to be handled, in each queue
	StepTimeout time.Duration // of one call of a port
	Logger      *slog.Logger
	Guard       *guard.Guard // recovers panics of the handling of single messages
}

// Ingest stores what units report. It is safe for concurrent use.
type Ingest struct {
	Config
	metrics      *metrics
	allowances   struct{ reports, presence *Limiter }
	noisy        noisy
	reports      *reports
	contact      *queue                                               // presence, and signs of life
	latest       *lru.Cache[telematics.Unit, telematics.PresenceMark] // presence that was received
	unknownUnits findings[telematics.UnknownUnit]
	health       *health
	silent       guard.Outage // silent vehicles cannot be read
}

// New assembles an Ingest and registers its metrics. It does no I/O before Run.
func New(c Config) *Ingest {
	in := &Ingest{
		Config: c, metrics: newMetrics(c.Metrics, c.Dropped), noisy: noisy{units: map[telematics.Unit]map[Kind]int{}},
		reports: newReports(c.QueueSize),
	}
	in.allowances.reports, in.allowances.presence = NewLimiter(reportAllowance), NewLimiter(presenceAllowance)
	in.latest = NewCache[telematics.Unit, telematics.PresenceMark](maxLatest)
	in.contact = &queue{Ingest: in, waiting: make(chan observed, c.QueueSize)}
	RegisterQueue(c.Metrics, Report, in.reports.waiting)
	RegisterQueue(c.Metrics, Presence, func() int { return len(in.contact.waiting) })
	in.unknownUnits.what, in.unknownUnits.overflow = "unknown units not stored", in.metrics.dropped(unknownUnitKind, queueFull)
	in.unknownUnits.batch, in.unknownUnits.most = telematics.MaxUnknownUnits, telematics.MaxUnknownUnits
	if c.UnknownUnits != nil {
		in.unknownUnits.port = c.UnknownUnits.StoreUnknownUnits
	}
	in.health = newHealth(c, in.metrics.dropped(unitHealthKind, queueFull))
	return in
}

// Run stores queued messages. It blocks until the context ends, and then stores the rest, for a
// limited time. It returns the errors of panics.
func (in *Ingest) Run(ctx context.Context) error {
	flushing, stopFlushing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFlushing()
	var readers, flusher sync.WaitGroup
	var err error
	flusher.Go(func() {
		err = in.Guard.Keep(flushing, "flush reported state", func(ctx context.Context) error { return in.Twins.Run(ctx, in.Changed) })
	})
	for doing, run := range map[string]func(context.Context) error{
		"read reports": in.readReports, "store presence": in.contact.run, "look after units": in.runPeriodically,
	} {
		readers.Go(func() { _ = in.Guard.Keep(ctx, doing, run) })
	}
	readers.Wait()
	stopFlushing()
	flusher.Wait()
	return errors.Join(err, in.Guard.Do("store what is left", func() {
		in.warnNoisy()
		in.unknownUnits.store(context.WithoutCancel(ctx), in)
		in.health.store(context.WithoutCancel(ctx), in)
	}))
}

func (in *Ingest) runPeriodically(ctx context.Context) error {
	warn, store, aged, health := time.NewTicker(warnEvery), time.NewTicker(unknownUnitsEvery), time.NewTicker(agedEvery),
		time.NewTicker(healthEvery)
	defer warn.Stop()
	defer store.Stop()
	defer aged.Stop()
	defer health.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-warn.C:
			_ = in.Guard.Do("warn of noisy units", in.warnNoisy)
		case <-store.C:
			_ = in.Guard.Do("store unknown units", func() { in.unknownUnits.store(context.WithoutCancel(ctx), in) })
		case <-aged.C:
			_ = in.Guard.Do("publish aged connectivity", func() { in.publishAged(ctx) })
		case <-health.C:
			_ = in.Guard.Do("store health of units", func() { in.health.store(context.WithoutCancel(ctx), in) })
		}
	}
}

// publishAged publishes changes of connectivity that Observe has not returned, mostly of vehicles
// that have become silent.
func (in *Ingest) publishAged(ctx context.Context) {
	ctx, cancel := in.step(ctx)
	defer cancel()
	aged, err := in.Contacts.Aged(ctx)
	in.silent.Note(ctx, in.Logger, "silent vehicles not read", err)
	in.Changed(aged)
}

// step returns a context for one call of a port.
func (in *Ingest) step(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, in.StepTimeout)
}

// InBatches calls handle with batches of queued values, until the context ends, and then for no
// longer than the timeout with the rest. While few are queued, it lets more come first, for wait.
func InBatches[T any](ctx context.Context, queue <-chan T, wait, timeout time.Duration, handle func([]T)) {
	for ctx.Err() == nil {
		select {
		case first := <-queue:
			if wait > 0 && len(queue) < min(MaxBatch, cap(queue)/2) {
				guard.Pause(ctx, wait)
			}
			handle(Gather(queue, first))
		case <-ctx.Done():
		}
	}
	end := time.Now().Add(timeout)
	for first := range Queued(queue) {
		if handle(Gather(queue, first)); !time.Now().Before(end) {
			return
		}
	}
}

// Queued removes and yields values, until none is queued. It does not block.
func Queued[T any](queue <-chan T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for {
			select {
			case next := <-queue:
				if !yield(next) {
					return
				}
			default:
				return
			}
		}
	}
}

// Gather returns first with the values that are queued now, at most MaxBatch together. It does
// not block.
func Gather[T any](queue <-chan T, first T) []T {
	batch := append(make([]T, 0, min(len(queue)+1, MaxBatch)), first)
	for len(batch) < MaxBatch {
		select {
		case next := <-queue:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}
