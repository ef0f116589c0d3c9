package broker

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"motorpool/broker/ingest"
	"motorpool/guard"
	"motorpool/telematics"
)

// eventPublisher appends events to the event log. It never delays its callers: events that do not
// fit into its queue, or that the log does not accept in time, are dropped and counted. The next
// event in the log is then a reset, which notifies each subscriber of the gap.
type eventPublisher struct {
	log     Events
	guard   *guard.Guard
	timeout time.Duration
	metrics *metrics
	logger  *slog.Logger
	queue   chan telematics.Event
	gap     atomic.Bool // something was dropped since the log last took anything
	full    atomic.Bool // likewise: because the queue was full
	outage  guard.Outage
}

func newEventPublisher(c Config, metrics *metrics) *eventPublisher {
	return &eventPublisher{
		log: c.Events, guard: c.Guard, timeout: c.StepTimeout, metrics: metrics, logger: c.Logger,
		queue: make(chan telematics.Event, c.QueueSize),
	}
}

// publish queues an event and returns.
func (t *eventPublisher) publish(e telematics.Event) {
	select {
	case t.queue <- e:
	default:
		t.full.Store(true)
		t.drop(1, queueFull)
	}
}

func (t *eventPublisher) drop(n int, reason string) {
	t.gap.Store(true)
	t.metrics.drop(event, reason, n)
}

// changed queues the events of changes that observations have made.
func (t *eventPublisher) changed(changes []telematics.Change) {
	now := time.Now().UTC()
	for _, change := range changes {
		for _, e := range change.Events(now) {
			t.publish(e)
		}
	}
}

// haltsChanged queues the events of changed halts. Each instance does so when it reads them.
func (t *eventPublisher) haltsChanged(changes []telematics.HaltChange) {
	now := time.Now().UTC()
	for _, change := range changes {
		t.publish(change.Event(now))
	}
}

// sent queues the event of a command's first publication.
func (t *eventPublisher) sent(c *telematics.Command, at time.Time) {
	sent := *c // others read it
	sent.State, sent.SentAt, sent.Attempts = telematics.Sent, at, 1
	t.publish(sent.Event(at))
}

// start begins to append queued events to the log, and returns a function that stops that. The
// function blocks until the events queued by then are appended or dropped, for three steps at most.
func (t *eventPublisher) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = t.guard.Keep(ctx, "publish events", t.run)
	}()
	return func() { cancel(); <-ended }
}

func (t *eventPublisher) run(ctx context.Context) error {
	again := time.NewTicker(gapRetry)
	defer again.Stop()
	for ctx.Err() == nil {
		select {
		case first := <-t.queue:
			if len(t.queue) < ingest.MaxBatch {
				time.Sleep(eventDebounce)
			}
			t.add(ctx, ingest.Gather(t.queue, first))
		case <-again.C:
			if t.gap.Load() { // else subscribers would learn of it only with the next event
				t.add(ctx, nil)
			}
		case <-ctx.Done():
		}
	}
	t.drain()
	return nil
}

func (t *eventPublisher) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), t.timeout)
	defer cancel()
	for first := range ingest.Queued(t.queue) {
		batch := ingest.Gather(t.queue, first)
		if ctx.Err() != nil {
			t.drop(len(batch), notStored)
			continue
		}
		t.add(ctx, batch)
	}
}

// add appends a batch to the log. A panic drops it.
func (t *eventPublisher) add(ctx context.Context, batch []telematics.Event) {
	if err := t.guard.Do("publish events", func() { t.append(ctx, batch) }); err != nil {
		t.drop(len(batch), notStored)
	}
}

// append appends a batch to the log. Where the log's reply is lost, the batch is appended twice:
// duplicates are harmless, a missing event is not.
func (t *eventPublisher) append(ctx context.Context, batch []telematics.Event) {
	if t.full.Swap(false) {
		// Those that did not fit were newer, and subscribers must get no older ones after a reset.
		t.drop(len(batch), queueFull)
		for range ingest.Queued(t.queue) {
			t.drop(1, queueFull)
		}
		batch = nil
	}
	events := batch
	gap := t.gap.Swap(false)
	if gap {
		events = append([]telematics.Event{{Kind: telematics.ResetEvent, At: time.Now().UTC()}}, batch...)
	}
	for giveUp := time.Now().Add(eventRetryFor); ; {
		missing, err := t.try(ctx, events)
		t.metrics.eventsPublished.Add(float64(withoutResets(events) - withoutResets(missing)))
		t.outage.Note(ctx, t.logger, "events not published", err)
		if err == nil {
			return
		}
		events = missing
		if gap || ctx.Err() != nil || time.Now().After(giveUp) {
			// With a gap, the log was unavailable or too slow before: no further attempt.
			t.drop(withoutResets(missing), notStored)
			return
		}
		guard.Pause(ctx, eventRetry)
	}
}

// withoutResets counts the events other than resets.
func withoutResets(events []telematics.Event) int {
	n := 0
	for _, e := range events {
		if e.Kind != telematics.ResetEvent {
			n++
		}
	}
	return n
}

func (t *eventPublisher) try(ctx context.Context, events []telematics.Event) ([]telematics.Event, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.timeout)
	defer cancel()
	return t.log.Publish(ctx, events)
}
