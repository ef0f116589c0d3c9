package broker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"motorpool/broker/ingest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/telematics/dialects"
	"motorpool/tracing"
)

// Config is what a broker is built of. All ports are needed, but for Bulks, UnknownUnits, Health
// and Unrecorded.
type Config struct {
	Vehicles  Vehicles
	Commands  Commands
	Halts     Halts
	Clock     Clock
	AuditLog  AuditLog
	Pending   PendingTable
	Twins     ingest.Twins
	Contacts  ingest.Contacts
	Events    Events
	Publisher Publisher
	// UnknownUnits keeps units without a vehicle. Without it they are only counted.
	UnknownUnits ingest.UnknownUnits
	// Health keeps how units fare. Without it what is wrong with single units is only logged.
	Health ingest.Health
	// Bulks keeps orders to many vehicles. Without it SendMany must not be called.
	Bulks Bulks
	// Unrecorded keeps answers to commands that are not on record. Without it they are only
	// counted.
	Unrecorded Unrecorded
	Key        telematics.Signer // signs every command, once

	Now      func() time.Time    // this instance's clock. Defaults to time.Now.
	Dialects telematics.Dialects // Defaults to dialects.Spoken.
	Instance string              // of this process, unique among all. Defaults to a random one.
	// QueueSize is how many messages wait to be handled, in each queue. Defaults to 16,384.
	QueueSize   int
	Workers     int           // answers that are handled concurrently. Defaults to 64.
	SweepEvery  time.Duration // between two looks for what was left behind. Defaults to 1 s.
	StepTimeout time.Duration // of one call of a port. Defaults to 3 s.
	Logger      *slog.Logger  // Defaults to slog.Default().

	// Tracer joins answers to the traces of their commands. Defaults to none.
	Tracer *tracing.Tracer

	// Metrics is where what the broker counts is registered. Defaults to a new registry.
	Metrics prometheus.Registerer
}

// Broker carries commands, answers and telemetry. It is safe for concurrent use.
type Broker struct {
	Config
	metrics       *metrics
	waiters       waiters
	roundTrip     roundTrip
	outbox        outbox
	halts         halts
	clock         clock
	behind        clockBehind
	ingest        *ingest.Ingest // reports, presence and unknown units
	allowances    struct{ answers, overAllowance, pending *ingest.Limiter }
	first         chan *queuedAnswer // answers to commands that have a waiter here
	answers       chan *queuedAnswer // the others, within the allowance of their units
	overAllowance chan *queuedAnswer // they are looked up first
	// Answers to no command in flight, here: they must not delay the others.
	uncorrelated chan *unitAnswer
	hints        chan telematics.CommandID
	repeated     *repeated       // results that reports repeat
	settled      *settledResults // cached: no report can change them any more
	events       *eventPublisher // what has changed
	background   sync.WaitGroup  // what Send does concurrently with its callers
	started      sync.WaitGroup  // commands of Start in flight
}

// New assembles a broker. It does nothing before Run.
func New(c Config) *Broker {
	if c.Dialects == nil {
		c.Dialects = dialects.Spoken
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Instance = cmp.Or(c.Instance, uuid.NewString())
	c.QueueSize = cmp.Or(c.QueueSize, 16<<10)
	c.Workers = cmp.Or(c.Workers, 64)
	c.SweepEvery = cmp.Or(c.SweepEvery, time.Second)
	c.StepTimeout = cmp.Or(c.StepTimeout, 3*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	b := &Broker{
		Config:        c,
		first:         make(chan *queuedAnswer, c.QueueSize),
		answers:       make(chan *queuedAnswer, c.QueueSize),
		overAllowance: make(chan *queuedAnswer, c.QueueSize/4+1),
		uncorrelated:  make(chan *unitAnswer, c.QueueSize/16+1),
		repeated:      newRepeated(c.QueueSize),
		settled:       newSettledResults(),
		hints:         make(chan telematics.CommandID, c.QueueSize),
		outbox:        outbox{settlements: map[telematics.CommandID]delivery.Settlement{}},
	}
	b.allowances.answers, b.allowances.pending, b.allowances.overAllowance = ingest.NewLimiter(answerAllowance), ingest.NewLimiter(answerAllowance), ingest.NewLimiter(lookUpAllowance)
	b.outbox.releases = debouncer[delivery.Pending]{after: releaseDebounce, flush: b.writeReleases, background: &b.background}
	b.outbox.progress = debouncer[delivery.Note]{after: progressDebounce, flush: b.writeProgress, background: &b.background}
	b.metrics = newMetrics(c.Metrics, b.waiters.count)
	b.events = newEventPublisher(c, b.metrics)
	b.halts.changed = b.events.haltsChanged
	b.ingest = ingest.New(ingest.Config{
		Twins: c.Twins, Contacts: c.Contacts, UnknownUnits: c.UnknownUnits, Health: c.Health, Changed: b.events.changed, Repeated: b.checkRepeated, Now: b.now,
		Metrics: c.Metrics, Dropped: b.metrics.dropped, QueueSize: c.QueueSize, StepTimeout: c.StepTimeout, Logger: c.Logger,
	})
	b.Commands = publishingCommands{c.Commands, b.events}
	b.registerQueues()
	return b
}

// Run handles what arrives and settles what was left behind, until the context
// ends. What has been taken from the MQTT broker by then is still stored. Call
// Send and Start only while Run runs, and Drain before it ends.
func (b *Broker) Run(ctx context.Context) error {
	stopPublishing := b.events.start(ctx)
	defer stopPublishing() // last: everything below publishes events
	// Observations and uncorrelated answers are handled until the last answer is.
	after, stopAfter := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAfter()
	var followers sync.WaitGroup
	var ingestErr error
	followers.Go(func() { ingestErr = b.ingest.Run(after) })
	for range uncorrelatedWorkers {
		followers.Go(func() { b.handleUncorrelated(after, b.uncorrelated, b.settleUncorrelated) })
		followers.Go(func() { b.handleUncorrelated(after, b.repeated.queue, b.settleRepeated) })
	}

	group, ctx := errgroup.WithContext(ctx)
	for range b.Workers {
		group.Go(func() error { return b.handleAnswers(ctx) })
	}
	for range b.Workers/firstShare + 1 {
		group.Go(func() error { return b.handleFirst(ctx) })
	}
	group.Go(func() error { return b.lookUpOverAllowance(ctx) })
	group.Go(func() error { return b.pollRecord(ctx) })
	group.Go(func() error { return b.sweep(ctx) })
	group.Go(func() error { return b.conclude(ctx) })
	group.Go(func() error { return b.watchHalts(ctx) })
	group.Go(func() error { return b.watchClock(ctx) })
	group.Go(func() error { return b.Pending.Listen(ctx, b.Instance, b.hint) })
	err := group.Wait()
	b.drainAnswers(context.WithoutCancel(ctx)) // what was looked up last
	stopAfter()
	followers.Wait()
	b.background.Wait()
	b.closeOutbox(context.WithoutCancel(ctx))
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, ingestErr)
}

// Report queues a message from a unit's telemetry topic. It does not block [LAW-8].
func (b *Broker) Report(m telematics.Message) { b.ingest.Report(m) }

// Presence queues a message from a unit's presence topic. It does not block [LAW-8]. It
// reports false for one that did not fit.
func (b *Broker) Presence(m telematics.Message) bool { return b.ingest.Presence(m) }

// step returns a context for one call of a port.
func (b *Broker) step(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, b.StepTimeout)
}

// each does something at an interval, until the context ends.
func each(ctx context.Context, interval time.Duration, do func()) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			do()
		}
	}
}
