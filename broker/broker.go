package broker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"motorpool/broker/besteffort"
	"motorpool/broker/ingest"
	"motorpool/guard"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/telematics/dialects"
	"motorpool/tracing"
)

// Config configures a Broker. All ports are required, except Bulks, UnknownUnits, Health and
// Unrecorded.
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
	// UnknownUnits stores units without a vehicle. Nil: they are only counted.
	UnknownUnits ingest.UnknownUnits
	// Health stores clock errors, rejects and reconnects of single units. Nil: they are not stored.
	Health ingest.Health
	// Bulks stores orders to many vehicles. Nil: SendMany must not be called.
	Bulks Bulks
	// Unrecorded stores answers to commands that are not in the database. Nil: they are only
	// counted.
	Unrecorded Unrecorded
	Key        telematics.Signer // signs every command, once

	Now func() time.Time // this instance's clock. Defaults to time.Now.
	// Hanging returns the number of writes of this process that were given up, and that the store
	// may still commit. Defaults to none.
	Hanging func() int
	// Lives reports whether the instance of that name has shown within some seconds that it runs
	// and reaches the database. Nil: none has.
	Lives    func(instance string) bool
	Dialects telematics.Dialects // Defaults to dialects.Spoken.
	Instance string              // name of this process, unique. Defaults to a random one.
	// QueueSize is the capacity of each queue, in messages; those of less urgent answers have a
	// part of it. Defaults to 16,384.
	QueueSize   int
	Workers     int           // goroutines that handle answers of any kind. Defaults to 64.
	SweepEvery  time.Duration // interval of the sweeper and of the outbox. Defaults to 1 s.
	StepTimeout time.Duration // timeout of one call of a port. Defaults to 3 s.
	Logger      *slog.Logger  // Defaults to slog.Default().

	// Tracer joins answers to the traces of their commands. Defaults to none.
	Tracer *tracing.Tracer

	// Metrics is where the broker registers its metrics. Defaults to a new registry.
	Metrics prometheus.Registerer
	// Guard recovers panics of the handling of single messages and commands. Defaults to one that
	// counts in Metrics.
	Guard *guard.Guard
}

// Broker sends commands, and handles answers and telemetry. It is safe for concurrent use.
type Broker struct {
	config        Config
	metrics       *metrics
	waiters       waiters
	roundTrip     roundTrip
	outbox        outbox
	halts         halts
	clock         clock
	behind        clockBehind
	unrecordedBy  recentUnits
	ingest        *ingest.Ingest // reports, presence and unknown units
	bestEffort    *besteffort.Handler
	allowances    struct{ answers, overAllowance, pending, later, repeated *ingest.Limiter }
	first         chan *queuedAnswer // answers to commands that have a waiter here
	answers       chan *queuedAnswer // the others, within the allowance of their units
	overAllowance chan *queuedAnswer // the rest: handled only if the pending table has the command
	// Answers to commands that are not in flight. They have a separate queue, to delay no others.
	uncorrelated chan *queuedAnswer
	later        chan laterAnswer // those that wait for Postgres, or for room in a queue
	hints        chan telematics.CommandID
	repeated     chan *queuedAnswer // results that reports repeat
	settled      *settledResults    // cache of results that no report can change any more
	events       *eventPublisher    // queues the events of changes
	background   sync.WaitGroup     // wake-ups and writes of the outbox, for which no caller waits
	started      sync.WaitGroup     // commands of Start in flight

	lateSince atomic.Pointer[time.Time] // when owners of late commands got their time; nil: none
	unswept   guard.Outage              // overdue commands cannot be read
}

