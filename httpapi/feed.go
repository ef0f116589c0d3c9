package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"motorpool/telematics"
)

// FeedConfig says how events are handed on. Log is required.
type FeedConfig struct {
	Log EventLog
	// PerAdmin is how many streams an administrator may have here at a time: a tool that went
	// wild must leave room for the others. Negative: any number. Defaults to 10.
	PerAdmin int
	// Streams is how many may be open here at a time. Defaults to 2,000.
	Streams int
	// AtHand is how many of the latest events are kept for readers, who may be so far behind
	// before they are cut. Defaults to 16,384, and never more than 16 MiB.
	AtHand int
	// PingEvery is between two signs of life. Defaults to 15 s.
	PingEvery time.Duration
	// WriteFor is how long a reader may take for one write before it is cut. Defaults to 10 s.
	WriteFor time.Duration
	// IdleFor is how long the log is followed after the last reader has left. Defaults to 1 min.
	IdleFor time.Duration
	// Logger says what happens to readers. Defaults to slog.Default().
	Logger *slog.Logger
}

const (
	maxAtHand = 16 << 20 // bytes
	// recentEvents are read back at the start, so that readers who come back to a process that
	// was replaced do not all ask the log.
	recentEvents = 8192
	chunkEvents  = 256 // at most, so that a write and what falls out of hand stay small
)

// Feed follows the log of events once, while anybody reads, and hands it on to any number of
// streams. Safe for concurrent use.
type Feed struct {
	FeedConfig
	ring   *ring
	wanted chan struct{} // holds one: the log is to be followed
	ended  chan struct{} // closed when no stream goes on
	end    func()

	mu      sync.Mutex // guards what follows
	readers map[telematics.Actor]int
	open    int
	idle    *time.Timer   // runs while nobody reads
	ready   chan struct{} // closed once the log was read, of the present following
	stop    func()        // ends the present following; nil: there is none

	followed, cut atomic.Int64
}

// NewFeed assembles a feed. It follows nothing before Run.
func NewFeed(config FeedConfig) *Feed {
	config.PerAdmin = cmp.Or(config.PerAdmin, 10)
	config.Streams = cmp.Or(config.Streams, 2000)
	config.AtHand = cmp.Or(config.AtHand, 16<<10)
	config.PingEvery = cmp.Or(config.PingEvery, 15*time.Second)
	config.WriteFor = cmp.Or(config.WriteFor, 10*time.Second)
	config.IdleFor = cmp.Or(config.IdleFor, time.Minute)
	config.Logger = cmp.Or(config.Logger, slog.Default())
	f := &Feed{
		FeedConfig: config, ring: newRing(config.AtHand, maxAtHand), wanted: make(chan struct{}, 1),
		ended: make(chan struct{}), readers: map[telematics.Actor]int{}, ready: make(chan struct{}),
	}
	f.end = sync.OnceFunc(func() { close(f.ended) })
	return f
}

// Run follows the log while anybody reads, until the context ends.
func (f *Feed) Run(ctx context.Context) error {
	defer f.End()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.wanted:
		}
		if err := f.follow(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		f.ring.clear() // whoever comes next finds a following that begins anew
	}
}

func (f *Feed) follow(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ready := f.starts(stop)
	return f.Log.Follow(ctx, min(recentEvents, f.AtHand), func(events []telematics.Event) {
		f.begin(events)
		ready()
	}, f.next)
}

// starts notes that a following begins, and returns what tells that readers can begin, too.
func (f *Feed) starts(stop func()) (ready func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop = stop
	present := f.ready
	return sync.OnceFunc(func() { close(present) })
}

// rest ends the following, unless somebody reads again.
func (f *Feed) rest() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open > 0 || f.stop == nil {
		return
	}
	f.stop()
	f.stop, f.ready = nil, make(chan struct{})
}

// End ends every stream, and lets no new one begin: they would hold up the end of the server.
func (f *Feed) End() { f.end() }

// Counts tells how many streams are open, and what has happened since the start.
func (f *Feed) Counts() map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return map[string]int64{"event_streams_open": int64(f.open), "event_streams_cut": f.cut.Load(), "events_followed": f.followed.Load()}
}

// begin takes the latest events of a log whose place was lost, or not known yet. Whoever has
// read until then must look anew.
func (f *Feed) begin(events []telematics.Event) {
	_, last := f.ring.end()
	var news []telematics.Event
	for _, e := range events {
		if _, known := f.ring.find(e.ID); !known {
			news = append(news, e)
		}
	}
	if last != "" {
		latest := events[len(events)-1]
		news = append(news, telematics.Event{ID: latest.ID, Kind: telematics.ResetEvent, At: latest.At})
		f.Logger.Warn("events may be missing; streams are told", "reason", "the log has lost the place")
	}
	f.next(news)
}

func (f *Feed) next(events []telematics.Event) {
	f.followed.Add(int64(len(events)))
	for part := range slices.Chunk(events, chunkEvents) {
		f.ring.add(newChunk(part))
	}
}

var errFeedStarts = errors.New("the log of events was not read yet")

// startFor is how long a stream waits for the log to be followed.
const startFor = 3 * time.Second

// admit counts a stream of an actor in. The caller calls leave when it ends.
func (f *Feed) admit(ctx context.Context, actor telematics.Actor) (leave func(), refusal error) {
	ready, refusal := f.enter(actor)
	if refusal != nil {
		return nil, refusal
	}
	leave = func() { f.leave(actor) }
	ctx, cancel := context.WithTimeout(ctx, startFor)
	defer cancel()
	select {
	case <-ready:
		return leave, nil
	case <-f.ended:
		refusal = errors.New("this process is about to end")
	case <-ctx.Done():
		refusal = errFeedStarts
	}
	leave()
	return nil, away(refusal)
}

// enter returns what tells that the stream can begin.
func (f *Feed) enter(actor telematics.Actor) (ready <-chan struct{}, refusal error) {
	select {
	case <-f.ended:
		return nil, away(errors.New("this process is about to end"))
	default:
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.PerAdmin > 0 && f.readers[actor] >= f.PerAdmin:
		return nil, &telematics.Error{Code: rateLimited, Retryable: true, RetryAfter: retryAway,
			Message: fmt.Sprintf("You have %d streams open at this instance, as many as one administrator may; close one first.", f.readers[actor])}
	case f.open >= f.Streams:
		return nil, away(fmt.Errorf("%d streams are open", f.open))
	}
	f.readers[actor]++
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

func (f *Feed) leave(actor telematics.Actor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open--; f.open == 0 {
		f.idle = time.AfterFunc(f.IdleFor, f.rest)
	}
	if f.readers[actor]--; f.readers[actor] == 0 {
		delete(f.readers, actor)
	}
}
