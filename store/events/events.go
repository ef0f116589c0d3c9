// Package events is the event log, in streams of Redis that all instances write and follow: one, or
// in a Redis Cluster several, each of which has the events of some vehicles.
//
// A place in the log is the id of an entry of each stream. The events after it are complete if and
// only if those entries are still there: a stream that was emptied, or cut off beyond the place,
// does not have its entry any more.
package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"motorpool/guard"
	"motorpool/store/redis"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// eventsKey is the key of the stream of events, or the prefix of the keys of several. The ids of
// entries grow; entries are removed at the old end only.
const eventsKey = "motorpool:events"

const (
	// streams is the number of streams in a Redis Cluster: at most that number of masters has them.
	// Half: two of six masters, say, have twice the load. Double: ids are twice as long, 300 bytes
	// with each event that is sent.
	streams = 8
	// eventsKept is about the number of events that can be read again: at about 400 bytes each, 40
	// MB of Redis, and a quarter of an hour of a fleet that has 100 events a second.
	eventsKept = 100_000
	// keptFor is about how long an event can be read again, where they are fewer. Half: a
	// subscriber that was disconnected for longer reads anew what it shows; double: positions of
	// vehicles are in Redis for longer.
	keptFor = time.Hour
	// trimEvery is the interval of removals of older events. Half: more requests; double: they stay
	// for a minute more.
	trimEvery = time.Minute
	// unusedFor is the expiry of a stream without new events. It is longer than a quiet night: the
	// loss of a stream resets all subscribers.
	unusedFor = 24 * time.Hour
	// followPace is the pause between two reads while events come, so that a read returns several.
	followPace = 20 * time.Millisecond
	// followPage limits the events of one read, and so the time for which Redis serves no other
	// client.
	followPage = 1000
	// blockFor is how long Redis waits for the next event before it replies.
	blockFor = 500 * time.Millisecond
)

// Log is the event log. It is safe for concurrent use.
type Log struct {
	db   *redis.DB
	keys []string // of the streams

	mu      sync.Mutex
	trimmed []time.Time // when each stream was last trimmed
}

// New returns the log in Redis.
func New(db *redis.DB) *Log {
	keys := db.Parts(eventsKey, streams)
	return &Log{db: db, keys: keys, trimmed: make([]time.Time, len(keys))}
}

// streamOf returns the stream of an event.
func (l *Log) streamOf(e *telematics.Event) int { return int(uint64(e.Vehicle) % uint64(len(l.keys))) }

// Publish implements broker.Events: missing are all events of a stream, or none of them.
func (l *Log) Publish(ctx context.Context, events []telematics.Event) ([]telematics.Event, error) {
	rows := make([][][]byte, len(l.keys))
	for i := range events {
		row, err := encodeEvent(&events[i])
		if err != nil {
			return events, unavailable.Wrap("publish events", err)
		}
		stream := l.streamOf(&events[i])
		rows[stream] = append(rows[stream], row)
	}
	failures := make([]error, len(l.keys))
	var all sync.WaitGroup
	for stream := range l.keys {
		if len(rows[stream]) > 0 {
			all.Go(func() {
				failures[stream] = l.db.Guard.Try("append events", func() error { return l.add(ctx, stream, rows[stream]) })
			})
		}
	}
	all.Wait()
	var missing []telematics.Event
	for i := range events {
		if failures[l.streamOf(&events[i])] != nil {
			missing = append(missing, events[i])
		}
	}
	return missing, unavailable.Wrap("publish events", errors.Join(failures...))
}

// add appends rows to a stream: all of them, or none.
func (l *Log) add(ctx context.Context, stream int, rows [][]byte) error {
	key := l.keys[stream]
	var last *goredis.StringCmd
	if _, err := l.db.Client.TxPipelined(ctx, func(pipe goredis.Pipeliner) error {
		for _, row := range rows {
			last = pipe.XAdd(
				ctx,
				&goredis.XAddArgs{Stream: key, MaxLen: int64(eventsKept / len(l.keys)), Approx: true, Values: []any{eventField, row}},
			)
		}
		pipe.Expire(ctx, key, unusedFor)
		return nil
	}); err != nil {
		return err
	}
	if l.isTrimDue(stream) {
		if err := l.trim(ctx, key, last.Val()); err != nil {
			l.db.Log.Warn("old events not removed from redis", "key", key, "err", err)
		}
	}
	return nil
}

func (l *Log) isTrimDue(stream int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	due := time.Since(l.trimmed[stream]) > trimEvery
	if due {
		l.trimmed[stream] = time.Now()
	}
	return due
}

// trim removes events that are older than keptFor both by Redis's clock, as of the last event, and
// by the instance's: a leap of one of them must not take the places of followers. It keeps the
// newest of them, where a follower may be if nothing was added for long.
func (l *Log) trim(ctx context.Context, key, last string) error {
	now, _ := parseEntryID(last) // Redis has written it
	until := fmt.Sprint(min(int64(now.ms), time.Now().UnixMilli()) - keptFor.Milliseconds())
	old, err := l.db.Client.XRevRangeN(ctx, key, until, "-", 1).Result()
	if err != nil || len(old) == 0 {
		return err
	}
	return l.db.Client.XTrimMinIDApprox(ctx, key, old[0].ID, 0).Err()
}

