package stream

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/guard"
	"motorpool/telematics"
)

// Log is the log of events, which all instances write.
type Log interface {
	// After returns up to limit events after the one with an id, and none after the one with
	// another, until; the last of them all has the id until, unless that is not behind the first.
	// It returns false if events after the first may be missing in the log.
	After(ctx context.Context, id, until string, limit int) ([]telematics.Event, bool, error)
	// Follow calls begin with up to recent latest events, at least one, and then next with later
	// ones, without a gap, until the context ends. It also calls next with none, at least once a
	// second, as long as the whole log answers. Where the log has lost the position, it calls begin
	// again. Calls are serial.
	Follow(ctx context.Context, recent int, begin, next func([]telematics.Event)) error
}

// Config configures a feed. Log and Body are required.
type Config struct {
	Log Log
	// Body returns the data of an event, which is encoded as JSON; nil for a reset.
	Body func(telematics.Event) any
	// PerActor is how many streams an actor may have open at this instance. Negative: any number.
	// Defaults to 10.
	PerActor int
	// Streams is how many streams may be open at this instance. Defaults to 2,000.
	Streams int
	// Buffered is how many of the latest events are kept for subscribers; one that is further
	// behind is cut. Defaults to 16,384, and never more than 16 MiB.
	Buffered int
	// PingEvery is the interval of pings. Defaults to 15 s.
	PingEvery time.Duration
	// WriteTimeout is how long one write to a subscriber may take before it is cut. Defaults to 10
	// s.
	WriteTimeout time.Duration
	// StallTimeout is how long the log may not answer before subscribers get an event that says so.
	// Defaults to 5 s.
	StallTimeout time.Duration
	// IdleTimeout is how long the log is followed after the last subscriber has left. Defaults to 1
	// min.
	IdleTimeout time.Duration
	// Guard recovers panics. Nil: they are only logged.
	Guard *guard.Guard
	// Logger logs lost events. Defaults to slog.Default().
	Logger *slog.Logger
	// Metrics registers the metrics of the feed. Defaults to a new registry.
	Metrics prometheus.Registerer
}

// Feed follows the log of events once, while there are subscribers, and sends it to any number of
// them. Safe for concurrent use.
type Feed struct {
	Config
	ring   *ring
	wanted chan struct{} // holds one: the log is to be followed
	ended  chan struct{} // closed by End
	end    func()

	mu     sync.Mutex // guards the fields below
	actors map[telematics.Actor]int
	open   int
	idle   *time.Timer   // runs while there is no subscriber
	ready  chan struct{} // closed when the current Follow has called begin
	stop   func()        // ends the current Follow; nil: there is none
	stall  stall

	metrics metrics
}

// New assembles a feed. It follows nothing before Run.
func New(config Config) *Feed {
	config.PerActor = cmp.Or(config.PerActor, defaultPerActor)
	config.Streams = cmp.Or(config.Streams, defaultStreams)
	config.Buffered = cmp.Or(config.Buffered, defaultBuffered)
	config.PingEvery = cmp.Or(config.PingEvery, defaultPing)
	config.WriteTimeout = cmp.Or(config.WriteTimeout, defaultWriteTimeout)
	config.StallTimeout = cmp.Or(config.StallTimeout, defaultStall)
	config.IdleTimeout = cmp.Or(config.IdleTimeout, defaultIdle)
	config.Logger = cmp.Or(config.Logger, slog.Default())
	if config.Metrics == nil {
		config.Metrics = prometheus.NewRegistry()
	}
	f := &Feed{
		Config: config, ring: newRing(config.Buffered, maxBuffered), wanted: make(chan struct{}, 1),
		ended: make(chan struct{}), actors: map[telematics.Actor]int{}, ready: make(chan struct{}),
	}
	f.stall.changed = make(chan struct{})
	f.stall.timer = time.AfterFunc(config.StallTimeout, func() { _ = f.Guard.Do("note a stalled log", f.stalls) })
	f.stall.timer.Stop() // until the log is followed
	f.metrics = newMetrics(config.Metrics, f.openStreams)
	f.end = sync.OnceFunc(func() { close(f.ended) })
	return f
}

// Run follows the log while there are subscribers. It blocks until the context ends, or until
// Log.Follow fails, whose error it returns. Then it ends all streams.
func (f *Feed) Run(ctx context.Context) error {
	defer f.End()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.wanted:
		}
		if err := f.Guard.Keep(ctx, "follow events", f.follow); err != nil || ctx.Err() != nil {
			return err
		}
		f.ring.clear() // the next Follow begins with the latest events
	}
}

