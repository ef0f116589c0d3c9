// Package ingest stores what units report unasked: telemetry, presence, signs of life, and
// units that no vehicle has.
//
// The MQTT client's callback hands each message over to a bounded queue and returns [LAW-8]. The
// messages of one unit are read in their order, and stored in batches of what has come meanwhile.
// Overflow is dropped and counted, first that of units beyond their allowance.
package ingest

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Twins keeps the reported state of vehicles.
type Twins interface {
	// Observe merges observations, whatever the order of arrival [LAW-7]. It returns what has
	// changed, and the units that no vehicle has.
	Observe(context.Context, []delivery.Observation) (delivery.Seen, error)
	// Report begins to merge a report for a caller that waits until every instance sees it. It does
	// not block.
	// The function that it returns blocks until they do, or the context ends: then they will. It is
	// called once, and returns what Observe returns.
	Report(delivery.Observation) (wait func(context.Context) (delivery.Seen, error))
	// Run flushes what Observe has merged, so that every instance sees it, until the context ends,
	// and then what is left. It publishes the changes that Observe has not returned.
	Run(ctx context.Context, publish func([]telematics.Change)) error
}

// UnknownUnits keeps the units that no vehicle has.
type UnknownUnits interface {
	// StoreUnknownUnits adds to the record of such units. They come sorted, each once.
	StoreUnknownUnits(context.Context, []telematics.UnknownUnit) error
}

// Health keeps what was found out about units, besides what they report.
type Health interface {
	// StoreHealth adds to the record of units, and ignores those that no vehicle has. They come
	// sorted, each once.
	StoreHealth(context.Context, []telematics.UnitHealth) error
}

// Contacts keeps the connectivity of vehicles.
type Contacts interface {
	// Aged returns the vehicles whose connectivity has changed, by time or by a report, where
	// Observe has not returned that: each change once, whichever instance calls, by the record's
	// own time.
	Aged(context.Context) ([]telematics.Change, error)
}

// Config is what an Ingest is built of. All is needed, but for UnknownUnits and Health.
type Config struct {
	Twins        Twins
	Contacts     Contacts
	UnknownUnits UnknownUnits // nil: unknown units are only counted
	Health       Health       // nil: nothing is gathered of single units

	// Publishes what observations have changed.
	Changed func([]telematics.Change)
	// Takes the results that a report repeats [TEL-3]
	Repeated func(telematics.Unit, []telematics.Answer, time.Time)
	Now      func() time.Time // this instance's clock
	// Counts what is dropped, by kind and reason.
	Dropped *prometheus.CounterVec
	Metrics prometheus.Registerer

	QueueSize   int           // messages that wait to be handled, in each queue
	StepTimeout time.Duration // of one call of a port
	Logger      *slog.Logger
}

// Ingest stores what units report. It is safe for concurrent use.
type Ingest struct {
	Config
	metrics      *metrics
	allowances   struct{ reports, presence *Limiter }
	noisy        noisy
	reports      *reports
	contact      *queue // presence, and signs of life
	unknownUnits *unknownUnits
	health       *health
}

// New assembles an Ingest. It does nothing before Run.
func New(c Config) *Ingest {
	in := &Ingest{Config: c, metrics: newMetrics(c.Metrics, c.Dropped), noisy: noisy{units: map[telematics.Unit]map[Kind]int{}}, reports: newReports(c.QueueSize)}
	in.allowances.reports, in.allowances.presence = NewLimiter(reportAllowance), NewLimiter(presenceAllowance)
	in.contact = &queue{Ingest: in, waiting: make(chan observed, c.QueueSize)}
	RegisterQueue(c.Metrics, Report, in.reports.waiting)
	RegisterQueue(c.Metrics, Presence, func() int { return len(in.contact.waiting) })
	in.unknownUnits = &unknownUnits{overflow: in.metrics.dropped(unknownUnitKind, queueFull), heard: map[telematics.Unit]telematics.UnknownUnit{}}
	in.health = newHealth(c.Health != nil, in.metrics.dropped(unitHealthKind, queueFull))
	return in
}

// Run stores what is queued, until the context ends, and then what is left.
func (in *Ingest) Run(ctx context.Context) error {
	flushing, stopFlushing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFlushing()
	var readers, flusher sync.WaitGroup
	var err error
	flusher.Go(func() { err = in.Twins.Run(flushing, in.Changed) })
	for _, run := range []func(context.Context){in.readReports, in.contact.run, in.runPeriodically} {
		readers.Go(func() { run(ctx) })
	}
	readers.Wait()
	stopFlushing()
	flusher.Wait()
	in.warnNoisy()
	in.storeUnknownUnits(context.WithoutCancel(ctx))
	in.storeHealth(context.WithoutCancel(ctx))
	return err
}

func (in *Ingest) runPeriodically(ctx context.Context) {
	warn, store, aged, health := time.NewTicker(warnEvery), time.NewTicker(unknownUnitsEvery), time.NewTicker(agedEvery), time.NewTicker(healthEvery)
	defer warn.Stop()
	defer store.Stop()
	defer aged.Stop()
	defer health.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-warn.C:
			in.warnNoisy()
		case <-store.C:
			in.storeUnknownUnits(context.WithoutCancel(ctx))
		case <-aged.C:
			in.publishAged(ctx)
		case <-health.C:
			in.storeHealth(context.WithoutCancel(ctx))
		}
	}
}

// publishAged publishes which vehicles' connectivity has changed with time alone.
func (in *Ingest) publishAged(ctx context.Context) {
	ctx, cancel := in.step(ctx)
	defer cancel()
	aged, err := in.Contacts.Aged(ctx)
	if err != nil && ctx.Err() == nil {
		in.Logger.Warn("silent vehicles not read, retrying", "err", err)
	}
	in.Changed(aged)
}

// step returns a context for one call of a port.
func (in *Ingest) step(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, in.StepTimeout)
}

// InBatches handles what is queued, as many at a time as have come, until the context ends, and
// then what is left, for no longer than the timeout. While few are queued, it lets more come first.
func InBatches[T any](ctx context.Context, queue <-chan T, wait, timeout time.Duration, handle func([]T)) {
	for ctx.Err() == nil {
		select {
		case first := <-queue:
			if wait > 0 && len(queue) < min(MaxBatch, cap(queue)/2) {
				select {
				case <-time.After(wait):
				case <-ctx.Done():
				}
			}
			handle(Gather(queue, first))
		case <-ctx.Done():
		}
	}
	for end := time.Now().Add(timeout); time.Now().Before(end); {
		select {
		case first := <-queue:
			handle(Gather(queue, first))
		default:
			return
		}
	}
}

// Gather returns the first of a batch with what has come since, at most MaxBatch.
func Gather[T any](queue <-chan T, first T) []T {
	batch := []T{first}
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