// After returns up to limit events after the place id, and none after the place until (empty: no
// bound), oldest first for each vehicle. It reports false where id is no place in this log, or the
// events after it are not complete any more. It fails with the error of Redis.
func (l *Log) After(ctx context.Context, id, until string, limit int) ([]telematics.Event, bool, error) {
	at, ok := l.parsePlace(id)
	if !ok {
		return nil, false, nil
	}
	end, bounded := l.parsePlace(until)
	ranges := make([]*goredis.XMessageSliceCmd, len(l.keys))
	pipe := l.db.Client.Pipeline()
	for i, key := range l.keys {
		last := "+"
		if bounded {
			last = later(end[i], at[i]).String()
		}
		ranges[i] = pipe.XRangeN(ctx, key, at[i].String(), last, int64(limit)+1)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, false, unavailable.Wrap("read events", err)
	}
	after := make([][]entry, len(l.keys))
	for i, of := range ranges {
		entries := decodeEntries(i, of.Val())
		if len(entries) == 0 || entries[0].id != at[i] {
			return nil, false, nil
		}
		after[i] = entries[1:]
	}
	found := slices.Concat(after...)
	slices.SortStableFunc(found, byTime)
	return at.through(found[:min(limit, len(found))]), true, nil
}

// errLost means that the entry that was read last is not in its stream any more.
var errLost = errors.New("the place in the log of events is lost")

// Follow implements stream.Log. In a cluster, "the whole log" is all masters: while some of them
// are unavailable, it continues with the events of the others.
func (l *Log) Follow(ctx context.Context, recent int, begin, next func([]telematics.Event)) error {
	l.db.Retry(ctx, notRead, func(ctx context.Context, answered func()) error {
		for {
			events, at, err := l.latest(ctx, recent)
			if err != nil {
				return err
			}
			answered()
			begin(events)
			if err := l.followFrom(ctx, at, next); !errors.Is(err, errLost) {
				return err
			}
		}
	})
	return nil
}

const notRead = "events not read from redis"

// followFrom follows each stream from a place, until one has lost it.
func (l *Log) followFrom(ctx context.Context, at place, next func([]telematics.Event)) error {
	var following sync.WaitGroup
	defer following.Wait()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	pages := make(chan page)
	for stream, from := range at {
		following.Go(func() {
			l.db.Retry(ctx, notRead, func(ctx context.Context, answered func()) error {
				err := l.followStream(ctx, stream, &from, answered, pages)
				if errors.Is(err, errLost) {
					stop(err)
				}
				return err
			})
		})
	}
	answered := map[int]bool{} // streams, since next was called with none
	for {
		select {
		case p := <-pages:
			if len(p.entries) > 0 {
				next(at.through(p.entries))
			}
			if answered[p.stream] = true; len(answered) == len(at) {
				clear(answered)
				next(nil)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// page is the result of a read of one stream.
type page struct {
	stream  int
	entries []entry
}

// followStream reads a stream page by page, until Redis fails. It calls heard after each reply of
// Redis. Where no event came for blockFor, it sends an empty page.
func (l *Log) followStream(ctx context.Context, stream int, from *entryID, heard func(), pages chan<- page) error {
	key := l.keys[stream]
	for {
		messages, err := l.db.Client.XRangeN(ctx, key, from.String(), "+", followPage+1).Result()
		if err != nil {
			return unavailable.Wrap("read events", err)
		}
		entries := decodeEntries(stream, messages)
		if len(entries) == 0 || entries[0].id != *from {
			return errLost
		}
		heard()
		if entries = entries[1:]; len(entries) == 0 {
			came, err := l.await(ctx, key, *from)
			if err != nil {
				return err
			}
			heard()
			if came {
				continue
			}
		}
		select {
		case pages <- page{stream, entries}:
			if len(entries) > 0 {
				*from = entries[len(entries)-1].id
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if !guard.Pause(ctx, followPace) {
			return ctx.Err()
		}
	}
}

// latest returns up to about n latest events, at least one, and the place after them. It adds a
// first entry to an empty stream, since a place needs one.
func (l *Log) latest(ctx context.Context, n int) ([]telematics.Event, place, error) {
	each := n/len(l.keys) + 1
	streams, err := l.newest(ctx, each+1)
	if err != nil {
		return nil, nil, err
	}
	at := make(place, len(streams))
	var first, others []entry
	for i, entries := range streams {
		at[i] = entries[0].id
		if len(entries) <= each { // else it is there to begin with
			first = append(first, entries[0])
		}
		others = append(others, entries[1:]...)
	}
	slices.SortStableFunc(others, byTime)
	events := append(at.through(first), at.through(others)...)
	return events[max(0, len(events)-n):], at, nil
}

// newest returns the n newest entries of each stream, oldest first.
func (l *Log) newest(ctx context.Context, n int) ([][]entry, error) {
	streams := make([][]entry, len(l.keys))
	for stream, key := range l.keys {
		for len(streams[stream]) == 0 {
			messages, err := l.db.Client.XRevRangeN(ctx, key, "+", "-", int64(n)).Result()
			if err != nil {
				return nil, unavailable.Wrap("read latest events", err)
			}
			slices.Reverse(messages)
			if streams[stream] = decodeEntries(stream, messages); len(messages) > 0 {
				continue
			}
			first, err := encodeEvent(&telematics.Event{Kind: telematics.ResetEvent, At: time.Now().UTC()})
			if err == nil {
				err = l.add(ctx, stream, [][]byte{first})
			}
			if err != nil {
				return nil, unavailable.Wrap("begin the log of events", err)
			}
		}
	}
	return streams, nil
}

// await blocks until there is an event after an entry, or returns false after blockFor.
func (l *Log) await(ctx context.Context, key string, at entryID) (bool, error) {
	// The library would wait longer for a server that is gone.
	ctx, cancel := context.WithTimeout(ctx, blockFor+redis.PingAfter)
	defer cancel()
	err := l.db.Client.XRead(ctx, &goredis.XReadArgs{Streams: []string{key, at.String()}, Count: 1, Block: blockFor}).Err()
	if errors.Is(err, goredis.Nil) {
		return false, nil
	}
	return true, unavailable.Wrap("wait for events", err)
}