// New assembles a broker and registers its metrics. It does no I/O before Run.
func New(c Config) *Broker {
	if c.Dialects == nil {
		c.Dialects = dialects.Spoken
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Lives == nil {
		c.Lives = func(string) bool { return false }
	}
	if c.Hanging == nil {
		c.Hanging = func() int { return 0 }
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
	if c.Guard == nil {
		c.Guard = guard.New(c.Logger, c.Metrics)
	}
	b := &Broker{
		config:        c,
		first:         make(chan *queuedAnswer, c.QueueSize),
		answers:       make(chan *queuedAnswer, c.QueueSize),
		overAllowance: make(chan *queuedAnswer, c.QueueSize/4+1),
		uncorrelated:  make(chan *queuedAnswer, c.QueueSize/16+1),
		later:         make(chan laterAnswer, c.QueueSize),
		repeated:      make(chan *queuedAnswer, c.QueueSize),
		settled:       newSettledResults(),
		unrecordedBy:  newRecentUnits(),
		clock:         clock{turn: make(chan struct{}, 1)},
		hints:         make(chan telematics.CommandID, c.QueueSize),
		outbox:        outbox{settlements: map[telematics.CommandID]delivery.Settlement{}},
	}
	b.allowances.answers, b.allowances.pending, b.allowances.overAllowance = ingest.NewLimiter(answerAllowance),
		ingest.NewLimiter(answerAllowance), ingest.NewLimiter(lookUpAllowance)
	b.allowances.later, b.allowances.repeated = ingest.NewLimiter(lookUpAllowance), ingest.NewLimiter(repeatedAllowance)
	b.outbox.releases = debouncer[delivery.Pending]{
		after: releaseDebounce, flush: b.writeReleases, background: &b.background, guard: c.Guard,
	}
	b.outbox.progress = debouncer[delivery.Note]{after: progressDebounce, flush: b.writeProgress, background: &b.background, guard: c.Guard}
	b.metrics = newMetrics(c.Metrics, b.waiters.count, func() int { return b.unrecordedBy.count(b.now()) })
	b.events = newEventPublisher(c, b.metrics)
	b.halts.changed = b.events.haltsChanged
	b.ingest = ingest.New(ingest.Config{
		Twins: c.Twins, Contacts: c.Contacts, UnknownUnits: c.UnknownUnits, Health: c.Health, Changed: b.events.changed,
		Repeated: b.checkRepeated, Now: b.now, Metrics: c.Metrics, Dropped: b.metrics.dropped, QueueSize: c.QueueSize,
		StepTimeout: c.StepTimeout, Logger: c.Logger, Guard: c.Guard,
	})
	b.bestEffort = besteffort.New(besteffort.Config{
		Vehicles: c.Vehicles, Commands: c.Commands, Publisher: c.Publisher, Dialects: c.Dialects,
		Settle: b.storeSettlement, Changed: b.events.publish, MayPublish: b.mayPublish, IsUnpublished: b.isUnpublished,
		IsPending: b.isKnownPending, Now: b.recordTime, StepTimeout: c.StepTimeout, Logger: c.Logger, Metrics: c.Metrics, Guard: c.Guard,
	})
	b.registerQueues()
	return b
}

// Run handles messages of units, and settles overdue commands. It blocks until the context ends,
// and then still handles the messages that are queued, for a limited time. It returns nil for a
// cancelled context. Call Send and Start only while Run runs, and Drain before it ends.
func (b *Broker) Run(ctx context.Context) error {
	stopPublishing := b.events.start(ctx)
	defer stopPublishing() // last: everything below publishes events
	// Observations and uncorrelated answers are handled until the last answer is.
	after, stopAfter := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAfter()
	var followers sync.WaitGroup
	var ingestErr error
	followers.Go(func() { ingestErr = b.config.Guard.Keep(after, "ingest", b.ingest.Run) })
	for range uncorrelatedWorkers {
		followers.Go(func() {
			_ = b.config.Guard.Keep(after, "handle uncorrelated answers", func(ctx context.Context) error {
				return b.handleUncorrelated(ctx, b.uncorrelated, b.settleUncorrelated)
			})
		})
		followers.Go(func() {
			_ = b.config.Guard.Keep(after, "handle repeated answers", func(ctx context.Context) error {
				return b.handleUncorrelated(ctx, b.repeated, b.settleRepeated)
			})
		})
	}

	group, ctx := errgroup.WithContext(ctx)
	keep := func(doing string, run func(context.Context) error) {
		group.Go(func() error { return b.config.Guard.Keep(ctx, doing, run) })
	}
	for range b.config.Workers {
		keep("handle answers", func(ctx context.Context) error { return b.handleAnswers(ctx, b.answers) })
	}
	for range b.config.Workers/firstShare + 1 {
		keep("handle answers with a waiter", func(ctx context.Context) error { return b.handleAnswers(ctx, nil) })
	}
	keep("look up answers", b.lookUpOverAllowance)
	keep("queue answers again", b.queueAgain)
	keep("poll record", b.pollRecord)
	keep("sweep", b.sweep)
	keep("conclude", b.concludeUnknown)
	keep("watch halts", b.watchHalts)
	keep("watch clock", b.watchClock)
	keep("listen for wake-ups", func(ctx context.Context) error { return b.config.Pending.Listen(ctx, b.config.Instance, b.hint) })
	err := group.Wait()
	for range len(b.later) { // once more: what fails then waits again
		b.queueNow(<-b.later)
	}
	b.drainAnswers(context.WithoutCancel(ctx)) // and those that lookUpOverAllowance queued last
	stopAfter()
	followers.Wait()
	for a := range ingest.Queued(b.later) {
		b.loseAnswer(a.unit, a.answer, context.Canceled)
	}
	b.background.Wait()
	b.closeOutbox(context.WithoutCancel(ctx))
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, ingestErr)
}

// Report queues a message from a unit's telemetry topic. It does not block [LAW-8].
func (b *Broker) Report(m telematics.Message) {
	_ = b.config.Guard.Do("receive report", func() { b.ingest.Report(m) })
}

// Presence queues a message from a unit's presence topic. It does not block [LAW-8]. It reports
// false where the queue is full.
func (b *Broker) Presence(m telematics.Message) bool {
	queued := true // a message that cannot be handled is not read again
	_ = b.config.Guard.Do("receive presence", func() { queued = b.ingest.Presence(m) })
	return queued
}

// Publish appends an event of another part of the service to the event log. It never blocks.
func (b *Broker) Publish(e telematics.Event) { b.events.publish(e) }

// step returns a context for one call of a port.
func (b *Broker) step(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, b.config.StepTimeout)
}

// each calls do at an interval, until the context ends, and returns the context's error.
func (b *Broker) each(ctx context.Context, interval time.Duration, doing string, do func()) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			_ = b.config.Guard.Do(doing, do)
		}
	}
}
