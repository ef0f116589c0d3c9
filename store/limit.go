package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"motorpool/telematics"
)

const (
	// askFor is how long a request waits to be counted, and holdOff how long Redis is not
	// asked after it failed: a frozen one must not delay every request.
	askFor  = 250 * time.Millisecond
	holdOff = time.Second
)

// The library puts "rate:" before it.
func limitKey(key string) string { return "motorpool:" + key }

var errNotAsked = awayError{errors.New("count request: redis did not answer a moment ago")}

// Limits counts requests in Redis, for all instances together. It is safe for concurrent use.
type Limits struct {
	counter  *redis_rate.Limiter
	patience time.Duration
	log      *slog.Logger
	now      func() time.Time

	mu        sync.Mutex
	since     time.Time // when Redis stopped counting; zero: it counts
	nextAsk   time.Time
	uncounted int
}

// Limits returns the count of requests.
func (r *Redis) Limits() *Limits {
	return &Limits{counter: redis_rate.NewLimiter(r.client), patience: askFor, log: r.log, now: time.Now}
}

// Take takes one of so many a minute. What is unused adds up, to a minute's worth. An
// error says that the request was not counted; it comes soon.
func (l *Limits) Take(ctx context.Context, key string, perMinute int) (telematics.Quota, error) {
	if !l.mayAsk() {
		return telematics.Quota{}, errNotAsked
	}
	ask, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	result, err := l.counter.Allow(ask, limitKey(key), redis_rate.PerMinute(perMinute))
	if ctx.Err() == nil { // else the caller left, which says nothing of Redis
		l.learn(err)
	}
	if err != nil {
		return telematics.Quota{}, wrap("count request", err)
	}
	if result.Allowed == 0 {
		return telematics.Quota{Limit: perMinute, Over: true, Reset: result.RetryAfter}, nil
	}
	return telematics.Quota{Limit: perMinute, Remaining: result.Remaining, Reset: result.ResetAfter}, nil
}

// mayAsk lets everybody through while Redis counts, and then one in a while, to see
// whether it is back.
func (l *Limits) mayAsk() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since.IsZero() {
		return true
	}
	if now := l.now(); !now.Before(l.nextAsk) {
		l.nextAsk = now.Add(holdOff)
		return true
	}
	l.uncounted++
	return false
}

// learn notes whether Redis counted. An outage is logged once, and its end.
func (l *Limits) learn(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	switch {
	case err == nil && !l.since.IsZero():
		l.log.Info("requests are counted against their limits again", "uncounted", l.uncounted, "away", now.Sub(l.since).Round(time.Millisecond))
		l.since, l.uncounted = time.Time{}, 0
	case err != nil && l.since.IsZero():
		l.log.Warn("requests pass without being counted against their limits", "err", fmt.Errorf("count request: %w", err))
		l.since = now
		fallthrough
	case err != nil:
		l.nextAsk = now.Add(holdOff)
		l.uncounted++
	}
}