func (f *Feed) follow(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ready := f.registerFollow(stop)
	defer f.unregisterFollow()
	return f.Log.Follow(ctx, min(recentEvents, f.Buffered), func(events []telematics.Event) {
		f.begin(events)
		ready()
	}, f.next)
}

// registerFollow makes stop end the Follow that begins. The returned function lets subscribers
// begin.
func (f *Feed) registerFollow(stop func()) (ready func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop = stop
	current := f.ready
	return func() {
		select {
		case <-current: // by a Follow before, which has panicked
		default:
			close(current)
		}
	}
}

// unregisterFollow notes that the log is followed no more: then it does not stall.
func (f *Feed) unregisterFollow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop = nil
	f.stall.timer.Stop()
}

// stopIfIdle ends the current Follow, unless there are subscribers again.
func (f *Feed) stopIfIdle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open > 0 || f.stop == nil {
		return
	}
	f.stop()
	f.stop, f.ready = nil, make(chan struct{})
}

// End ends every stream, and refuses new ones. Register it with http.Server.RegisterOnShutdown:
// streams would hold up Shutdown.
func (f *Feed) End() { f.end() }

func (f *Feed) openStreams() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return float64(f.open)
}

// begin adds the latest events, when a Follow begins or its position in the log was lost. In the
// latter case subscribers get a reset.
func (f *Feed) begin(events []telematics.Event) {
	_, last := f.ring.latest()
	var added []telematics.Event
	for _, e := range events {
		if _, has := f.ring.find(e.ID); !has {
			added = append(added, e)
		}
	}
	if last != "" {
		latest := events[len(events)-1]
		added = append(added, telematics.Event{ID: latest.ID, Kind: telematics.ResetEvent, At: latest.At})
		f.Logger.Warn("events may be missing, subscribers get a reset", "reason", "position in the event log lost")
	}
	f.next(added)
	f.answers()
}

func (f *Feed) next(events []telematics.Event) {
	if len(events) == 0 {
		f.answers()
		return
	}
	f.metrics.followed.Add(float64(len(events)))
	f.ring.add(f.newFrames(events))
}

// LimitError is returned if an actor has as many streams open as it may.
type LimitError struct{ Open int }

func (e *LimitError) Error() string { return fmt.Sprintf("%d streams are open", e.Open) }

// unavailableError is why a stream cannot be opened at the moment.
type unavailableError string

func (e unavailableError) Error() string { return string(e) }

// Unavailable reports that the caller may try again later.
func (unavailableError) Unavailable() bool { return true }

const errEnding unavailableError = "this process is about to end"

// Admit reserves a stream for an actor; the caller must call release when it ends. Admit waits up
// to 3 s until the log is followed. Its errors are a *LimitError, or have a method Unavailable()
// bool that returns true.
func (f *Feed) Admit(ctx context.Context, actor telematics.Actor) (release func(), err error) {
	ready, err := f.reserve(actor)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case <-ready:
		return func() { f.release(actor) }, nil
	case <-f.ended:
		err = errEnding
	case <-ctx.Done():
		err = unavailableError("the log of events was not read yet")
	}
	f.release(actor)
	return nil, err
}

// reserve returns a channel that is closed when the stream can begin.
func (f *Feed) reserve(actor telematics.Actor) (ready <-chan struct{}, err error) {
	select {
	case <-f.ended:
		return nil, errEnding
	default:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.PerActor > 0 && f.actors[actor] >= f.PerActor:
		return nil, &LimitError{Open: f.actors[actor]}
	case f.open >= f.Streams:
		return nil, unavailableError(fmt.Sprintf("%d streams are open", f.open))
	}
	f.actors[actor]++
	f.open++
	if f.idle != nil {
		f.idle.Stop()
	}
	if f.stop == nil {
		select {
		case f.wanted <- struct{}{}:
		default:
		}
	}
	return f.ready, nil
}

func (f *Feed) release(actor telematics.Actor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open--; f.open == 0 {
		f.idle = time.AfterFunc(f.IdleTimeout, func() { _ = f.Guard.Do("stop if idle", f.stopIfIdle) })
	}
	if f.actors[actor]--; f.actors[actor] == 0 {
		delete(f.actors, actor)
	}
}
