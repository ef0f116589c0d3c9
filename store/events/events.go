// Package events is the log of what has changed, in a stream of Redis that all instances write and
// follow.
//
// A position in the log is the id of an entry. What comes after it is complete if and only if that
// entry is still there: a log that was emptied, or cut off beyond the position, does not have it
// any more.
package events

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"motorpool/store/redis"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// eventsKey is the stream of events. Its ids grow; entries leave it at its old end only.
const eventsKey = "motorpool:events"

const (
	// eventsKept is about how many events can be read again: at about 400 bytes each, 40 MB of
	// Redis, and a quarter of an hour of a fleet that has 100 events a second.
	eventsKept = 100_000
	// followPace is between two readings while events come, so that a reading brings several.
	followPace = 20 * time.Millisecond
	// followPage bounds one reading, and with it the time for which Redis serves no other client.
	followPage = 1000
	// blockFor is how long Redis waits for the next event before it answers.
	blockFor = 500 * time.Millisecond
)

// Log is the log of events. It is safe for concurrent use.
type Log struct{ db *redis.DB }

// New returns the log in Redis.
func New(db *redis.DB) *Log { return &Log{db} }

// Publish adds events, in their order: all of them, or none.
func (l *Log) Publish(ctx context.Context, events []telematics.Event) error {
	rows := make([][]byte, len(events))
	for i := range events {
		row, err := encodeEvent(&events[i])
		if err != nil {
			return unavailable.Wrap("tell events", err)
		}
		rows[i] = row
	}
	_, err := l.db.Client.TxPipelined(ctx, func(pipe goredis.Pipeliner) error {
		for _, row := range rows {
			pipe.XAdd(ctx, &goredis.XAddArgs{Stream: eventsKey, MaxLen: eventsKept, Approx: true, Values: []any{eventField, row}})
		}
		return nil
	})
	return unavailable.Wrap("tell events", err)
}

// After returns up to limit events after the one with an id, oldest first. It reports false
// where the log cannot say, or cannot say any more, what came after it.
func (l *Log) After(ctx context.Context, id string, limit int) ([]telematics.Event, bool, error) {
	if !isEventID(id) {
		return nil, false, nil
	}
	entries, err := l.db.Client.XRangeN(ctx, eventsKey, id, "+", int64(limit)+1).Result()
	if err != nil {
		return nil, false, unavailable.Wrap("read events", err)
	}
	if len(entries) == 0 || entries[0].ID != id {
		return nil, false, nil
	}
	return decodeEvents(entries[1:]), true, nil
}

// isEventID reports whether Redis would take a text for an id of a stream.
func isEventID(s string) bool {
	ms, seq, ok := strings.Cut(s, "-")
	_, badMS := strconv.ParseUint(ms, 10, 64)
	_, badSeq := strconv.ParseUint(seq, 10, 64)
	return ok && badMS == nil && badSeq == nil
}

// Follow calls begin with up to recent latest events, at least one, and then next with
// what follows, without a gap, until the context ends. Where the log has lost the place, it
// calls begin again. Calls come one after another. While Redis is unavailable it keeps trying.
func (l *Log) Follow(ctx context.Context, recent int, begin, next func([]telematics.Event)) error {
	at := ""
	l.db.Retry(ctx, func(ctx context.Context, answered func()) error {
		return l.follow(ctx, recent, &at, answered, begin, next)
	}, func(err error) { l.db.Log.Warn("events not read from redis, reconnecting", "err", err) })
	return nil
}

// follow follows from a position, or from the end where it is empty, until Redis fails. It
// calls heard each time that Redis has answered.
func (l *Log) follow(ctx context.Context, recent int, at *string, heard func(), begin, next func([]telematics.Event)) error {
	for {
		events, complete, err := l.After(ctx, *at, followPage)
		switch {
		case err != nil:
			return err
		case !complete:
			if events, err = l.latest(ctx, recent); err != nil {
				return err
			}
			begin(events)
		case len(events) == 0:
			if err := l.await(ctx, *at); err != nil {
				return err
			}
			heard()
			continue
		default:
			next(events)
		}
		heard()
		*at = events[len(events)-1].ID
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(followPace):
		}
	}
}

// latest returns up to n latest events, oldest first. An empty log is given its first: there
// must be a position to go on from.
func (l *Log) latest(ctx context.Context, n int) ([]telematics.Event, error) {
	for {
		entries, err := l.db.Client.XRevRangeN(ctx, eventsKey, "+", "-", int64(n)).Result()
		if err != nil {
			return nil, unavailable.Wrap("read latest events", err)
		}
		if len(entries) > 0 {
			slices.Reverse(entries)
			return decodeEvents(entries), nil
		}
		if err := l.Publish(ctx, []telematics.Event{{Kind: telematics.ResetEvent, At: time.Now().UTC()}}); err != nil {
			return nil, err
		}
	}
}

// await returns when there is an event after a position, or after a while without one.
func (l *Log) await(ctx context.Context, at string) error {
	// The library would wait longer for a server that is gone.
	ctx, cancel := context.WithTimeout(ctx, blockFor+redis.PingAfter)
	defer cancel()
	err := l.db.Client.XRead(ctx, &goredis.XReadArgs{Streams: []string{eventsKey, at}, Count: 1, Block: blockFor}).Err()
	if errors.Is(err, goredis.Nil) {
		return nil
	}
	return unavailable.Wrap("wait for events", err)
}
